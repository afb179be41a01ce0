"""The record of a production server's profile: one folder, `profile.json` and its tables.

A profile collected from a server holds raw cumulative counters (profile_tables.py), of which the analysis makes
intervals. One that was imported from what others had recorded holds the intervals themselves, which are written here.
All that judges a profile reads intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.record.files import is_file, read_model, write_whole
from stallmark.record.manifest.course import ManifestPart, Moment, TableFile, TableName, moment_at, seconds_at
from stallmark.record.schema import column
from stallmark.record.table_file import writing, written

# The manifest of a profile: its source, its server, and its observed times; read and written.

FORMAT: Final = 1
GAP: Final = 2.5
"""The number of intervals without a sample that make a gap."""
Source = Literal["server", "perfmon", "iostat", "sar", "prometheus", "csv"]
SessionEnd = Literal["running", "complete", "stopped", "killed", "failed", "imported"]
FILE = "profile.json"
_REMEDY = "restore it, or collect the profile anew"


class ProfiledServer(ManifestPart):
    """A server as it was when first observed with these properties.

    Attributes:
        since: the time of that observation.
        name: None if it is unknown or omitted on purpose.
        memory_bytes: memory of its machine.
        database_bytes: size of all its files.
    """

    since: Moment | None = None
    engine: Literal["mssql", "postgresql"] | None = None
    product: str = ""
    version: str = ""
    name: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    pool_bytes: int | None = None
    database_bytes: int | None = None

    def is_as(self, other: "ProfiledServer") -> bool:
        """Return True if it is the same server with the same equipment, apart from sizes, which vary from hour to
        hour."""
        varying: dict[str, None] = {"since": None, "pool_bytes": None, "database_bytes": None}
        return self.changed(**varying) == other.changed(**varying)


class Session(ManifestPart):
    """A time of uninterrupted collecting.

    Attributes:
        ended: None while it lasts and after a kill, until the folder is used again.
        reason: the words of the failure that ended it.
    """

    started: Moment
    ended: Moment | None = None
    end: SessionEnd = "running"
    reason: str | None = None
    cpu_s: float | None = None
    """CPU time that collecting took on the machine of Stallmark."""


class Gap(ManifestPart):
    """A time within a session without observations. `reason` has the words of the failure."""

    started: Moment
    ended: Moment | None = None
    reason: str


class Marks(ManifestPart):
    """Short hashes with a salt, which identify the address and the server of a folder without naming them."""

    salt: str
    address: str
    server: str


class ProfileManifest(ManifestPart):
    """The manifest of a profile.

    Attributes:
        servers: more than one if another server answered at the same address.
        missing: reasons for missing values, by table.
        files: names of the imported files; empty for a profile of a server.
    """

    format: Literal[1] = FORMAT
    kind: Literal["profile"] = "profile"
    source: Source
    stallmark: str = ""
    started: Moment
    interval_s: float
    planned_s: float | None = None
    anonymous: bool = False
    servers: tuple[ProfiledServer, ...] = ()
    marks: Marks | None = None
    sessions: tuple[Session, ...] = ()
    gaps: tuple[Gap, ...] = ()
    missing: dict[str, str] = {}
    files: tuple[str, ...] = ()
    tables: dict[TableName, TableFile] = {}
    """The files that are written whole."""
    notes: tuple[str, ...] = ()

    @property
    def server(self) -> ProfiledServer:
        """Return the server as it was seen last; one without any fact where none is known."""
        return self.servers[-1] if self.servers else ProfiledServer()

    def servers_with(self, server: ProfiledServer, now: float) -> tuple[ProfiledServer, ...]:
        """Return all servers, with one that answers now: another, or the same with other equipment."""
        known = self.servers and self.server.is_as(server)
        return self.servers if known else (*self.servers, server.changed(since=moment_at(now)))

    def closed_gaps(self, now: float) -> tuple[Gap, ...]:
        """Return the gaps, each with an end."""
        return tuple(
            gap if gap.ended else gap.changed(ended=moment_at(max(now, seconds_at(gap.started)))) for gap in self.gaps
        )

    @property
    def server_names(self) -> list[str]:
        """Return the different names of the servers that answered, in their order."""
        return list(dict.fromkeys(server.name for server in self.servers if server.name))


def is_profile(folder: Path) -> bool:
    return is_file(folder / FILE)


def read_profile(folder: Path) -> ProfileManifest:
    """Read the manifest of a profile's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(ProfileManifest, folder, FILE, "profile", FORMAT, _REMEDY)


def write_profile(folder: Path, manifest: ProfileManifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)


# The intervals of a profile, about 15 s each: the server's work, by class of file and as a whole.
#
# Every count is over the observed time from `start` to `end`, and a rate is the count divided by it. Intervals neither
# overlap nor reach across a gap. A null is unknown, and never 0.
#
# Tables are checked when they are read: names must be known, counts bounded, and times plausible. Checksums find
# damage, but a profile may also come from another person. Implausible values would otherwise stop the analysis in the
# middle, or fill the memory: each hour and each minute takes some.

