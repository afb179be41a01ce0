"""The storage in the manifest of a run: devices, the array, its preparation, and the results of probes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import ceil
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from stallmark.record.manifest.course import ManifestPart
from stallmark.stats.thresholds import SAMPLES_BEYOND


# The outcome of direct I/O in a folder, as it was tried before a measurement.
@dataclass(frozen=True)
class DirectIo:
    """The path of I/O with O_DIRECT: past the page cache of this machine or through it."""

    goes: Literal["past", "through", "unknown"]
    file_system: str | None = None  # the type, with `data=journal` if it is mounted so
    loop: str | None = None  # the loop device below it, whose file is accessed through the cache


# The results of a probe of raw storage: plain values, as they are recorded and read back.
#
# A step is one pattern at one number of outstanding I/Os, for some seconds. It is a closed loop, in which a new I/O is
# issued whenever one ends.

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


# The storage under the server.

Role = Literal["data", "wal"]


class ServiceLevelObjective(ManifestPart):
    """A limit on the time of reads, None for none, and limits on the percentiles of transactions, in the scenario's
    words. Its name is that of a ready-made level, or "read" for limits of the scenario's own."""

    name: str
    read_ms: float | None
    ideal_ms: float | None = None
    percentile: str
    transactions: tuple[str, ...] = ()


class Flash(ManifestPart):
    """The flash of an emulated array; only a tier has `cycle_s` and `move`."""

    size: int
    read_ms: float
    write_ms: float
    mb_per_s: float
    channels: int
    cycle_s: float | None = None
    move: int | None = None


class EmulatedArray(ManifestPart):
    """An array that Stallmark emulated, in the server's processes or as a block device of the system."""

    block_device: bool = False
    name: str | None = None
    spindles: int
    read_ms: float | None = None
    write_ms: float | None = None
    sync_ms: float | None = None
    mb_per_s: float | None = None
    rpm: float | None = None
    seek_ms: float | None = None
    cache: Flash | None = None
    tier: Flash | None = None


Limited = Literal["reads", "writes", "bytes read", "bytes written"]


class IoLimit(ManifestPart):
    """A limit per second on the server's I/O to a device, set by a control group. `file` is the file that holds it."""

    limited: Limited
    per_s: int
    file: str


class Device(ManifestPart):
    """The storage under a set of files: a block device as the system describes it with its file system, an emulated
    array, or both.

    Attributes:
        disk: the whole disk, for a partition too.
        limits: limits on the server's I/O when the run began.
        tags: number of I/Os that its queue takes at once.
        why: the reason for having no facts about it.
    """

    name: str | None = None
    disk: str | None = None
    model: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    scheduler: str | None = None
    write_cache: str | None = None
    file_system: str | None = None
    mount_options: str | None = None
    emulated_array: EmulatedArray | None = None
    limits: tuple[IoLimit, ...] = ()
    tags: int | None = None
    why: str | None = None

    @property
    def emulated_in_process(self) -> EmulatedArray | None:
        """Return the emulated array, unless it is a block device, whose I/O the kernel counts as of any other."""
        array = self.emulated_array
        return None if array is None or array.block_device else array


class Devices(ManifestPart):
    """The storage under data and log, None if the server is not Stallmark's own or the storage is unknown.

    Attributes:
        folders: the folders of the files.
        built_in: the folders of the embedded server itself, with "wal" if its log has a folder of its own.
        direct_io: of the data files, which the embedded server reads past the page cache.
    """

    data: Device | None = None
    wal: Device | None = None
    folders: dict[Role, str] = {}
    built_in: dict[Role, str] = {}
    direct_io: DirectIo | None = None

    def for_role(self, role: Role) -> Device:
        return (self.data if role == "data" else self.wal) or Device()


class Array(ManifestPart):
    """A real array as the scenario describes it; further keys are the operator's words."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]

    raid: str | None = None
    drives: str | None = None
    firmware: str | None = None
    write_cache: str | None = None
    reduction: str | None = None
    dram_bytes: int | None = None
    flash_cache_bytes: int | None = None
    flash_tier_bytes: int | None = None


class HookResult(ManifestPart):
    """The result of a hook before the variant: a command with its output, or a question with its answer."""

    command: tuple[str, ...] | None = None
    output: str = ""
    ask: str | None = None
    answer: str | None = None
    seconds: float


class Precondition(ManifestPart):
    """The preconditioning of storage: a file was filled, then overwritten at random in rounds until the mean write time
    was steady."""

    size_bytes: int
    round_s: float
    rounds_ms: Annotated[tuple[float, ...], Field(min_length=1)]
    steady: bool


class Probes(ManifestPart):
    """Probes of the storage around the run."""

    before: ProbeResult | None = None
    after: ProbeResult | None = None
