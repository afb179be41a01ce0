"""The results of a probe of raw storage: plain values, as they are recorded and read back.

A step is one pattern at one number of outstanding I/Os, for some seconds. It is a closed loop, in which a new I/O is
issued whenever one ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import ceil
from typing import Literal

from stallmark.stats.thresholds import SAMPLES_BEYOND


# The outcome of direct I/O in a folder, as it was tried before a measurement.
@dataclass(frozen=True)
class DirectIo:
    """The path of I/O with O_DIRECT: past the page cache of this machine or through it."""

    goes: Literal["past", "through", "unknown"]
    file_system: str | None = None  # the type, with `data=journal` if it is mounted so
    loop: str | None = None  # the loop device below it, whose file is accessed through the cache


PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Pattern:
    """A kind of I/O."""

    name: str
    operation: str  # "read" or "write"
    order: str  # "random" or "sequential"
    block_bytes: int

    @property
    def reads(self) -> bool:
        return self.operation == "read"

    @property
    def random(self) -> bool:
        return self.order == "random"

    @property
    def title(self) -> str:
        """Return the pattern in words: 8 KiB random read."""
        size = self.block_bytes
        block = f"{size // 2**20} MiB" if size % 2**20 == 0 else f"{size // 1024} KiB"
        return f"{block} {self.order} {self.operation}"


@dataclass(frozen=True)
class Asked:
    """A step of a probe before it is measured."""

    pattern: Pattern
    outstanding: int


@dataclass(frozen=True)
class ProbeStep:
    """A step as measured. Latency is from issuing an I/O to its end, in ms."""

    pattern: Pattern
    outstanding: int
    seconds: float
    ios: int
    bytes: int
    mean_ms: float
    histogram: tuple[tuple[float, int], ...] = ()
    """Pairs of ms and the number of I/Os with about that latency, shortest first."""
    windows: tuple[tuple[float, float], ...] = ()
    """Pairs of the end of a window, in seconds since the step began, and its I/Os per second; empty if the tool reports
    none."""
    device_bytes: int | None = None
    """Bytes that the block device counted meanwhile, in the step's direction, of everybody. None if unknown."""

    @property
    def iops(self) -> float:
        return self.ios / self.seconds

    @property
    def mb_per_s(self) -> float:
        """Return 10^6 bytes per second."""
        return self.bytes / self.seconds / 1e6

    @property
    def latency_ms(self) -> dict[str, float | None]:
        """Return percentiles and the longest latency, in ms; a percentile is None if the sample is too small for it."""
        percentiles = {name: self.percentile_ms(share) for name, share in PERCENTILES.items()}
        return percentiles | {"max": self.histogram[-1][0] if self.histogram else None}

    def percentile_ms(self, share: float) -> float | None:
        """Return the latency that `share` of the I/Os did not exceed, in ms; None for too small a sample."""
        counts = [count for _, count in self.histogram]
        size = sum(counts)
        if not size or size < round(SAMPLES_BEYOND / (1 - share), 6):
            return None
        rank = ceil(round(share * size, 6))
        return next(ms for (ms, _), seen in zip(self.histogram, accumulate(counts), strict=True) if seen >= rank)


@dataclass(frozen=True)
class ProbeResult:
    """A probe of raw storage: the tool, the device, and the measured steps."""

    tool: str
    how: str  # "libaio": asynchronous; "psync": a thread for each outstanding I/O; "diskspd"
    emulated: bool
    device: str | None  # model of an emulated array in words, or name of the block device; None if unknown
    place: str  # the probed folder, file or device
    file_bytes: int  # the probed size
    started: str  # UTC, ISO 8601
    steps: tuple[ProbeStep, ...]
    direct_io: DirectIo | None = None
    """None on an emulated array, which keeps its own time, and if direct I/O was not tried."""

    def curves(self) -> dict[Pattern, list[ProbeStep]]:
        """Return the steps of each pattern, fewest outstanding first; patterns in the order they were measured."""
        by_pattern: dict[Pattern, list[ProbeStep]] = {}
        for step in self.steps:
            by_pattern.setdefault(step.pattern, []).append(step)
        return {pattern: sorted(steps, key=lambda s: s.outstanding) for pattern, steps in by_pattern.items()}


def coarser(histogram: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Return the same counts in bins of two significant digits: a tool's own bins are finer than needed."""
    rounded = [(float(f"{ms:.2g}"), count) for ms, count in sorted(histogram)]
    return tuple((ms, sum(count for _, count in bins)) for ms, bins in groupby(rounded, key=lambda bin: bin[0]))
