"""The manifest of a sizing, `sizing.json`: the demand of a profile, the replay of its I/O, and the stand-in's load.

A level is a multiple of the demand: at 1 the candidate gets the I/O of the profile's busiest windows, at 1.5 half as
much again. The records of the stand-in lie in folders beside it.
"""

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from stallmark.record.files import read_model, write_whole
from stallmark.record.manifest.course import Machine, ManifestPart, Moment
from stallmark.record.manifest.storage import Devices, ServiceLevelObjective
from stallmark.record.manifest.workload import LevelSeen, LimitSeen
from stallmark.record.probe import DirectIo

# The folder of a sizing: what a profile asks for, and what one candidate, a server with its storage, carried of it.


FORMAT: Final = 1
StreamName = Literal["reads", "writes", "log"]
Outcome = Literal["found", "at_least", "none", "unconfirmed"]
Decides = Literal["mean", "percentile"]
"""The figure of reads that decides whether a level of the replay holds."""


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
    """A busy time of the profile, from `begin` on (seconds since 1970). `because`: the measure by which it is the
    busiest; `together`: it asks for several at once as no other window that is played does. `read_ms`: the mean time
    of reads of data in production, null if it is not known, or in a record that was made before it was noted."""

    begin: float
    because: Measured | Literal["together"]
    pieces: tuple[Piece, ...]
    read_ms: float | None = None

    @property
    def seconds(self) -> float:
        return sum(piece.seconds for piece in self.pieces)

    def mean(self, name: str) -> float:
        """Return what was done per second, of one of the columns of a piece."""
        return sum(piece.seconds * getattr(piece, name) for piece in self.pieces) / self.seconds


class Peak(ManifestPart):
    """The highest mean of a measure in any window of the profile, which begins at `begin` (seconds since 1970).
    `played`: the highest in a window that is played."""

    measure: Measured
    begin: float
    per_s: float
    played: float


class Beyond(ManifestPart):
    """The window of the profile that lies furthest from all that are played: it asks for more of `measure` than the
    nearest of these, by `share` of that measure's peak, and no other asks for more beyond them."""

    begin: float
    measure: Measured
    share: float


class Demand(ManifestPart):
    """The demand of a profile. The first of the `windows` is the one with the most I/Os. What is per second is of that
    window; None is not known. `cpu_cores`: processors that the server kept busy. Where writes of the log are not
    known apart, `log_known` is false, and they are among those of data. `peaks`: by each measure that is known, null in
    a record that was made before they were looked for; `beyond` is null if every window is one that is played."""

    profile: str
    """A short hash of what the profile is of: its start, its server, and its last interval."""
    windows: tuple[Window, ...]
    transactions: float | None = None
    cpu_cores: float | None = None
    cores: int | None = None
    pool_bytes: float | None = None
    database_bytes: float | None = None
    read_ms: float | None = None
    log_ms: float | None = None
    log_known: bool = True
    peaks: tuple[Peak, ...] | None = None
    beyond: Beyond | None = None


class Stream(ManifestPart):
    """One of the three streams of I/O at one level, over all its windows: what was due, what ended, and how long it
    took from when it was due; what did not end took as long as the level went on. `late`: I/Os that were issued
    more than a second after they were due, or never. `histogram`: ms and the number of I/Os that took about as
    long, shortest first. `grouped`: writes of the log that were due as one, because its device does not take so
    many one after the other; servers group commits then. `behind_ms`: the median time by which an I/O was issued
    after it was due. Without a backlog it is the delay of the machine that issued them: where it is not small
    against the service level, that machine was too busy, and the level was not one of the storage alone."""

    name: StreamName
    wanted: float
    ios: int
    bytes: int
    late: int = 0
    mean_ms: float | None
    histogram: tuple[tuple[float, int], ...] = ()
    grouped: float = 1.0
    behind_ms: float | None = None


class WindowSeen(ManifestPart):
    """One window at one level of the replay. `behind`: the streams that had a backlog in it, with the share of their
    I/Os that were late."""

    begin: float
    because: Measured | Literal["together"]
    limits: tuple[LimitSeen, ...]
    behind: dict[StreamName, float] = Field(default_factory=dict)


class ReplayLevel(LevelSeen):
    """A level of the replay. `seconds`: how long its I/O was issued, all windows together. `backlog`: of a stream, too
    many I/Os were late in one of the windows. `limits`: reads by their mean, and, where `percentile` is named, by the
    share that took longer; each is of the window in which it was nearest to break, or broke most. `windows` is empty in
    a record whose windows were judged together."""

    seconds: float
    streams: tuple[Stream, ...]
    windows: tuple[WindowSeen, ...] = ()


class Replay(ManifestPart):
    """The replay of the windows as raw I/O. `how` names the way it was issued, as of a probe. `played`: seconds of the
    replay per second of the profile; below 1 bursts were shorter than they had been. `decides` names the limit of each
    level that decided. The answer is null until it is known."""

    tool: str
    how: str
    emulated: bool
    devices: dict[Literal["data", "log"], str | None]
    file_bytes: int
    log_file_bytes: int
    played: float
    decides: Decides = "mean"
    low: float
    high: float
    tolerance: float
    direct_io: dict[Literal["data", "log"], DirectIo] = Field(default_factory=dict)
    levels: tuple[ReplayLevel, ...] = ()
    outcome: Outcome | None = None
    holds: float | None = None
    breaks: float | None = None


class Matched(ManifestPart):
    """One quantity of the demand per second, and what the stand-in's load did of it at level 1. `reached` is null where
    it was not measured, `wanted` where the profile does not tell it."""

    name: Literal["reads", "read_bytes", "writes", "log_bytes", "cpu_cores"]
    wanted: float | None
    reached: float | None


class StandIn(ManifestPart):
    """The stand-in: loads of the product's own, mixed so that they do what the profile did. `rates`: transactions or
    queries per second of each load at level 1. `queries`: by load of queries, how many ended while their cost was
    measured; `waited`: the share of them that waited for a stream at level 1. The folders are those of experiments
    beside the manifest. `pool_share`: the buffer pool as a share of the data, in the stand-in as on the candidate."""

    rates: dict[str, float]
    queries: dict[str, int] = Field(default_factory=dict)
    waited: dict[str, float] = Field(default_factory=dict)
    matched: tuple[Matched, ...]
    pool_share: float | None
    data_bytes: int
    pool_bytes: int | None
    calibration: str
    trial: str
    ceiling: str | None = None


class Candidate(ManifestPart):
    """The candidate as its owner describes it: what it costs, draws and fills; null where nobody said so.
    `memory_bytes`: the buffer pool that it is to have."""

    name: str
    memory_bytes: int | None = None
    cost: float | None = None
    watts: float | None = None
    rack_units: float | None = None


class Sizing(ManifestPart):
    """The manifest. `because`: why it ended before it was whole."""

    format: Literal[1] = FORMAT
    kind: Literal["sizing"] = "sizing"
    status: Literal["running", "complete", "incomplete"] = "running"
    because: str | None = None
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


# Read and write `sizing.json`, the one file that holds the manifest of a sizing.

FILE = "sizing.json"
_REMEDY = "restore it, or run the sizing again"


def is_sizing(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_sizing(folder: Path) -> Sizing:
    """Read the manifest of a sizing's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(Sizing, folder, FILE, "sizing", FORMAT, _REMEDY)


def write_sizing(folder: Path, manifest: Sizing) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)
