"""Emulated arrays of known slowness under the embedded PostgreSQL, without root (Linux only).

The server process is started with an interposer (interposer.c). It gives the I/O of chosen directories the service
times and queues of an emulated array: spindles, and flash as a read cache or as a tier. The header of interposer.c
specifies exactly which I/Os are slowed and counted, model.h how. Everything measured on an array is EMULATED, and must
be labelled so.

    with EmulatedArrays.create(Path("/dev/shm/arrays"), {"data": data, "wal": data / "pg_wal"},
                            {"data": ArrayModel(1, 8, 8, 8, 100), "wal": None}, build_dir=cache) as arrays:
        server = subprocess.Popen([...], env=os.environ | arrays.environment())
        arrays.set_model("data", None)      # while it runs
        arrays.counters()["data"].reads
"""

from __future__ import annotations

from dataclasses import dataclass

from stallmark.errors import StallmarkError
from stallmark.storage.emulator import layout

_LONGEST_MS = 60_000
MIB = 1 << 20
SMALLEST_FLASH = MIB
LARGEST_FLASH = layout.CACHE_SLOTS * layout.BLOCK_BYTES
_SMALLEST_EXTENT, _LARGEST_EXTENT = 64 << 10, 4 * MIB
_EXTENTS = 256
"""Least number of extents of a tier, unless they would be smaller than 64 KiB: with few, a cycle moves all or nothing.
"""
_CYCLES_TO_FILL = 16


class EmulatedArrayError(StallmarkError):
    """An error: an emulated array is not possible. The message is one sentence with the remedy."""


class NoCompiler(EmulatedArrayError):
    """The error that the interposer could not be compiled."""


class UnsupportedSystem(EmulatedArrayError):
    """The error that this operating system does not let I/O be interposed."""


@dataclass(frozen=True)
class FlashCache:
    """A flash read cache of `size` bytes; model.h describes blocks, eviction and population.

    The two times are milliseconds for each I/O. `mb_per_s` is 10^6 bytes per second of one of the `channels`, each a
    server with a queue. The default of half a millisecond is slower than an SSD: a sleep cannot emulate times shorter
    than a process needs to wake up.
    """

    size: int
    read_ms: float = 0.5
    write_ms: float = 0.5
    mb_per_s: float = 400
    channels: int = 8

    def __post_init__(self) -> None:
        _require_flash("cache", self)


