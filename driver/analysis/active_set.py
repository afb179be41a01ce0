"""How much of the data was active, beside the DRAM and the flash that could hold it, and what flash did.

Active is what the server read from its storage or wrote to it, counted in extents: each different one once, however
often it was touched. Emulated devices count them. Of a real array nobody does, and all that is known is a bound: no
more than the bytes that were moved, and no more than the database. What fits into an array's DRAM never waits for its
disks, and what fits into flash shows that flash is fast, which nobody had doubted.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stallmark.driver.analysis.active_set_summary import ActiveSet, FlashUse
from stallmark.driver.analysis.counters import codes, numbers
from stallmark.driver.analysis.devices import dram_of, flash_of
from stallmark.driver.analysis.interval import Interval
from stallmark.driver.analysis.io import SERVER, Io, is_emulated, over
from stallmark.driver.analysis.words import size
from stallmark.driver.record import Record


def active_set(record: Record, io: Io, interval: Interval) -> ActiveSet:
    manifest = record.manifest
    gauges = _gauges(record, interval) if is_emulated(manifest) else {}
    extent = gauges.get("extent_bytes")
    run, minute = gauges.get("active_extents_run"), gauges.get("active_extents_60s")
    counted = None if run is None or extent is None else int(run.max() * extent[-1])
    database = (manifest.get("database") or {}).get("bytes_before")
    flash = sum(one.size_bytes for one in flash_of(manifest)) or None
    found = ActiveSet(
        counted_bytes=counted,
        minute_bytes=None if minute is None or extent is None else int(np.median(minute) * extent[-1]),
        extent_bytes=None if extent is None else int(extent[-1]),
        at_most_bytes=_at_most(io, interval, database) if counted is None else None,
        dram_bytes=dram_of(manifest),
        flash_bytes=flash,
        database_bytes=database,
        warnings=[],
    )
    found.warnings.extend(_warnings(found, manifest))
    return found


def flash_use(record: Record, io: Io, interval: Interval) -> FlashUse | None:
    """None without flash, or where nobody counts what it does."""
    device, flash = over(io.data_device, interval), flash_of(record.manifest)
    if not flash or device is None or device.broken or "flash_reads" not in device.values:
        return None
    reads, hits = device["reads"], device["flash_reads"]
    misses = reads - hits
    used = _gauges(record, interval).get("flash_used_bytes")
    evictions = device.get("cache_evictions")
    up, down = device.get("tier_bytes_up"), device.get("tier_bytes_down")
    is_tier = flash[0].kind == "tier"
    return FlashUse(
        kind=flash[0].kind,
        size_bytes=flash[0].size_bytes,
        share=hits / reads if reads else None,
        read_ms=device["flash_read_ms"] / hits if hits else None,
        spindle_read_ms=(device["read_ms"] - device["flash_read_ms"]) / misses if misses >= 1 else None,
        evictions_per_s=None if evictions is None or is_tier else evictions / device.seconds,
        up_bytes=round(up) if is_tier and up is not None else None,
        down_bytes=round(down) if is_tier and down is not None else None,
        used_bytes=None if used is None else int(used[-1]),
    )


def _at_most(io: Io, interval: Interval, database: int | None) -> int | None:
    """Moved from the first sample on, warm-up included: a cache has seen that as well."""
    bounds = [] if not database else [database]
    begun = io.data.over(0.0, interval.end) if io.data else None
    if begun is not None and not begun.broken:
        moved = sum(begun.get(name) or 0.0 for name in (*SERVER.read_bytes, *SERVER.write_bytes))
        bounds.append(round(moved))
    return min(bounds, default=None)


def _warnings(found: ActiveSet, manifest: Mapping[str, Any]) -> Iterator[str]:
    """What fits into DRAM is the worse of the two, and says the other as well."""
    active = found.known_bytes
    if not active:
        return
    what = f"{size(active)}{' at most' if found.counted_bytes is None else ''}"
    if found.dram_bytes and active <= found.dram_bytes:
        yield (
            f"What was active ({what}) fits into the array’s DRAM ({size(found.dram_bytes)}): its DRAM was measured, "
            "not its disks or its flash. Take a larger database, or a smaller buffer pool."
        )
    elif found.flash_bytes and active <= found.flash_bytes:
        [first, *_] = flash_of(manifest)
        yield (
            f"What was active ({what}) fits wholly into the flash {first.kind} ({size(found.flash_bytes)}): once it is "
            "warm nothing waits for disks, and of larger data nothing is said."
        )


def _gauges(record: Record, interval: Interval) -> dict[str, np.ndarray]:
    """Values of the data device's samples within the interval, those that are known."""
    t = numbers(record, "device", "t")
    if t is None or not len(t):
        return {}
    roles, names = codes(record, "device", "role", len(t))
    if "data" not in names:
        return {}
    mine = (roles == names.index("data")) & (t >= interval.begin) & (t <= interval.end)
    found = {}
    for column in _GAUGES:
        values = numbers(record, "device", column)
        if values is None:
            continue
        known = values[mine]
        known = known[~np.isnan(known)]
        if len(known):
            found[column] = known
    return found


_GAUGES = ("active_extents_run", "active_extents_60s", "extent_bytes", "flash_used_bytes")
