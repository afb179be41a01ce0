"""The state of emulated arrays in the file that is shared with servers: its layout, and the counters in it."""

from __future__ import annotations

from ctypes import Structure, c_char, c_uint8, c_uint64, sizeof
from dataclasses import asdict, dataclass, replace

# The layout of the state file: the mirror image of state.h.

MAGIC = int.from_bytes(b"STALLSD6", "little")
MAX_DEVICES = 8
MAX_PLACES = 16
MAX_SPINDLES = 64
MAX_CHANNELS = 64
PATH_MAX = 4096
BLOCK_BYTES = 8192
"""Bytes of a block of the cache, which has a slot for each."""
CACHE_SLOTS = 1 << 22
WAYS = 16
ACTIVE_EXTENT_BYTES = 64 << 10
_DIRTY_SLOTS = 1024
_TIER_SLOTS = 1 << 17
_ACTIVE_SLOTS = 1 << 20

NO_FLASH, CACHE, TIER = range(3)


def _counts(*names: str) -> tuple[tuple[str, type[c_uint64]], ...]:
    return tuple((name, c_uint64) for name in names)


class FlashModel(Structure):
    _fields_ = _counts(
        "use", "size", "extent_bytes", "read_ns", "write_ns", "ps_per_byte", "channels", "cycle_ns", "move"
    )


class Model(Structure):
    _fields_ = (
        *_counts("spindles", "read_ns", "write_ns", "sync_ns", "ps_per_byte", "revolution_ns", "seek_ns"),
        ("flash", FlashModel),
    )


class Tally(Structure):
    _fields_ = _counts("count", "bytes", "ns")


class _Spindle(Structure):
    _fields_ = _counts("next_free", "next_position", "cylinder")


class Flash(Structure):
    _fields_ = (
        *_counts("generation", "next_cycle", "used"),
        ("reads", Tally),
        ("raw_reads", Tally),
        *_counts("writes", "busy_ns", "hits", "misses", "evictions", "bytes_up", "bytes_down"),
        ("_channel_free", c_uint64 * MAX_CHANNELS),
    )

    @property
    def used_bytes(self) -> int:
        """Return the filled bytes; the content of an earlier generation is gone."""
        generation, used = divmod(int(self.used), 1 << 48)
        return used if generation == self.generation else 0


class _Extent(Structure):
    _fields_ = _counts("tag", "heat", "identity", "offset")


class Unique(Structure):
    _fields_ = _counts("mark", "count", "base")


class ActiveSet(Structure):
    _fields_ = (
        ("interval", Unique),
        ("window", Unique),
        ("run", Unique),
        *_counts("window_start", "last_window"),
        ("_slot", c_uint64 * _ACTIVE_SLOTS),
    )


