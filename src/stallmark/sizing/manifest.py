"""The manifest of a sizing, `sizing.json`: the demand of a profile, the replay of its I/O, and the stand-in's load.

A level is a multiple of the demand: at 1 the candidate gets the I/O of the profile's busiest windows, at 1.5 half as
much again. The records of the stand-in are in folders next to the manifest.
"""

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from stallmark.record.files import read_model, write_whole
from stallmark.record.manifest.course import Machine, ManifestPart, Moment
from stallmark.record.manifest.storage import Devices, DirectIo, ServiceLevelObjective
from stallmark.record.manifest.workload import LevelSeen, LimitSeen

FORMAT: Final = 1
StreamName = Literal["reads", "writes", "log"]
Outcome = Literal["found", "at_least", "none", "unconfirmed"]
Decides = Literal["mean", "percentile"]
"""The statistic of reads that decides whether a level of the replay holds."""


class Piece(ManifestPart):
    """One interval of a window, per second: reads and writes of data and other files, and writes of the log."""

    seconds: float
    reads: float
    read_bytes: float
    writes: float
    write_bytes: float
    log_writes: float
    log_bytes: float


Measured = Literal[
    "ios_per_s", "reads_per_s", "writes_per_s", "log_writes_per_s", "read_bytes_per_s", "write_bytes_per_s",
    "log_bytes_per_s",
]  # fmt: skip
"""A measure of the demand. Writes and their bytes are of data, and `ios_per_s` is all reads, writes and log writes."""


class Window(ManifestPart):
    """A busy time of the profile."""

    begin: float
    """Seconds since 1970."""
    because: Measured | Literal["together"]
    """The measure that is highest in this window, or `together`: the combination of several that no other played window
    reaches."""
    pieces: tuple[Piece, ...]
    read_ms: float | None = None
    """The mean time of data reads in production; null if unknown, or in older records."""

    @property
    def seconds(self) -> float:
        return sum(piece.seconds for piece in self.pieces)

    def mean(self, name: str) -> float:
        """Return the mean per second of a piece's column."""
        return sum(piece.seconds * getattr(piece, name) for piece in self.pieces) / self.seconds


class Peak(ManifestPart):
    """The highest mean of a measure in any window of the profile."""

    measure: Measured
    begin: float
    """Seconds since 1970."""
    per_s: float
    played: float
    """The highest mean in a played window."""


class Beyond(ManifestPart):
    """The window of the profile that is least like any played window: it exceeds the nearest by the largest share of a
    peak."""

    begin: float
    measure: Measured
    """The measure in which it exceeds the nearest played window the most."""
    share: float
    """The excess, as a share of that measure's peak."""


class Demand(ManifestPart):
    """The demand of a profile. Rates are of the first window, the one with the most I/Os; None is unknown."""

    profile: str
    """A short hash of the profile's start, its server, and its last interval."""
    windows: tuple[Window, ...]
    transactions: float | None = None
    cpu_cores: float | None = None
    """The number of processors that the server kept busy."""
    cores: int | None = None
    pool_bytes: float | None = None
    database_bytes: float | None = None
    read_ms: float | None = None
    log_ms: float | None = None
    log_known: bool = True
    """False if log writes are not separate: they then count as data writes."""
    peaks: tuple[Peak, ...] | None = None
    """The peak of each known measure; null in records made before peaks were searched."""
    beyond: Beyond | None = None
    """Null if every window resembles a played one."""


class Stream(ManifestPart):
    """One of the three streams of I/O at one level, over all its windows.

    Times count from when an I/O was due; an I/O that did not end took until the level ended.
    """

    name: StreamName
    wanted: float
    """The number of I/Os that were due."""
    ios: int
    """The number of I/Os that ended."""
    bytes: int
    late: int = 0
    """I/Os that were issued more than a second late, or never."""
    mean_ms: float | None
    histogram: tuple[tuple[float, int], ...] = ()
    """Times in ms, each with the number of I/Os that took about that long, shortest first."""
    grouped: float = 1.0
    """Log writes per issued write: a slow log device gets groups, as servers group commits."""
    behind_ms: float | None = None
    """The median lateness of issued I/Os. Without a backlog it is the delay of the issuing machine, which must be small
    against the service level: otherwise the level was not one of the storage alone."""


