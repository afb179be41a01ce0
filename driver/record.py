"""The run record: one folder per run, `manifest.json` and one Parquet file per table; of query runs also the plans.

While the run lasts every table is an Arrow stream that grows by a batch at a time, because a Parquet file cut
short cannot be read at all. Closing the record turns the streams into Parquet; a record that was cut is read
from its streams and loses at most the last batch.

All times in tables are seconds since the start of the run on the monotonic clock (`t`, float) or the whole
second they fall in (`second`); the manifest says when that start was, in UTC.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.driver.engines.errors import StallmarkError

FORMAT = 1
ROWS_AT_ONCE = 1 << 16  # a day's table does not fit in memory

TRANSACTIONS = pa.schema(
    [
        ("second", pa.int32()),  # in which they ended
        ("transaction", pa.string()),
        ("committed", pa.int32()),
        ("rolled_back", pa.int32()),  # intended, part of the workload
        ("failed", pa.int32()),  # given up after the bounded retries
        ("retries", pa.int32()),
        (
            "latency_us",
            pa.int64(),
        ),  # sum over committed and rolled back, scheduled to ended, retries included
        ("service_us", pa.int64()),  # sum, started to ended
        ("latency", pa.binary()),  # HDR histogram (V2, compressed) of µs, 3 significant digits
        ("service", pa.binary()),
    ]
)
USERS = pa.schema(
    [
        ("second", pa.int32()),
        ("machine", pa.int16()),  # as in the manifest's load_machines; 0: the one that Stallmark ran on
        ("executor", pa.int16()),  # no number is on two machines
        ("running", pa.float32()),  # users alive, averaged over the second
        ("busy_us", pa.int64()),  # sum of time inside calls
        ("think_us", pa.int64()),  # sum of intended think and pacing time that passed
        (
            "lag_us",
            pa.int64(),
        ),  # sum of started − scheduled where a user was free to start: the driver's own delay
        ("lag_max_us", pa.int64()),
        ("cpu_us", pa.int64()),  # CPU time of the executor process
    ]
)
AGENDA = pa.schema(
    [
        ("second", pa.int32()),
        ("machine", pa.int16()),
        ("executor", pa.int16()),
        ("taken", pa.int32()),  # transactions that no virtual user starts, ended in this second
        ("late_us", pa.int64()),  # sum of started − due
        ("late_max_us", pa.int64()),
        ("waiting", pa.int32()),  # most that were due and that no attendant had taken
    ]
)
ERRORS = pa.schema(
    [
        ("second", pa.int32()),
        ("transaction", pa.string()),
        ("error_class", pa.string()),  # ErrorClass
        ("code", pa.string()),
        ("attempts", pa.int32()),  # calls that failed so
        ("given_up", pa.int32()),  # of these, transactions that were not tried again
        ("message", pa.string()),  # the first of the second
    ]
)
TRANSACTION_IO = pa.schema(
    [
        ("second", pa.int32()),  # in which they ended
        ("transaction", pa.string()),
        (
            "sampled",
            pa.int32(),
        ),  # of those that were not given up, how many were looked at; the rest are their sums
        ("reads", pa.int64()),  # I/Os of the operating system: one may bring several blocks
        ("read_bytes", pa.int64()),
        ("hits", pa.int64()),  # blocks that were in the pool
        ("read_us", pa.int64()),  # time in these reads; null where the server does not take it
        ("writes", pa.int64()),  # pages written out to make room, without the log
    ]
)
QUERIES = pa.schema(
    [
        ("phase", pa.string()),  # "power", "throughput" or "each"
        ("stream", pa.int16()),  # 0 in a power run; in a throughput run from 1, the refresh stream comes last
        ("position", pa.int16()),  # within the stream, from 1
        ("query", pa.string()),  # "Q9", "RF1"
        ("dop", pa.int16()),  # asked for; null: as the server is set
        ("started_s", pa.float64()),
        ("seconds", pa.float64()),  # sent to answered whole
        ("rows", pa.int64()),
        ("logical_reads", pa.int64()),  # pages, in the pool or not
        ("physical_reads", pa.int64()),  # pages
        ("read_bytes", pa.int64()),
        ("spill_bytes", pa.int64()),  # written to temporary files
        ("grant_kib", pa.int64()),  # memory the server set aside
        ("cpu_ms", pa.float64()),
        ("actual_dop", pa.int16()),
        (
            "wait_ms",
            pa.string(),
        ),  # JSON: milliseconds by the server's name of the wait, summed over its workers
        ("plan_hash", pa.string()),  # with the query the name of a file in `plans`
        ("error_class", pa.string()),  # ErrorClass; null: it ended well
        ("error", pa.string()),
    ]
)
"""Of query runs; what the server does not tell is null."""
PROBE_STEPS = pa.schema(
    [
        ("pattern", pa.string()),  # "8k-random-read"
        ("operation", pa.string()),  # read or write
        ("order", pa.string()),  # random or sequential
        ("block_bytes", pa.int64()),
        ("outstanding", pa.int32()),
        ("seconds", pa.float64()),
        ("ios", pa.int64()),
        ("bytes", pa.int64()),
        ("mean_ms", pa.float64()),  # from issuing an I/O to its end
    ]
)
PROBE_HISTOGRAM = pa.schema(
    [
        ("pattern", pa.string()),
        ("outstanding", pa.int32()),
        ("ms", pa.float64()),  # two significant digits
        ("ios", pa.int64()),
    ]
)
PROBE_WINDOWS = pa.schema(
    [
        ("pattern", pa.string()),
        ("outstanding", pa.int32()),
        ("t", pa.float64()),  # end of the window, in seconds since the step began
        ("iops", pa.float64()),
    ]
)
COLLECTOR_COST = pa.schema(
    [("t", pa.float64()), ("collector", pa.string()), ("wall_us", pa.int64()), ("cpu_us", pa.int64())]
)
TABLES: dict[str, pa.Schema] = {
    "transactions": TRANSACTIONS,
    "users": USERS,
    "agenda": AGENDA,
    "errors": ERRORS,
    "transaction_io": TRANSACTION_IO,
    "collector_cost": COLLECTOR_COST,
    "queries": QUERIES,
}
PROBE_TABLES: dict[str, pa.Schema] = {
    "probe_steps": PROBE_STEPS,
    "probe_histogram": PROBE_HISTOGRAM,
    "probe_windows": PROBE_WINDOWS,
}
"""Of a probe of raw storage, which has no others."""
PROBE = "probe"
"""The `kind` in its manifest; that of a run has none."""


class RecordWriter:
    """Appends to a record. Tables of collectors are added with `add_table` before their first row."""

    def __init__(self, folder: Path, manifest: dict[str, Any], tables: Mapping[str, pa.Schema] = TABLES):
        folder.mkdir(parents=True, exist_ok=False)
        self.folder = folder
        self.manifest: dict[str, Any] = {"format": FORMAT, "status": "running"} | manifest
        self._streams: dict[str, tuple[pa.OSFile, pa.RecordBatchStreamWriter]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._rows: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        for name, schema in tables.items():
            self.add_table(name, schema)
        self.save_manifest()

    def add_table(self, name: str, schema: pa.Schema) -> None:
        sink = pa.OSFile(str(self.folder / f"{name}.arrows"), "wb")
        self._streams[name] = sink, pa.ipc.new_stream(sink, schema)
        self._schemas[name] = schema
        self._rows[name] = 0

    def append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to a table. After one that could not be written, none is: behind a torn batch it would be lost."""
        if not rows or name in self._failed:
            return
        sink, stream = self._streams[name]
        batch = pa.RecordBatch.from_pylist(list(rows), schema=self._schemas[name])
        try:
            stream.write_batch(batch)
            sink.flush()
        except OSError as error:
            self._failed[name] = str(error)
            raise
        self._rows[name] += len(rows)

    def save_manifest(self) -> None:
        write_manifest(self.folder, self.manifest)

    def close(self, incomplete_because: str | None = None) -> None:
        """Turn the streams into Parquet. One that cannot be turned stays as it is, and the record is incomplete."""
        for name in self._streams:
            try:
                self._close_table(name)
            except OSError as error:
                self._failed.setdefault(name, str(error))
        self._streams.clear()
        if self._failed and not incomplete_because:
            name, why = next(iter(self._failed.items()))
            incomplete_because = f"table {name} could not be written whole ({why})"
        self.manifest["status"] = "incomplete" if incomplete_because else "complete"
        self.manifest["incomplete_because"] = incomplete_because
        self.save_manifest()

    def _close_table(self, name: str) -> None:
        sink, stream = self._streams[name]
        try:
            if name not in self._failed:
                stream.close()
        finally:
            sink.close()
        source = self.folder / f"{name}.arrows"
        rows = _to_parquet(source, self.folder / f"{name}.parquet", self._schemas[name])
        if rows != self._rows[name]:
            (self.folder / f"{name}.parquet").unlink()
            raise OSError(f"{self._rows[name]} rows were written, {rows} can be read")
        source.unlink()