class EmulatedDevice(Structure):
    _fields_ = (
        ("model", Model),
        ("reads", Tally),
        ("writes", Tally),
        ("syncs", Tally),
        ("raw_reads", Tally),
        ("raw_writes", Tally),
        ("_raw_syncs", Tally),
        *_counts("busy_ns", "late", "path_ns", "spindle_reads", "spindle_writes"),
        ("_spindle", _Spindle * MAX_SPINDLES),
        ("flash", Flash),
        ("_dirty", c_uint64 * _DIRTY_SLOTS),
        ("active", ActiveSet),
        ("_extent", _Extent * _TIER_SLOTS),
        ("_block", c_uint64 * CACHE_SLOTS),
        ("_hand", c_uint8 * (CACHE_SLOTS // WAYS)),
    )


class Place(Structure):
    _fields_ = (("device", c_uint64), ("path", c_char * PATH_MAX))


class SharedState(Structure):
    """The head of the file; `devices` records of EmulatedDevice follow."""

    _fields_ = (*_counts("magic", "size", "places", "devices"), ("place", Place * MAX_PLACES))


def size_of(devices: int) -> int:
    """Return the bytes of a state file."""
    return sizeof(SharedState) + devices * sizeof(EmulatedDevice)


# The counters of an emulated array, read from its shared state.

EXTENT_BYTES = ACTIVE_EXTENT_BYTES
"""Bytes of an extent of the active set."""
WINDOW_S = 60


@dataclass(frozen=True)
class FlashCounters:
    """Counters of an array's flash. All values only grow, except `used_bytes`, its fill level.

    `reads` are those of callers, `read_ns` the time they waited, queue included. `writes` covers fills of the cache,
    writes to extents on flash, and extents that moved up. `busy_ns` is the modelled service, summed over the channels.
    Hits and misses are reads, evictions blocks of 8 KiB. The `raw_` counters are the part of raw loads.
    """

    used_bytes: int
    reads: int
    read_ns: int
    writes: int
    busy_ns: int
    hits: int
    misses: int
    evictions: int
    bytes_up: int
    bytes_down: int
    raw_reads: int = 0
    raw_read_ns: int = 0


@dataclass(frozen=True)
class ArrayCounters:
    """Counters of an array since it was created; all values only grow.

    Dirty bytes of the page cache count as one write when a sync flushes them. The `_ns` of an operation are the
    nanoseconds its callers waited, queue included (for a sync, also the flushed bytes). The sum of all three is the
    integral of the queue depth over time. `busy_ns` is the modelled service alone, summed over the spindles. `late`
    counts the I/Os for which the real device took longer than the model: if they are many, the model was not what was
    measured. `flash` is None while the model has none. The `raw_` counters are the part of the reads and writes that
    raw loads made beside the server.
    """

    reads: int
    read_bytes: int
    read_ns: int
    writes: int
    write_bytes: int
    write_ns: int
    syncs: int
    sync_ns: int
    busy_ns: int
    late: int
    spindle_reads: int = 0
    spindle_writes: int = 0
    flash: FlashCounters | None = None
    raw_reads: int = 0
    raw_read_bytes: int = 0
    raw_read_ns: int = 0
    raw_writes: int = 0
    raw_write_bytes: int = 0
    raw_write_ns: int = 0


@dataclass(frozen=True)
class ActiveExtents:
    """The extents of 64 KiB that were read or written at least once, counted over three spans of time.

    No extent is counted twice; beyond 32 GiB some may be missed (model.h). Buffered files (the WAL) are left out: it is
    not known which of their bytes a sync flushes.
    """

    interval: int  # since the last reading
    window: int | None  # count of the last full minute; None before its end
    run: int  # since the model was engaged, the flash emptied, or, under a collector, the load began


def counters_of(device: EmulatedDevice) -> ArrayCounters:
    """Return the counters of an array, those of flash only if its present model has flash."""
    everything = all_counters_of(device)
    return replace(everything, flash=None) if device.model.flash.use == NO_FLASH else everything


def all_counters_of(device: EmulatedDevice) -> ArrayCounters:
    """Return the counters of an array, including those of flash that it had under an earlier model."""
    reads, writes, syncs = device.reads, device.writes, device.syncs
    return ArrayCounters(
        reads=reads.count,
        read_bytes=reads.bytes,
        read_ns=reads.ns,
        writes=writes.count,
        write_bytes=writes.bytes,
        write_ns=writes.ns,
        syncs=syncs.count,
        sync_ns=syncs.ns,
        busy_ns=device.busy_ns,
        late=device.late,
        spindle_reads=device.spindle_reads,
        spindle_writes=device.spindle_writes,
        flash=_flash_counters(device.flash),
        raw_reads=device.raw_reads.count,
        raw_read_bytes=device.raw_reads.bytes,
        raw_read_ns=device.raw_reads.ns,
        raw_writes=device.raw_writes.count,
        raw_write_bytes=device.raw_writes.bytes,
        raw_write_ns=device.raw_writes.ns,
    )


def _flash_counters(flash: Flash) -> FlashCounters:
    return FlashCounters(
        used_bytes=flash.used_bytes,
        reads=flash.reads.count,
        read_ns=flash.reads.ns,
        writes=flash.writes,
        busy_ns=flash.busy_ns,
        hits=flash.hits,
        misses=flash.misses,
        evictions=flash.evictions,
        bytes_up=flash.bytes_up,
        bytes_down=flash.bytes_down,
        raw_reads=flash.raw_reads.count,
        raw_read_ns=flash.raw_reads.ns,
    )


def since(before: ArrayCounters, now: ArrayCounters) -> ArrayCounters:
    """Return the work of an array from `before`, which has counters of flash, to `now`; `used_bytes` is the
    present one."""
    flash = None
    if now.flash and before.flash:
        flash = replace(FlashCounters(**_increments(before.flash, now.flash)), used_bytes=now.flash.used_bytes)
    return ArrayCounters(**_increments(replace(before, flash=None), replace(now, flash=None)), flash=flash)


def _increments(before: ArrayCounters | FlashCounters, now: ArrayCounters | FlashCounters) -> dict[str, int]:
    then = asdict(before)
    return {name: value - then[name] for name, value in asdict(now).items() if value is not None}


def next_interval(active: ActiveSet, now: float) -> ActiveExtents:
    """Return the active set since the last call and begin the next interval. `now`: seconds of CLOCK_MONOTONIC."""
    interval = _restart(active.interval)
    if now - active.window_start / 1e9 >= WINDOW_S:
        in_window = _restart(active.window)
        if active.window_start:
            active.last_window = in_window + 1  # 0: none yet
        active.window_start = round(now * 1e9)
    window = active.last_window - 1 if active.last_window else None
    return ActiveExtents(interval, window, active.run.count - active.run.base)


def restart_run(active: ActiveSet, now: float) -> None:
    """Start the active set over: from `now` on, every extent counts as new when it is touched."""
    for part in (active.interval, active.window, active.run):
        _restart(part)
    active.window_start, active.last_window = round(now * 1e9), 0


def _restart(part: Unique) -> int:
    # The mark first: extents touched in between belong to the new interval, and show in its figure.
    part.mark += 1
    counted, base = part.count, part.base
    part.base = counted
    return counted - base
