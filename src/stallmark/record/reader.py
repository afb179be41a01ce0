"""Read run records, complete or cut short."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.manifest import Manifest
from stallmark.record.manifest_file import read_manifest
from stallmark.record.schema import BYTES_AT_ONCE, PROBE_TABLES, ROWS_AT_ONCE, TABLES

SMALL_BYTES = 1 << 20
"""A table of no more, uncompressed, stays in memory once it was read: the analysis asks for it column by column."""


_OTHER_KINDS = {"profile.json": "profile", "sizing.json": "sizing"}


class Record:
    """A record opened for reading, complete or cut short."""

    ended_s: int | None = None
    """The whole seconds after which its load ended although others went on."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        self.loads = self.manifest.loads  # of the run, also where this is the record of one of them
        self._layouts: dict[tuple[Path, int], tuple[pa.Schema, pq.FileMetaData]] = {}
        self._small: dict[tuple[Path, int], list[pa.RecordBatch]] = {}
        self._ends: dict[Path, int] = {}

    @property
    def is_probe(self) -> bool:
        """Tell whether this is a probe of raw storage, without a database."""
        return self.manifest.kind == "probe"

    @property
    def incomplete_because(self) -> str | None:
        if self.manifest.status == "running":
            return "the run was cut: Stallmark was killed before it could close the record"
        return self.manifest.incomplete_because

    def tables(self) -> list[str]:
        return sorted({p.stem for p in self.folder.iterdir() if p.suffix in (".parquet", ".arrows")})

    def table(self, name: str) -> pa.Table:
        """Return a table; empty (of the known schema, if there is one) when the run never wrote it."""
        if (path := self.folder / f"{name}.parquet").exists():
            with _readable(path):
                return pq.read_table(path)
        if (path := self.folder / f"{name}.arrows").exists():
            parts = list(self._stream(path))
            return pa.concat_tables(parts) if parts else _empty(name)
        return _empty(name)

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table that the record has."""
        if (path := self.folder / f"{name}.parquet").exists():
            with _readable(path):
                return self._layout(path)[0]
        parts = self._stream(self.folder / f"{name}.arrows")
        return next((part.schema for part in parts), _empty(name).schema)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a table, a batch of rows at a time.

        Strings may come dictionary-encoded; columns that the table does not have are left out.
        """
        if (path := self.folder / f"{name}.parquet").exists():
            key = path, path.stat().st_mtime_ns
            with _readable(path):
                schema, footer = self._layout(path)
                if _bytes_of(footer) <= SMALL_BYTES and key not in self._small:
                    self._small[key] = list(_pieces(path, schema, footer, schema.names))
            wanted = [c for c in columns if c in schema.names]
            if key in self._small:
                yield from (batch.select(wanted) for batch in self._small[key])
            else:
                with _readable(path):
                    yield from _pieces(path, schema, footer, wanted)
        elif (path := self.folder / f"{name}.arrows").exists():
            for part in self._stream(path):
                some = part.select([c for c in columns if c in part.column_names])
                yield from some.combine_chunks().to_batches()

    def of_all_loads(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield what `batches` does, of all loads of the run, also where this is the record of one of them."""
        return self.batches(name, columns)

    def _stream(self, path: Path) -> Iterator[pa.Table]:
        """Yield the rows of a stream as far as it went when it was first read: its columns, read one by one, are of one
        length, though the run goes on."""
        if path.exists():
            yield from read_stream(path, self._ends.setdefault(path, path.stat().st_size))

    def _layout(self, path: Path) -> tuple[pa.Schema, pq.FileMetaData]:
        """Return schema and footer of a table. They are kept: the analysis reads a table column by column."""
        key = path, path.stat().st_mtime_ns
        if key not in self._layouts:
            with pq.ParquetFile(path) as file:
                self._layouts[key] = file.schema_arrow, file.metadata
        return self._layouts[key]


def _pieces(path: Path, schema: pa.Schema, footer: pq.FileMetaData, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    strings = [field.name for field in schema if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, metadata=footer, read_dictionary=strings, memory_map=True, pre_buffer=False) as file:
        for group in range(file.num_row_groups):  # no larger than `read_stream` made them
            yield from file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=columns)


def _bytes_of(footer: pq.FileMetaData) -> int:
    """Return how large a table is that is not compressed."""
    return sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise StallmarkError, which names the file, where a table cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = as_reason(str(error).splitlines()[0])
        raise StallmarkError(f"{path} is damaged ({said}): restore it, or leave this record out.") from None


def _empty(name: str) -> pa.Table:
    known = TABLES | PROBE_TABLES
    return known[name].empty_table() if name in known else pa.table({})


def find_records(paths: Sequence[Path]) -> list[Record]:
    """Return the records in `paths`, each a run's folder or one that holds several, in the order they were run.

    Each run comes once, even if named by two spellings, by links to its folder, or as a copy of it. Raise
    StallmarkError for a path without a record.
    """
    folders: dict[Path, Path] = {}  # as it was first named, by what it resolves to
    for path in paths:
        if not path.exists():
            raise StallmarkError(f"{path} does not exist.")
        here = [path] if (path / "manifest.json").exists() else [p.parent for p in path.glob("*/manifest.json")]
        if not here and (kind := _other_kind(path)):
            raise StallmarkError(f"{path} is no run, but a {kind}: `stallmark report` shows it.")
        if not here:
            raise StallmarkError(f"{path} holds no run record (no manifest.json in it or one level below).")
        for folder in here:
            folders.setdefault(folder.resolve(), folder)
    runs: dict[Any, Record] = {}
    for record in map(Record, folders.values()):
        runs.setdefault(_identity(record), record)
    return sorted(runs.values(), key=lambda record: (record.manifest.started, record.folder.name))


def _other_kind(folder: Path) -> str | None:
    """Return the name of what is no run and has a folder of its own; None where it is neither."""
    return next((kind for file, kind in _OTHER_KINDS.items() if (folder / file).is_file()), None)


def _identity(record: Record) -> Any:
    """Return a key that is the same in every copy of a run's folder: no two runs of an experiment share number
    and start."""
    made = record.manifest
    if not made.experiment or made.sequence is None:
        return record.folder.resolve()
    return made.experiment, made.sequence, made.started


def read_stream(path: Path, end: int | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a stream, some 65,000 or 64 MiB at a time; at least one table, if its schema was written. With
    `end`, only its first bytes are read."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file.read_buffer(end)) as reader:
            yield reader.schema.empty_table()
            for batch in reader:
                waiting.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                    yield pa.Table.from_batches(waiting)
                    waiting, rows, size = [], 0, 0
    except (pa.ArrowInvalid, OSError):
        pass  # the end of a stream that was cut: what was read whole is kept
    if waiting:
        yield pa.Table.from_batches(waiting)


def recorded_seconds(record: Record) -> int:
    """Return the whole seconds that the record holds.

    When a run is cut, its users still finish what they had begun, and the second of the cut is partial. The record then
    ends with the last whole second that the collectors saw, or one before the driver's last.
    """
    last = max(
        _latest(record, "users", "second"),
        _latest(record, "transactions", "second"),
        _latest(record, "queries", "started_s"),
        _latest(record, "raw_io", "second"),
    )
    if record.ended_s is not None:
        return record.ended_s
    if record.incomplete_because is None:
        return int(last) + 1
    sampled = math.floor(_latest(record, "collector_cost", "t"))
    return max(0, min(int(last) + 1, sampled) if sampled >= 0 else int(last))


def _latest(record: Record, table: str, column: str) -> float:
    """Return the largest value of a column; -1 when the table is empty."""
    latest = -1.0
    for batch in record.batches(table, [column]):
        if batch.num_rows:
            latest = max(latest, float(batch.column(0).to_numpy().max()))
    return latest