class Record:
    """A record opened for reading, complete or cut short."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        except FileNotFoundError:
            raise StallmarkError(f"{folder} is not a run record: it has no manifest.json.") from None
        except ValueError as error:
            raise StallmarkError(f"{folder}/manifest.json is damaged ({error}).") from None
        if self.manifest.get("format") != FORMAT:
            raise StallmarkError(
                f"{folder} has record format {self.manifest.get('format')}, this version reads format {FORMAT}."
            )

    @property
    def is_probe(self) -> bool:
        """Of raw storage, without a database."""
        return self.manifest.get("kind") == PROBE

    @property
    def incomplete_because(self) -> str | None:
        if self.manifest["status"] == "running":
            return "the run was cut: Stallmark was killed before it could close the record"
        return self.manifest.get("incomplete_because")

    def tables(self) -> list[str]:
        return sorted({p.stem for p in self.folder.iterdir() if p.suffix in (".parquet", ".arrows")})

    def table(self, name: str) -> pa.Table:
        """One table; empty (of the known schema, if there is one) when the run never wrote it."""
        if (path := self.folder / f"{name}.parquet").exists():
            return pq.read_table(path)
        if (path := self.folder / f"{name}.arrows").exists():
            parts = list(_read_stream(path))
            return pa.concat_tables(parts) if parts else _empty(name)
        return _empty(name)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, a batch of rows at a time.

        Strings may come dictionary-encoded; columns that the table does not have are left out.
        """
        if (path := self.folder / f"{name}.parquet").exists():
            schema = pq.read_schema(path)
            strings = [field.name for field in schema if pa.types.is_string(field.type)]
            with pq.ParquetFile(path, read_dictionary=strings, memory_map=True) as file:
                yield from file.iter_batches(ROWS_AT_ONCE, columns=[c for c in columns if c in schema.names])
        elif (path := self.folder / f"{name}.arrows").exists():
            for part in _read_stream(path):
                some = part.select([c for c in columns if c in part.column_names])
                yield from some.combine_chunks().to_batches()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Whole or not at all: a reader may look at any moment."""
    draft = folder / "manifest.json.new"
    draft.write_text(json.dumps(manifest, indent=2, default=str) + "\n")
    os.replace(draft, folder / "manifest.json")


def note_end(folder: Path, before: str, because: str) -> None:
    """In the record of an experiment's last run: no other followed, though variant `before` was to."""
    write_manifest(folder, Record(folder).manifest | {"ended": {"before": before, "because": because}})