@dataclass(frozen=True)
class FlashTier:
    """A flash tier of `size` bytes; the times, `mb_per_s` and `channels` are as a cache's.

    Every `cycle_s` seconds the hottest extents move up, at most `move` bytes, and as much down; None is a sixteenth of
    the size.
    """

    size: int
    read_ms: float = 0.5
    write_ms: float = 0.5
    mb_per_s: float = 400
    channels: int = 8
    cycle_s: float = 5.0
    move: int | None = None

    def __post_init__(self) -> None:
        _require_flash("tier", self)
        _require_number("tier.cycle_s", self.cycle_s, 0.01, 86_400)
        if self.move is not None:
            _require_whole("tier.move", self.move, self.extent_bytes, self.size)

    @property
    def extent_bytes(self) -> int:
        """Return the unit of migration: a power of two from 64 KiB to 4 MiB, small enough for at least 256 units if
        possible.
        """
        fitting = 1 << ((self.size // _EXTENTS).bit_length() - 1)
        return min(max(fitting, _SMALLEST_EXTENT), _LARGEST_EXTENT)

    @property
    def moved_bytes(self) -> int:
        """Return the most bytes that a cycle moves up."""
        return max(self.extent_bytes, self.size // _CYCLES_TO_FILL) if self.move is None else self.move


@dataclass(frozen=True)
class ArrayModel:
    """The service times of an array.

    A spindle is one server with a queue, first in, first out; I/O is striped over the spindles by 1 MiB. The times are
    milliseconds for each I/O; `mb_per_s` is 10^6 bytes per second of one spindle. An I/O costs its positioning time
    plus its bytes / bandwidth; one that continues where its spindle stopped costs only the latter. Positioning takes
    `read_ms` or `write_ms`. With `rpm` it takes a seek instead (`seek_ms` on average over random places) and then the
    platter's turn to the place. An array has a `cache`, a `tier`, or neither.
    """

    spindles: int
    read_ms: float | None = None
    write_ms: float | None = None
    sync_ms: float | None = None
    mb_per_s: float | None = None
    rpm: float | None = None
    seek_ms: float | None = None
    cache: FlashCache | None = None
    tier: FlashTier | None = None

    def __post_init__(self) -> None:
        _require_whole("spindles", self.spindles, 1, layout.MAX_SPINDLES)
        mechanical = self.rpm is not None or self.seek_ms is not None
        if mechanical and (self.read_ms is not None or self.write_ms is not None):
            raise ValueError(
                "read_ms and write_ms are fixed times, while rpm and seek_ms determine a disk's times: give one pair "
                "or the other."
            )
        for name in (*(("seek_ms",) if mechanical else ("read_ms", "write_ms")), "sync_ms"):
            _require_number(name, getattr(self, name), 0, _LONGEST_MS)
        if mechanical:
            _require_number("rpm", self.rpm, 1, 1_000_000)
        _require_number("mb_per_s", self.mb_per_s, 0.001, 100_000)
        if self.cache and self.tier:
            raise ValueError("An array has a cache or a tier, not both: leave one out.")

    @property
    def flash(self) -> FlashCache | FlashTier | None:
        """Return the flash, as a cache or as a tier; None without."""
        return self.cache or self.tier


def _require_flash(name: str, flash: FlashCache | FlashTier) -> None:
    _require_whole(f"{name}.size", flash.size, SMALLEST_FLASH, LARGEST_FLASH)
    for time in ("read_ms", "write_ms"):
        _require_number(f"{name}.{time}", getattr(flash, time), 0, _LONGEST_MS)
    _require_number(f"{name}.mb_per_s", flash.mb_per_s, 0.001, 100_000)
    _require_whole(f"{name}.channels", flash.channels, 1, layout.MAX_CHANNELS)


def _in_words(value: object) -> str:
    return "empty" if value is None else repr(value)


def _require_whole(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low:,} to {high:,}, not {_in_words(value)}.")


def _require_number(name: str, value: object, low: float, high: float) -> None:
    # NaN fails the comparison, too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:,} to {high:,}, not {_in_words(value)}.")


DISK_SHELF = ArrayModel(spindles=12, rpm=10_000, seek_ms=4, sync_ms=0, mb_per_s=150)
"""Disks of the time when flash appeared: 10,000 turns a minute, 4 ms a seek."""


def write_model(target: layout.Model, model: ArrayModel | None) -> None:
    """Write a model into an array's shared state; None is the bare device, whose other values stay.

    `spindles` is written last: until then the device is bare. Others see these stores in their order on
    x86-64 (model.h).
    """
    if model is None:
        target.spindles = 0
        return
    assert model.sync_ms is not None and model.mb_per_s is not None
    target.read_ns, target.write_ns = _ns(model.read_ms), _ns(model.write_ms)
    target.sync_ns, target.ps_per_byte = _ns(model.sync_ms), _ps_per_byte(model.mb_per_s)
    target.seek_ns = _ns(model.seek_ms)
    target.revolution_ns = round(60e9 / model.rpm) if model.rpm else 0
    _write_flash(target.flash, model.flash)
    target.spindles = model.spindles


def _write_flash(target: layout.FlashModel, flash: FlashCache | FlashTier | None) -> None:
    target.use = layout.NO_FLASH
    if flash is None:
        return
    target.size, target.channels = flash.size, flash.channels
    target.read_ns, target.write_ns = _ns(flash.read_ms), _ns(flash.write_ms)
    target.ps_per_byte = _ps_per_byte(flash.mb_per_s)
    if isinstance(flash, FlashTier):
        target.extent_bytes, target.move = flash.extent_bytes, flash.moved_bytes
        target.cycle_ns = round(flash.cycle_s * 1e9)
    target.use = layout.TIER if isinstance(flash, FlashTier) else layout.CACHE


def _ns(milliseconds: float | None) -> int:
    return round((milliseconds or 0) * 1e6)


def _ps_per_byte(mb_per_s: float) -> int:
    return round(1e6 / mb_per_s)
