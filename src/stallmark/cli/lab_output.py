"""The lab in words and in JSON, and its options as a model."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import humanize

from stallmark.errors import StallmarkError
from stallmark.stats.thresholds import LATE
from stallmark.storage.block_device import Facts
from stallmark.storage.block_device.lifecycle import Done
from stallmark.storage.emulator import DeviceModel, FlashCache, FlashTier
from stallmark.storage.emulator.models import SMALLEST_FLASH

DEFAULT = DeviceModel(spindles=12, rpm=10_000, seek_ms=4, sync_ms=0, mb_per_s=150)
"""A shelf of disks as they were when flash came: 10,000 turns a minute, 4 ms a seek."""

_SLOWER = 0.1
"""By which a read may take longer than the array's: within that the lab is verified against its model."""


def model_of(options: Mapping[str, Any], base: DeviceModel = DEFAULT, *, no_flash: bool = False) -> DeviceModel:
    """`base` with what the options say (None: nothing). Raises StallmarkError for an array that cannot be."""
    sizes = {name: options[name] for name in ("cache", "tier") if options[name] is not None}
    if len(sizes) + no_flash > 1:
        raise StallmarkError("An array has a cache, a tier or neither: give one of --cache, --tier and --no-flash.")
    said = {name: value for name, value in options.items() if value is not None and name not in sizes}
    try:
        if sizes or no_flash:
            said |= {"cache": None, "tier": None}
        if "cache" in sizes:
            said["cache"] = FlashCache(sizes["cache"])
        elif "tier" in sizes:
            said["tier"] = FlashTier(sizes["tier"])
        return replace(base, **said)
    except ValueError as error:
        raise StallmarkError(str(error)) from None


def sentence(facts: Facts, why_broken: str | None) -> str:
    """What it is, on one line."""
    state = f"broken: {why_broken}; `stallmark lab destroy {facts.name}` removes it" if why_broken else facts.loop
    return f"{facts.name} (EMULATED), {state}: {array(facts.model)}."


def unreadable(name: str, why: str) -> str:
    """The same, of one of which nothing can be read."""
    return f"{name} (EMULATED), broken: {why}"


def array(model: DeviceModel) -> str:
    """An array in words."""
    turns = f"{model.rpm:,.0f} rpm, {model.seek_ms:g} ms a seek" if model.rpm else f"{model.read_ms:g} ms a read"
    disks = f"{model.spindles} spindle{'s' if model.spindles > 1 else ''} of {turns}, {model.mb_per_s:g} MB/s each"
    if model.flash is None:
        return f"{disks}, no flash"
    use = "cache" if model.cache else "tier"
    return f"{disks}, a flash {use} of {_bytes(model.flash.size)}"


def sentences(done: Done) -> Iterator[str]:
    """What it has done since it became what it is."""
    counters, path_ms, waited_ms = done
    yield "Since it was created, or last changed:"
    for name in ("read", "write"):
        count, ns = getattr(counters, f"{name}s"), getattr(counters, f"{name}_ns")
        mean = f", {ns / count / 1e6:.2f} ms each" if count else ""
        yield f"{count:,} {name}s{mean}."
    yield f"These times have in them what the way takes, {path_ms:.2f} ms; the array waits that much less."
    if waited_ms is not None and waited_ms > counters.read_ns / counters.reads / 1e6 * (1 + _SLOWER):
        yield (
            f"At the block device a read took {waited_ms:.2f} ms: the way was longer than measured, and who read "
            "waited longer than the array says."
        )
    if (flash := counters.flash) is not None:
        share = f", {flash.reads / counters.reads:.0%} of all" if counters.reads else ""
        yield f"Flash: {_bytes(flash.used_bytes)} filled; {flash.reads:,} reads served{share}."
    if counters.late:
        ios = counters.reads + counters.writes + counters.syncs
        slow = ": this machine was too slow for it" if counters.late > LATE * ios else ""
        yield f"{counters.late:,} of {ios:,} I/Os took longer than the array would have{slow}."


def long_way(path_ms: float) -> str | None:
    """A warning where the way to the array takes longer than a read of its flash may in all."""
    if path_ms < FlashCache(SMALLEST_FLASH).read_ms:
        return None
    return (
        f"The way to the array and back takes {path_ms:.2f} ms, longer than a flash read: was this machine busy? "
        "Destroy it and create it again when it is quiet."
    )


def as_json(name: str, facts: Facts | None, why_broken: str | None) -> dict[str, Any]:
    """For machines; without `facts`, nothing can be read of it."""
    return {
        "name": name,
        "emulated": True,
        "device": facts and facts.loop,
        "size_bytes": facts and facts.size,
        "broken": why_broken,
        "array": facts and asdict(facts.model),
    }


def _bytes(size: int) -> str:
    return humanize.naturalsize(size, binary=True)