def _empty(name: str) -> pa.Table:
    known = TABLES | PROBE_TABLES
    return known[name].empty_table() if name in known else pa.table({})


def folder_of(experiment: Path, number: int, variant: str) -> Path:
    """Of an experiment's run or probe of that number, from 1: "01-hard-disks"."""
    return experiment / f"{number:02d}-{'-'.join(re.findall(r'[a-z0-9]+', variant.lower())) or 'variant'}"


def find_records(paths: Sequence[Path]) -> list[Record]:
    """The records in `paths`, each a run's folder or one that holds several, in the order they were run.

    Each run once, however often it is named: by two spellings, by links to its folder, as a copy of it.
    """
    folders: dict[Path, Path] = {}  # as it was first named, by what it resolves to
    for path in paths:
        if not path.exists():
            raise StallmarkError(f"{path} does not exist.")
        here = (
            [path] if (path / "manifest.json").exists() else [p.parent for p in path.glob("*/manifest.json")]
        )
        if not here:
            raise StallmarkError(f"{path} holds no run record (no manifest.json in it or one level below).")
        for folder in here:
            folders.setdefault(folder.resolve(), folder)
    runs: dict[Any, Record] = {}
    for record in map(Record, folders.values()):
        runs.setdefault(_identity(record), record)
    return sorted(runs.values(), key=lambda record: (record.manifest["started"], record.folder.name))


def _identity(record: Record) -> Any:
    """Of a run, the same in every copy of its folder: no two runs of one experiment have one number and one start."""
    place = tuple(record.manifest.get(name) for name in ("experiment", "sequence", "started"))
    return record.folder.resolve() if None in place else place


def _read_stream(path: Path) -> Iterator[pa.Table]:
    """The rows of a stream, some 65,000 at a time; at least one table, unless not even its schema was written."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    try:
        with pa.ipc.open_stream(path) as reader:
            yield reader.schema.empty_table()
            for batch in reader:
                waiting.append(batch)
                rows += batch.num_rows
                if rows >= ROWS_AT_ONCE:
                    yield pa.Table.from_batches(waiting)
                    waiting, rows = [], 0
    except (pa.ArrowInvalid, OSError):
        pass  # the end of a stream that was cut: what was read whole is kept
    if waiting:
        yield pa.Table.from_batches(waiting)


def _to_parquet(source: Path, target: Path, schema: pa.Schema) -> int:
    """Returns the number of rows; leaves the target whole or not at all."""
    draft = target.with_suffix(".parquet.new")
    count = 0
    try:
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for rows in _read_stream(source):
                writer.write_table(rows)
                count += rows.num_rows
        os.replace(draft, target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return count