class WindowSeen(ManifestPart):
    """One window at one level of the replay."""

    begin: float
    because: Measured | Literal["together"]
    limits: tuple[LimitSeen, ...]
    behind: dict[StreamName, float] = Field(default_factory=dict)
    """The streams with a backlog in this window, with the share of their I/Os that were late."""


class ReplayLevel(LevelSeen):
    """A level of the replay. A backlog means that too many I/Os of a stream were late in a window.

    Its limits are on the mean of reads and, for a percentile, on the share that took longer. Each is from the window
    nearest to breaking, or furthest beyond.
    """

    seconds: float
    """The duration of its I/O, all windows together."""
    streams: tuple[Stream, ...]
    windows: tuple[WindowSeen, ...] = ()
    """Empty in records whose windows were judged together."""


class Replay(ManifestPart):
    """The replay of the windows as raw I/O. The answer is null until it is known."""

    tool: str
    how: str
    """The I/O interface, as in a probe."""
    emulated: bool
    devices: dict[Literal["data", "log"], str | None]
    file_bytes: int
    log_file_bytes: int
    played: float
    """Seconds of the replay per second of the profile; below 1, bursts were shorter than in the profile."""
    decides: Decides = "mean"
    """The limit that decided at each level."""
    low: float
    high: float
    tolerance: float
    direct_io: dict[Literal["data", "log"], DirectIo] = Field(default_factory=dict)
    levels: tuple[ReplayLevel, ...] = ()
    outcome: Outcome | None = None
    holds: float | None = None
    breaks: float | None = None


class Matched(ManifestPart):
    """A quantity of the demand per second, with its measured value under the stand-in's load at level 1."""

    name: Literal["reads", "read_bytes", "writes", "log_bytes", "cpu_cores"]
    wanted: float | None
    """Null if the profile does not have it."""
    reached: float | None
    """Null if it was not measured."""


class StandIn(ManifestPart):
    """The stand-in: the product's own loads, mixed to do what the profile did. Folders are names of experiments next to
    the manifest."""

    rates: dict[str, float]
    """Transactions or queries per second of each load at level 1."""
    queries: dict[str, int] = Field(default_factory=dict)
    """The number of queries that ended while their cost was measured, by load."""
    waited: dict[str, float] = Field(default_factory=dict)
    """The share of queries that waited for a stream at level 1, by load."""
    matched: tuple[Matched, ...]
    pool_share: float | None
    """The buffer pool as a share of the data, in the stand-in as on the candidate."""
    data_bytes: int
    pool_bytes: int | None
    calibration: str
    trial: str
    ceiling: str | None = None


class Candidate(ManifestPart):
    """The candidate as its owner describes it: its price, power and height; null if not given."""

    name: str
    memory_bytes: int | None = None
    """The size of its future buffer pool."""
    cost: float | None = None
    watts: float | None = None
    rack_units: float | None = None


class Sizing(ManifestPart):
    """The manifest of a sizing."""

    format: Literal[1] = FORMAT
    kind: Literal["sizing"] = "sizing"
    status: Literal["running", "complete", "incomplete"] = "running"
    because: str | None = None
    """The reason that it ended early."""
    stallmark: str
    started: Moment
    ended: Moment | None = None
    candidate: Candidate
    demand: Demand
    service_level: ServiceLevelObjective
    machine: Machine = Machine()
    devices: Devices = Devices()
    engine: str
    replay: Replay | None = None
    stand_in: StandIn | None = None


FILE = "sizing.json"
_REMEDY = "restore it, or run the sizing again"


def read_sizing(folder: Path) -> Sizing:
    """Read the manifest of a sizing's folder; raise StallmarkError with the file and the key at fault."""
    return read_model(Sizing, folder, FILE, "sizing", FORMAT, _REMEDY)


def write_sizing(folder: Path, manifest: Sizing) -> None:
    """Replace the manifest atomically, as it may be read at any moment."""
    write_whole(folder / FILE, manifest)
