"""The storage in the manifest of a run: devices, the array, its preparation, and probes."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from stallmark.record.manifest.course import ManifestPart
from stallmark.record.probe import DirectIo, ProbeResult

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


class AskedStep(ManifestPart):
    pattern: str
    outstanding: int


class ProbePlan(ManifestPart):
    """The planned steps of a probe, each of `seconds`."""

    seconds: float
    steps: tuple[AskedStep, ...]
