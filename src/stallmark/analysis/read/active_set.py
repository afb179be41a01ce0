"""The active set, compared with the DRAM and the flash that could hold it, and the use of flash.

The active set is the data that the server read from its storage or wrote to it, counted in extents. Each extent counts
once, however often it was touched. Emulated arrays count extents. For a real array only a bound is known: no more than
the bytes moved, and no more than the database.

Data that fit into an array's DRAM need not wait for its disks. Data that fit into flash show only that flash is fast.

The values that the analysis returns on the active set and on flash, as the report and `--json` show them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, NamedTuple

import numpy as np

from stallmark import format
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.io import Io
from stallmark.analysis.read.rises import Codes
from stallmark.analysis.read.server_summary import SERVER, delta_over
from stallmark.analysis.read.times import Interval, ReadKind, numbers_of
from stallmark.format import Shown
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record
from stallmark.stats.thresholds import ACTIVE_COUNTED, WARMING, WARMING_ERRORS


@dataclass(frozen=True)
class ActiveSet:
    """The active set in bytes, from the beginning of the run to the end of a step's measured interval. None:
    not known."""

    counted_bytes: int | None  # different extents that were read or written
    minute_bytes: Annotated[int | None, Shown("in a minute", format.size)]
    """The same, in a minute: the median over the measured interval's full minutes."""
    extent_bytes: int | None
    at_most_bytes: int | None  # bound if not counted: the bytes moved, or the database
    dram_bytes: int | None
    flash_bytes: int | None
    database_bytes: Annotated[int | None, Shown("database", format.size)]
    warnings: list[Finding]

    @property
    def known_bytes(self) -> int | None:
        """Return the bytes counted, or else the bound, or None if neither is known."""
        return self.at_most_bytes if self.counted_bytes is None else self.counted_bytes

    @property
    def fits_dram(self) -> bool:
        """Return True if the array's DRAM holds the complete active set."""
        return self._fits(self.dram_bytes)

    @property
    def fits_flash(self) -> bool:
        return self._fits(self.flash_bytes)

    def _fits(self, room: int | None) -> bool:
        return bool(room and self.known_bytes and self.known_bytes <= room)


@dataclass(frozen=True)
class FlashUse:
    """The use of a device's flash in the measured interval of a step."""

    kind: str  # "cache" or "tier"
    size_bytes: int
    share: Annotated[float | None, Shown("reads it answered", format.share)]
    read_ms: Annotated[float | None, Shown("ms of these")]  # mean
    spindle_read_ms: Annotated[float | None, Shown("ms of the rest")]  # mean
    evictions_per_s: Annotated[float | None, Shown("evicted/s")]  # blocks, of a cache
    up_bytes: Annotated[int | None, Shown("moved up", format.size)]  # to flash, of a tier
    down_bytes: Annotated[int | None, Shown("moved down", format.size)]
    used_bytes: int | None  # bytes at the end
    first_half: float | None = None  # `share` in each half of the interval
    second_half: float | None = None
    warming: bool = False  # whether it rose from the one to the other by more than chance, and more than little


def active_set(record: Record, io: Io, interval: Interval) -> ActiveSet:
    manifest = record.manifest
    gauges = _gauges(record, interval) if is_data_emulated(manifest) else {}
    extent = gauges.get("extent_bytes")
    run, minute = (_bytes_of_extents(gauges.get(name), extent) for name in _ACTIVE)
    counted = None if run is None else int(run.max())
    database = manifest.database.bytes_before
    flash = sum(layer.size_bytes for layer in flash_of(manifest)) or None
    summary = ActiveSet(
        counted_bytes=counted,
        minute_bytes=None if minute is None else int(np.median(minute)),
        extent_bytes=None if extent is None else int(extent[-1]),
        at_most_bytes=_upper_bound(io, interval, database) if counted is None else None,
        dram_bytes=dram_of(manifest),
        flash_bytes=flash,
        database_bytes=database,
        warnings=[],
    )
    summary.warnings.extend(_warnings(summary, manifest))
    return summary


def _bytes_of_extents(extents: np.ndarray | None, extent_bytes: np.ndarray | None) -> np.ndarray | None:
    """Return the bytes of a number of extents, or None if some were not counted."""
    if extents is None or extent_bytes is None or not len(extents) or not len(extent_bytes):
        return None
    counted_bytes: np.ndarray = extents * extent_bytes[-1]
    return counted_bytes if counted_bytes.max() <= ACTIVE_COUNTED else None


def flash_use(record: Record, io: Io, interval: Interval) -> FlashUse | None:
    """Return the use of flash in an interval; None without flash, or where its use is not counted."""
    device, flash = delta_over(io.data_device, interval), flash_of(record.manifest)
    if not flash or device is None or device.broken or "flash_reads" not in device.values:
        return None
    reads, hits = device["reads"], device["flash_reads"]
    misses = reads - hits
    used = _gauges(record, interval).get("flash_used_bytes")
    evictions = device.values.get("cache_evictions")
    up, down = device.values.get("tier_bytes_up"), device.values.get("tier_bytes_down")
    # A cache evicts blocks; a tier migrates them.
    is_tier = flash[0].kind == "tier"
    middle = (device.begin + device.end) / 2
    # A share that still rises from half to half shows a warming cache.
    halves = [_answered(io, begin, end) for begin, end in ((device.begin, middle), (middle, device.end))]
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
        first_half=halves[0].share,
        second_half=halves[1].share,
        warming=_warming(*halves),
    )


