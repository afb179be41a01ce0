"""The layout of the state file: the mirror image of state.h."""

from __future__ import annotations

from ctypes import Structure, c_char, c_uint8, c_uint64, sizeof

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
    """The head of the file; as many EmulatedDevice as `devices` says follow it."""

    _fields_ = (*_counts("magic", "size", "places", "devices"), ("place", Place * MAX_PLACES))


def size_of(devices: int) -> int:
    """Return the bytes of a state file."""
    return sizeof(SharedState) + devices * sizeof(EmulatedDevice)