LONGEST_S = 3660 * 86_400.0
"""Maximum length of a profile: ten years."""
LATEST_S = 4_102_444_800.0
"""The end of the year 2099."""
_NEVER_NULL: Final = frozenset((
    "sample", "session", "server", "clock", "monotonic_s", "entity", "counter", "file_class", "wait_type",
    "wait_class", "users",
))  # fmt: skip


class FileClass(StrEnum):
    """The class of a file. In a profile of one database, the data and logs of the others are `OTHER`; a profile of a
    whole server has no such files. `DEVICE`: the devices of an imported profile whose contents were not declared."""

    DATA = "data"
    LOG = "log"
    TEMPDB = "tempdb"
    OTHER = "other"
    DEVICE = "device"


_COUNT, _TEXT = pa.float64(), pa.string()
_TIME = pa.timestamp("us", tz="UTC")
TIMES = [
    column("start", _TIME, "begin of the time that was seen", "UTC"),
    column("end", _TIME, "end of the time that was seen", "UTC"),
]
FILE_IO = pa.schema(
    [
        *TIMES,
        column(
            "file_class", _TEXT, "data, log, tempdb, other or device; of an imported device, what it was said to hold"
        ),
        column("reads", _COUNT, "reads", "I/Os"),
        column("read_bytes", _COUNT, "bytes read"),
        column("read_stall_ms", _COUNT, "what these reads took, summed"),
        column("writes", _COUNT, "writes", "I/Os"),
        column("write_bytes", _COUNT, "bytes written"),
        column("write_stall_ms", _COUNT, "what these writes took, summed"),
        column("size_bytes", _COUNT, "size of the files at the end"),
    ]
)
SERVER = pa.schema(
    [
        *TIMES,
        column("log_flushes", _COUNT, "flushes of the log of transactions", "flushes"),
        column("log_bytes", _COUNT, "bytes of these flushes"),
        column("transactions", _COUNT, "transactions ended", "transactions"),
        column("batches", _COUNT, "batches received", "batches"),
        column("cpu_s", _COUNT, "CPU time of the server's process, summed over cores"),
        column("memory_target_bytes", _COUNT, "memory the server aims at, at the end"),
        column("database_pages_bytes", _COUNT, "pages of databases in the buffer pool, at the end"),
        column("stolen_bytes", _COUNT, "memory taken from the pool for other uses, at the end"),
        column("page_life_expectancy_s", _COUNT, "page life expectancy, at the end"),
        column("connections", _COUNT, "connections of users, at the end", "connections"),
        column("checkpoint_pages", _COUNT, "pages written by checkpoints", "pages"),
        column("background_pages", _COUNT, "pages written to make room in the pool", "pages"),
        column("pages_read", _COUNT, "pages read into the pool, read-ahead included", "pages"),
        column("readahead_pages", _COUNT, "pages read ahead of their use", "pages"),
        column("page_lookups", _COUNT, "pages looked up in the pool", "pages"),
    ]
)
IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
"""The columns of a class of file that are counts."""
STATES = ("memory_target_bytes", "database_pages_bytes", "stolen_bytes", "page_life_expectancy_s", "connections")
"""The columns of the server that are values at the end of an interval; all others are counts."""
LONGEST_TRANSACTION = "longest_transaction_ms"
"""The counter of a PostgreSQL: the age of the oldest transaction that a session was busy with, in whole ms."""

TABLES: dict[str, pa.Schema] = {"file_io": FILE_IO, "server": SERVER}
"""The tables of an imported profile. No source of imports records waits."""
_US = 1e6


class Waited(NamedTuple):
    """All waits of one type that ended."""

    wait_type: str
    wait_class: str
    waits: float | None  # None if the server shows only the sessions that wait at a moment
    wait_ms: float  # signal time included


