"""The tables of a profile: those of a server, written while they are collected, and a reader for these and for
imported ones.

Collected tables hold cumulative counters as the server reported them. A kill loses no written sample, and the tables
can be read while they are collected.

Every table is in parts, one for each session of collecting: `samples-001`, `samples-002` and so on. A row of a counter
is stored only if it differs from its predecessor in the session, so a sample without a row means no change. An entity
that no longer exists has one final row, of the epoch `GONE`.

A part is an Arrow stream that grows by a batch with each sample. Closing the session turns its streams into Parquet;
those of a session that was killed are closed by the next one in the folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from stallmark.record.files import Reserve
from stallmark.record.manifest.course import TableFile
from stallmark.record.profile import FILE, TABLES, ProfileManifest, is_profile, read_profile, write_profile, wrong_rows
from stallmark.record.reader import find_records
from stallmark.record.schema import column
from stallmark.record.table_file import StreamWriter, readable, remove, written
from stallmark.record.table_folder import TABLE_FILES, TableFolder
from stallmark.record.writer import Rows, batch_of, to_parquet

_COUNT, _TEXT = pa.int64(), pa.string()
GONE: Final = "gone"
"""The epoch of what a sample had and the next one has not, as the files of a database that was dropped."""
SAMPLE = column("sample", pa.int32(), "number of the sample, over all sessions")
EPOCH = column("epoch", _TEXT, "changes when the counters were reset; no difference is taken across a change")
SAMPLES: Final = pa.schema(
    [
        SAMPLE,
        column("session", pa.int16(), "number of the session in the manifest, from 1"),
        column("clock", pa.float64(), "clock of the machine of Stallmark in the middle of the call, since 1970", "s"),
        column("monotonic_s", pa.float64(), "the same by a clock that nobody sets; comparable within a session"),
        column("server_clock", pa.float64(), "the server's clock, since 1970", "s"),
        column("took_s", pa.float32(), "length of the call"),
        column("start", _TEXT, "start of the server, as it tells it"),
        column("server", pa.int16(), "number of the server in the manifest, from 1"),
        column("own_cpu_ms", _COUNT, "CPU time of our own session on the server so far; null where it is not told"),
    ]
)
FILE_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("entity", _TEXT, "the file; with --anonymous by numbers alone"),
        column(
            "database", _TEXT, "its database; with --anonymous by its number; null where files are of all databases"
        ),
        column("file_class", _TEXT, "data, log, tempdb or other"),
        EPOCH,
        column("reads", _COUNT, "reads so far", "I/Os"),
        column("read_bytes", _COUNT, "bytes read so far"),
        column("read_stall_ms", pa.float64(), "what these reads took, summed"),
        column("writes", _COUNT, "writes so far", "I/Os"),
        column("write_bytes", _COUNT, "bytes written so far"),
        column("write_stall_ms", pa.float64(), "what these writes took, summed"),
        column("size_bytes", _COUNT, "size of the file now"),
    ]
)
SERVER_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("counter", _TEXT, "by the name of its column in the intervals, or with the unit it is counted in"),
        EPOCH,
        column("value", _COUNT, "so far, or now for what is a state"),
    ]
)
WAIT_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("wait_type", _TEXT, "the server's name of the wait"),
        column("wait_class", _TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
        EPOCH,
        column("waits", _COUNT, "waits so far", "waits"),
        column("wait_ms", _COUNT, "time of these waits so far, signal included"),
        column("signal_ms", _COUNT, "part of wait_ms: waiting for a CPU after the wait was over"),
    ]
)
SESSIONS_SEEN: Final = pa.schema(
    [
        SAMPLE,
        column("wait_type", _TEXT, "the server's name of what sessions waited for; CPU where they waited for nothing"),
        column("wait_class", _TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
        column("users", pa.int32(), "sessions at work that were met so at the moment of the sample", "users"),
    ]
)
"""Current waits of sessions, stored with every sample, for servers without totals of waits (PostgreSQL)."""
RAW_TABLES: Final[dict[str, pa.Schema]] = {
    "samples": SAMPLES,
    "file_counters": FILE_COUNTERS,
    "server_counters": SERVER_COUNTERS,
    "wait_counters": WAIT_COUNTERS,
    "sessions_seen": SESSIONS_SEEN,
}


_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ENCODED = pa.dictionary(pa.int32(), pa.string())


def stores_changes(name: str) -> bool:
    """Return True if a row of a table is stored only where it is not as it was."""
    return "epoch" in RAW_TABLES[name].names


class ProfileWriter:
    """The writer of one session."""

    def __init__(self, folder: Path, manifest: ProfileManifest, session: int):
        """Open the tables of a session, which must not exist yet. Sessions are numbered from 1."""
        self.folder = folder
        self.manifest = manifest
        self._streams: dict[str, StreamWriter] = {}
        self._stored: dict[str, dict[tuple, tuple]] = {}
        self._reserve = Reserve(folder)
        for name, schema in RAW_TABLES.items():
            self._streams[name] = StreamWriter(folder / f"{name}-{session:03d}.arrows", schema, _OPTIONS)

    def append(self, name: str, rows: Sequence[tuple]) -> None:
        """Add the rows of one sample to a table, as tuples in the order of the columns. Of a table with epochs only
        rows that differ from their last are stored."""
        if stores_changes(name):
            rows = list(self._changed(name, rows))
        if rows:
            self._write(name, rows)

    def _changed(self, table: str, rows: Sequence[tuple]) -> Iterator[tuple]:
        """Yield the rows that are not as they were, and one without values for each that has gone. The columns between
        `sample` and `epoch` name a row."""
        epoch_index = RAW_TABLES[table].names.index("epoch")
        naming = slice(1, epoch_index)
        stored = self._stored.setdefault(table, {})
        gone = stored.keys() - {row[naming] for row in rows} if rows else ()
        for row in rows:
            if stored.get(row[naming]) != row[1:]:
                stored[row[naming]] = row[1:]
                yield row
        for name in sorted(gone):
            before = stored.pop(name)
            yield (rows[0][0], *before[: epoch_index - 1], GONE, *[None] * (len(before) - epoch_index))

    def _write(self, name: str, rows: Sequence[tuple]) -> None:
        schema = RAW_TABLES[name]
        self._streams[name].write(batch_of(Rows(schema.names, rows), schema))

    def update(self, **fields: Any) -> None:
        """Replace fields of the manifest, in the folder as well."""
        self.manifest = self.manifest.changed(**fields)
        write_profile(self.folder, self.manifest)

    def close(self) -> None:
        """Turn the streams of the session into Parquet; where the disk is full they stay as they are. The manifest
        notes the files when it is updated, for which space was kept."""
        self._reserve.free()
        for stream in self._streams.values():
            with suppress(OSError):
                stream.close()
        self.manifest = self.manifest.changed(tables=self.manifest.tables | close_streams(self.folder))


def close_streams(folder: Path) -> dict[str, TableFile]:
    """Turn all streams of ended sessions into Parquet, as far as they were written whole; return the files by name."""
    closed = {}
    for path in sorted(folder.glob("*.arrows")):
        name, target = path.stem.rpartition("-")[0], path.with_suffix(".parquet")
        if name in RAW_TABLES:
            with suppress(OSError):
                to_parquet(path, target, RAW_TABLES[name])
                closed[path.stem] = written(target)
                remove(path)
    return closed


class Profile(TableFolder):
    """A profile opened for reading, collected or imported, complete or still growing."""

    manifest_file = FILE

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.manifest: ProfileManifest = read_profile(folder)
        self._collected = self.manifest.source == "server"
        self._schemas = RAW_TABLES if self._collected else TABLES
        self.remedy = f"restore it, or {'collect' if self._collected else 'import'} the profile anew"

    def tables(self) -> list[str]:
        return list(self._schemas)

    def schema(self, name: str) -> pa.Schema:
        schema = self._schemas[name]
        for part in self._parts(name):
            # A part without rows has columns, too.
            if (written := self._written_schema(part)) is not None:
                with self._readable(part):
                    written.empty_table().cast(schema)
        return schema

    def table(self, name: str) -> pa.Table:
        rows = super().table(name)
        # All rows together, because the first time and the last may be in two batches.
        self._refuse(name, wrong_rows(rows))
        return rows

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.raw_batches(name, columns):
            self._refuse(name, wrong_rows(batch))
            yield batch

    def raw_batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        fields = [field for field in self.schema(name) if field.name in columns]
        encoded = pa.schema([field.with_type(_ENCODED) if field.type == pa.string() else field for field in fields])
        for part in self._parts(name):
            for rows in self._rows(part, encoded.names):
                with self._readable(part):
                    batch = rows.cast(encoded)
                    # Texts that are not valid UTF-8 would fail only where they are read.
                    batch.validate(full=True)
                if batch.num_rows:
                    yield batch

    def _parts(self, name: str) -> list[str]:
        """Return the names of the files of a table, one for each session of collecting."""
        if not self._collected:
            return [name]
        stored = {path.stem for path in self.folder.glob(f"{name}-*") if path.suffix in TABLE_FILES}
        return sorted(stem for stem in stored | set(self.manifest.tables) if stem.rpartition("-")[0] == name)

    def _readable(self, part: str) -> AbstractContextManager[None]:
        return readable(self.folder / f"{part}.parquet", remedy=self.remedy)

    def _manifest_now(self) -> ProfileManifest:
        return read_profile(self.folder)


def find_table_folders(paths: Sequence[Path]) -> list[TableFolder]:
    """Return the runs in `paths`, in the order they were run, and then the profiles; see `find_records`."""
    runs: list[Path] = []
    profiles: dict[Path, Path] = {}  # keys: resolved path; values: path as first given
    for path in paths:
        if is_profile(path):
            profiles.setdefault(path.resolve(), path)
        else:
            runs.append(path)
    return [*find_records(runs), *map(Profile, profiles.values())]


def last_sample(folder: Path) -> int:
    """Return the number of the last complete sample, or -1 without one."""
    samples = Profile(folder).table("samples")
    return samples.column("sample")[-1].as_py() if samples.num_rows else -1