class _Answered(NamedTuple):
    """The reads of a part of an interval, and the share that flash answered."""

    reads: float
    share: float | None


def _answered(io: Io, begin: float, end: float) -> _Answered:
    part = io.data_device.delta(begin, end) if io.data_device else None
    if part is None or not part["reads"]:
        return _Answered(0.0, None)
    return _Answered(part["reads"], part["flash_reads"] / part["reads"])


def _warming(first: _Answered, second: _Answered) -> bool:
    if first.share is None or second.share is None:
        return False
    before, after = 1 - first.share, 1 - second.share
    error = sqrt(before * first.share / first.reads + after * second.share / second.reads)
    return before - after > max(WARMING * before, WARMING_ERRORS * error)


class ActiveOverTime(NamedTuple):
    """The active set in bytes at the end of each second of a run, shape (seconds,). NaN before anything is known; None:
    not known."""

    run: np.ndarray | None  # since the beginning: counted, or a bound where it is not counted
    minute: np.ndarray | None  # counted in the last full minute


def active_over_time(record: Record, io: Io, seconds: int) -> ActiveOverTime:
    """Return the active set at the end of each second of a run, as it grows."""
    gauges = _all_gauges(record) if is_data_emulated(record.manifest) else {}
    ends = np.arange(1, seconds + 1)
    unknown = (None, None)
    _, extent = gauges.get("extent_bytes", unknown)
    lines = []
    for name in _ACTIVE:
        t, values = gauges.get(name, unknown)
        counted = _bytes_of_extents(values, extent)
        lines.append(None if t is None or counted is None else _latest_value(t, counted, ends))
    if lines[0] is not None:
        return ActiveOverTime(*lines)
    return ActiveOverTime(_bound_by_bytes_moved(record, io, ends), None)


def _latest_value(t: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the last value known at each time; NaN before the first."""
    last = np.searchsorted(t, times, side="right") - 1
    latest: np.ndarray = np.where(last >= 0, values[np.maximum(last, 0)], np.nan)
    return latest


def _bound_by_bytes_moved(record: Record, io: Io, ends: np.ndarray) -> np.ndarray | None:
    """Return a bound on the active set at each second: the bytes read and written since the first sample, and no more
    than the database. None if unknown."""
    if io.data is None or not len(io.data.t) or io.data.breaks.any():
        return None
    totals = [total for name in _MOVED if (total := io.data.totals.get(name)) is not None]
    if not totals:
        return None
    moved = np.interp(ends, io.data.t, np.sum(totals, axis=0))
    database = record.manifest.database.bytes_before
    return np.minimum(moved, database) if database else moved


def _upper_bound(io: Io, interval: Interval, database: int | None) -> int | None:
    """Return a bound on the active set in bytes, warm-up included, because a cache has seen that too; None if
    unknown."""
    bounds = [] if not database else [database]
    begun = io.data.delta(0.0, interval.end) if io.data else None
    if begun is not None and not begun.broken:
        moved = sum(begun.values.get(name) or 0.0 for name in _MOVED)
        bounds.append(round(moved))
    return min(bounds, default=None)


def _warnings(summary: ActiveSet, manifest: Manifest) -> Iterator[Finding]:
    """Yield a caution where the active set fits into DRAM or else, which is less bad, into flash."""
    if not (active := summary.known_bytes):
        return
    facts = {"active_bytes": active, "at_most": summary.counted_bytes is None}
    if summary.fits_dram:
        yield caution(ReadKind.ACTIVE_FITS_DRAM, **facts, dram_bytes=summary.dram_bytes)
    elif summary.fits_flash:
        flash = "+".join(layer.kind for layer in flash_of(manifest))
        yield caution(ReadKind.ACTIVE_FITS_FLASH, **facts, flash=flash, flash_bytes=summary.flash_bytes)


def _gauges(record: Record, interval: Interval) -> dict[str, np.ndarray]:
    """Return the known values of the data device's samples within the interval, by column."""
    gauges = {}
    for column, (t, values) in _all_gauges(record).items():
        within = values[(t >= interval.begin) & (t <= interval.end)]
        if len(within):
            gauges[column] = within
    return gauges


def _all_gauges(record: Record) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the times and the known values of the data device's samples, by column."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    roles = Codes()
    for batch in record.batches("device", ["t", "role", *_GAUGES]):
        t, of_row = numbers_of(batch, "t"), roles.codes(batch, "role")
        mine = np.isin(of_row, [code for code, name in enumerate(roles.names) if name in ("data", "data+wal")])
        for column in _GAUGES:
            values = numbers_of(batch, column)
            if t is not None and values is not None:
                known = mine & ~np.isnan(values)
                parts.setdefault(column, []).append((t[known], values[known]))
    return {
        column: (np.concatenate([t for t, _ in chunks]), np.concatenate([values for _, values in chunks]))
        for column, chunks in parts.items()
    }


_ACTIVE = ("active_extents_run", "active_extents_60s")
_GAUGES = (*_ACTIVE, "extent_bytes", "flash_used_bytes")
_MOVED = (*SERVER.read_bytes, *SERVER.write_bytes)