@dataclass(frozen=True)
class Intervals:
    """The intervals (n) of a profile in the order of time, and the waits of all intervals together."""

    start: np.ndarray  # seconds since 1970
    end: np.ndarray  # seconds since 1970
    columns: Mapping[str, np.ndarray]
    """Arrays (n) by the class of file or "server" and a column of its table, as "data.reads"; NaN for unknown
    values."""
    waits: Sequence[Waited] = ()  # without waits that delay no session
    longest_transaction_s: float | None = None
    """Age of the oldest transaction that was observed at work, or None if the source does not report it."""

    @property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    @property
    def classes(self) -> list[FileClass]:
        return [name for name in FileClass if self._columns_of(name)]

    def column(self, name: str) -> np.ndarray:
        values = self.columns.get(name)
        return np.full(len(self.start), np.nan) if values is None else values

    def known_values(self, name: str) -> np.ndarray:
        """Return the values of a column, without those that are not known."""
        values = self.column(name)
        return values[np.isfinite(values)]

    def log(self, column: str, of_server: str) -> np.ndarray:
        """Return a column of the log's files, or the server's column `of_server` if the files lack it."""
        values = self.column(f"{FileClass.LOG}.{column}")
        return values if is_known(values) else self.column(f"server.{of_server}")

    def total(self, *columns: str, without: FileClass | None = None) -> np.ndarray:
        """Return the sum of columns over the classes of file, NaN if a part is; a part that is never known is left
        out."""
        classes = [name for name in self.classes if name is not without]
        parts = [self.column(f"{name}.{column}") for name in classes for column in columns]
        known = [part for part in parts if is_known(part)]
        return np.sum(known, axis=0) if known else np.full(len(self.start), np.nan)

    def has_any(self, name: str) -> np.ndarray:
        """Return a mask of the intervals in which any column of a class of file, or of the server, is known."""
        known = [np.isfinite(values) for values in self._columns_of(name).values()]
        return np.any(known, axis=0) if known else np.zeros(len(self.start), dtype=bool)

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of an imported profile, with rows that have any known value."""
        parts = [self._table(name, FILE_IO) for name in self.classes]
        file_io = pa.concat_tables([FILE_IO.empty_table(), *parts])
        file_io = file_io.sort_by([("start", "ascending"), ("file_class", "ascending")])
        return {"file_io": file_io, "server": self._table("server", SERVER)}

    def _columns_of(self, name: str) -> dict[str, np.ndarray]:
        return {column: values for column, values in self.columns.items() if column.startswith(f"{name}.")}

    def _table(self, name: str, schema: pa.Schema) -> pa.Table:
        rows = np.flatnonzero(self.has_any(name))
        arrays = {"start": _times(self.start[rows]), "end": _times(self.end[rows])}
        arrays["file_class"] = pa.array([name] * len(rows), pa.string())
        for field in schema:
            if field.name not in arrays:
                arrays[field.name] = pa.array(self.column(f"{name}.{field.name}")[rows], from_pandas=True)
        return pa.table([arrays[field.name] for field in schema], schema)


def intervals_from_tables(file_io: pa.Table, server: pa.Table) -> Intervals:
    """Return the intervals of an imported profile in which anything was observed."""
    starts, ends = (
        np.concatenate([_seconds(table.column(name)) for table in (file_io, server)]) for name in ("start", "end")
    )
    start, first = np.unique(starts, return_index=True)
    parts = {str(name): file_io.filter(pc.equal(file_io.column("file_class"), name)) for name in FileClass}
    columns = {}
    for name, rows in (parts | {"server": server}).items():
        places = np.searchsorted(start, _seconds(rows.column("start")))
        for field in rows.schema:
            if pa.types.is_floating(field.type) and rows.num_rows:
                values = columns[f"{name}.{field.name}"] = np.full(len(start), np.nan)
                values[places] = rows.column(field.name).to_numpy()
    return Intervals(start, ends[first], columns)


def is_known(values: np.ndarray) -> bool:
    """Return True if any value is known."""
    return bool(np.isfinite(values).any())


def _times(times: np.ndarray) -> pa.Array:
    return pa.array(np.round(times * _US).astype("int64")).cast(pa.timestamp("us", tz="UTC"))


def wrong_rows(table: pa.Table | pa.RecordBatch) -> str | None:
    """Return the fault in the rows of a table or of one batch, or None without one."""
    for field in table.schema:
        values = table[field.name]
        if values.null_count and (field.name in _NEVER_NULL or pa.types.is_timestamp(field.type)):
            return f"its column {field.name} has rows without a value"
        if pa.types.is_floating(field.type) and not np.isfinite(values.drop_null().to_numpy()).all():
            return f"its column {field.name} has a value that is no finite number"
        if field.name == "file_class" and not set(FileClass).issuperset(values.unique().to_pylist()):
            return "its column file_class has a class that there is none of"
        if field.name == "sample" and (np.diff(values.to_numpy()) < 0).any():
            return "its samples are not in the order in which they were taken"
    times = [table[field.name] for field in table.schema if field.name == "clock" or pa.types.is_timestamp(field.type)]
    seconds = list(map(_seconds, times))
    if seconds and table.num_rows:
        first, last = min(map(np.min, seconds)), max(map(np.max, seconds))
        if not 0 <= first <= last < LATEST_S:
            return "its times are before 1970 or after 2100"
        if last - first > LONGEST_S:
            return "its times are more than ten years apart"
    return None


def _seconds(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_numpy() / 1e6
    return column.to_numpy()


def write_imported(folder: Path, manifest: ProfileManifest, tables: Mapping[str, pa.Table]) -> None:
    """Write a new folder of an imported profile. It is one only when it is whole: the manifest comes last."""
    folder.mkdir(parents=True, exist_ok=False)
    files = {}
    for name, schema in TABLES.items():
        path = folder / f"{name}.parquet"
        with writing(path, schema) as writer:
            writer.write_table(tables[name].cast(schema))
        files[name] = written(path)
    write_profile(folder, manifest.changed(tables=files))
