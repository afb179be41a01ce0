"""Read run records, complete or cut short."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark import capabilities
from stallmark.errors import StallmarkError
from stallmark.record.manifest import FILE, Manifest, read_manifest
from stallmark.record.manifest.course import TableFile
from stallmark.record.manifest.workload import Load, Search, Step, application, ended_early
from stallmark.record.plausible import wrong_columns, wrong_rows
from stallmark.record.schema import standard_tables
from stallmark.record.table_folder import TABLE_FILES, TableFolder, TableSource

INTERRUPTED = "interrupted"
"""The folder in an experiment's own that keeps its incomplete runs, out of sight of reports."""
_NAME = re.compile(r"[a-z0-9_]+")


class Record(TableFolder):
    """A record opened for reading, complete or cut short."""

    manifest_file = FILE
    manifest: Manifest
    ended_s: int | None = None
    """The whole seconds after which its load ended although others went on."""
    load: str | None = None
    """The load of this record, or None if it is the record of a complete run."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.manifest = read_manifest(folder)
        self.loads = self.manifest.loads  # all loads of the run, even if this is the record of one load

    @property
    def whole(self) -> "Record":
        """Return the record of the whole run, also where this is the record of one of its loads."""
        return self

    @property
    def kind(self) -> str:
        """Return the kind of its report: "loads" if several loads ran, else what the manifest calls the run."""
        return "loads" if self.manifest.loads else self.manifest.kind

    @property
    def incomplete_because(self) -> str | None:
        if self.manifest.status == "running":
            return "the run was cut: Stallmark was killed before it could close the record, or could not write it"
        return self.manifest.incomplete_because

    def tables(self) -> list[str]:
        """Return the names of the tables that the record has, or had when it was closed."""
        tables, running = self.manifest.tables, self.manifest.status == "running"
        files = [p for p in self.folder.iterdir() if p.suffix in TABLE_FILES and _NAME.fullmatch(p.stem)]
        names = {p.stem for p in files if p.suffix != ".parquet" or running or self._is_noted(p.stem, tables)}
        return sorted(names | set(tables))

    def refuse_damage(self) -> None:
        """Raise StallmarkError if a table is not as it was written."""
        for name in self.tables():
            self._source(name)

    def schema(self, name: str) -> pa.Schema:
        written = self._written_schema(name)
        return _empty(name).schema if written is None else written

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.raw_batches(name, columns):
            self._refuse(name, wrong_rows(name, batch))
            yield batch

    def raw_batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._source(name):
            self._refuse(name, wrong_columns(name, self.schema(name)))
        yield from self._rows(name, columns)

    def require_load(self, name: str) -> None:
        """Raise StallmarkError if a table has no column of the load, which a record of several loads needs."""
        if "load" not in self.schema(name).names:
            self._refuse(name, "it has no column load")

    def _find(self, stem: str) -> TableSource | None:
        if not _NAME.fullmatch(stem):
            raise StallmarkError(
                f"{self.folder} is damaged ({stem!r} cannot be the name of a table): leave this record out."
            )
        return super()._find(stem)

    def _manifest_now(self) -> Manifest:
        return read_manifest(self.folder)

    def _is_closed(self, stem: str) -> bool:
        # While a run is running its Parquet files may still be drafts, so its streams come first.
        return self.manifest.status != "running" and self._is_noted(stem, self.manifest.tables)

    def _is_noted(self, stem: str, tables: Mapping[str, TableFile]) -> bool:
        # A closed record names all its tables, unless it is older.
        return not tables or stem in tables


def _empty(name: str) -> pa.Table:
    return standard_tables().get(name, pa.schema([])).empty_table()


def find_records(paths: Sequence[Path]) -> list[Record]:
    """Return the records in `paths`, in the order they were run. A path is a run's folder or a folder that holds
    several.

    Each run comes once, even if named by two spellings, by links to its folder, or as a copy. Raise StallmarkError for
    a path without a record.
    """
    folders: dict[Path, Path] = {}  # keys: resolved path; values: path as first given
    for path in paths:
        if not path.is_dir():
            state = "is not a folder" if path.exists() else "does not exist"
            raise StallmarkError(f"{path} {state}: name the folder of a run, or one that holds several.")
        here = [path] if (path / "manifest.json").exists() else [p.parent for p in path.glob("*/manifest.json")]
        if not here and (kind := other_kind(path)):
            raise StallmarkError(f"{path} is a {kind}, not a run: `stallmark report` shows it.")
        for folder in {file.parent for kind in TABLE_FILES for file in path.glob(f"*/*{kind}")} - set(here):
            if path not in here and not other_kind(folder):
                raise StallmarkError(f"{folder} has tables and no manifest.json: restore it, or take the folder away.")
        for folder in here:
            # A record may come from another person: a link in it must not lead elsewhere.
            if not folder.resolve().is_relative_to(path.resolve()):
                raise StallmarkError(f"{folder} leads out of {path}: name the folder that it is a link to.")
        if not here:
            raise StallmarkError(_missing_record_message(path))
        if path not in here and (others := _experiments_beside(path)):
            raise StallmarkError(
                f"{path} holds both runs and experiments: name those you mean, such as {max(here)} or {others[-1]}."
            )
        for folder in here:
            folders.setdefault(folder.resolve(), folder)
    runs: dict[Any, Record] = {}
    for record in map(Record, folders.values()):
        # A copy is not read further, but a damaged one must not go unnoticed.
        if runs.setdefault(_identity(record), record) is not record:
            record.refuse_damage()
    return sorted(runs.values(), key=lambda record: (record.manifest.started, record.folder.name))


def _experiments_beside(path: Path) -> list[Path]:
    """Return the folders in a folder that hold runs in turn, without those that an experiment has set aside."""
    runs = [file.parent for file in path.glob("*/*/manifest.json")]
    # An export has a manifest, too.
    recorded = {run.parent for run in runs if any(file.suffix in TABLE_FILES for file in run.iterdir())}
    return sorted(recorded - {path / INTERRUPTED})


def _missing_record_message(path: Path) -> str:
    if others := sorted(folder for folder in path.iterdir() if other_kind(folder)):
        return f"{path} holds no run: name one of its other records, such as {others[-1]}."
    if experiments := sorted({file.parents[1] for file in path.glob("*/*/manifest.json")}):
        return f"{path} holds experiments, not runs: name one, such as {experiments[-1]}."
    return (
        f"{path} holds no run record (no manifest.json in it or one level below): name the folder of a run, or one "
        "that holds several."
    )


def other_kind(folder: Path) -> str | None:
    """Return the capability whose record a folder is, as `profile`, or None if it is not one. It may not be there."""
    with_runs = {capability.name for capability in capabilities.installed() if capability.manifest}
    names = (name for name in capabilities.NAMES if name not in with_runs)
    return next((name for name in names if (folder / f"{name}.json").is_file()), None)


def _identity(record: Record) -> Any:
    """Return a key that is the same in every copy of a run's folder: no two runs of an experiment share number
    and start."""
    made = record.manifest
    if not made.experiment or made.sequence is None:
        return record.folder.resolve()
    return made.experiment, made.sequence, made.started


def recorded_seconds(record: Record) -> int:
    """Return the whole seconds that the record holds.

    When a run is cut, its users still finish what they had begun, and the second of the cut is partial. The record then
    ends with the last whole second that the collectors saw, or one before the driver's last.
    """
    if record.ended_s is not None:
        return record.ended_s
    last = max(
        _latest(record, "users", "second"),
        _latest(record, "transactions", "second"),
        _latest(record, "queries", "started_s"),
        _latest(record, "raw_io", "second"),
    )
    # A complete run ended in order, so its last second is whole.
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


# Read a record while its run goes on: only what was added since, and no more in memory than the last seconds.


class GrowingStream:
    """A table of a run that is still running. `read` returns the batches that were completely written since the last
    call."""

    def __init__(self, path: Path):
        self._path = path
        self._schema: pa.Schema | None = None
        self._read = 0  # bytes

    def read(self) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        try:
            with pa.OSFile(str(self._path)) as file:
                file.seek(self._read)
                while file.tell() < file.size():
                    message = pa.ipc.read_message(file)
                    # The first message of a stream is its schema.
                    if self._schema is None:
                        self._schema = pa.ipc.read_schema(message)
                    else:
                        batches.append(pa.ipc.read_record_batch(message, self._schema))
                    self._read = file.tell()
        except (EOFError, OSError, pa.ArrowInvalid):
            pass  # a batch is being written, or the run has closed its record
        return batches


class RecentRecord(Record):
    """The rows of a record that were added lately, for readers of records."""

    def __init__(self, record: Record, added: Mapping[str, Sequence[pa.RecordBatch]]):
        TableFolder.__init__(self, record.folder)  # the manifest is not read again
        self.manifest, self.loads = record.manifest, record.loads
        self._tables = {name: pa.Table.from_batches(batches) for name, batches in added.items() if batches}

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if name in self._tables:
            table = self._tables[name]
            selected = table.select([column for column in columns if column in table.column_names])
            # One batch, because each costs its reader more than its rows do.
            yield from selected.combine_chunks().to_batches()

    def table(self, name: str) -> pa.Table:
        return self._tables.get(name, pa.table({}))


# The record of one load of a run with several loads: its own rows, next to everything that the server reports.

OF_ONE_LOAD = ("transactions", "users", "deferred_queue", "errors", "transaction_io", "own_statements")
"""The tables in which a load has its own rows."""


class LoadRecord(Record):
    """The record of a load whose users execute transactions, as if it had run alone.

    Its steps are those in which the load ran, with its own users; `beside` of a step names the others. The server's
    counts cover all loads together; sampled sessions are the load's own. Older records do not assign samples to loads,
    so next to other users their samples are omitted. It is complete if only other loads ended early.
    """

    def __init__(self, record: Record, load: str):
        super().__init__(record.folder)
        self._sources, self._layouts, self._small = record._sources, record._layouts, record._small  # are read once
        self.load: str = load
        self._whole = record
        self.manifest = _manifest_of_load(record.manifest, load)
        self.ended_s = _find_load(record.manifest, load).ended_s

    @property
    def whole(self) -> Record:
        return self._whole

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        keys = ("load",) if name in OF_ONE_LOAD else ("second", "application") if name == "waits" else ()
        if name in OF_ONE_LOAD:
            self.require_load(name)
        for batch in super().batches(name, list(dict.fromkeys([*columns, *keys]))):
            own = batch.filter(self._load_mask(batch)) if keys else batch
            yield own.select([column for column in columns if column in own.schema.names])

    def _load_mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a mask of the rows of its own users or sessions, in a batch of `OF_ONE_LOAD` or of sampled waits."""
        if "load" in batch.schema.names:
            return pc.equal(batch.column("load"), self.load)
        if "application" in batch.schema.names:
            return pc.equal(batch.column("application"), application("users", self.load))
        return self._without_other_users(batch.column("second").to_numpy())

    def _without_other_users(self, second: np.ndarray) -> pa.Array:
        others = {load.name for load in self.loads if load.kind == "users" and load.name != self.load}
        without = np.ones(len(second), dtype=bool)
        for step in self.manifest.steps:
            if others & set(step.beside):
                without &= (second < step.begin_s) | (second >= step.end_s)
        return pa.array(without)


def _manifest_of_load(manifest: Manifest, name: str) -> Manifest:
    load = _find_load(manifest, name)
    assert load.workload
    search = manifest.search if manifest.search and manifest.search.load in (name, None) else None
    because = manifest.incomplete_because
    if because == ended_early(manifest.loads) or load.ended_because:
        because = load.ended_because
    return manifest.changed(
        status="incomplete" if because else "running" if manifest.status == "running" else "complete",
        incomplete_because=because,
        workload=load.workload,
        loads=(),
        search=search,
        steps=tuple(
            _step(step, index, load, manifest.loads, search)
            for index, step in enumerate(manifest.steps)
            if load.counts[index]
        ),
        service_level=load.service_level,
        left_waiting=load.left_waiting,
        unheard=manifest.unheard.changed(unfinished=load.unfinished),
        scenario=manifest.scenario.changed(thresholds=list(load.thresholds) or None),
    )


def _find_load(manifest: Manifest, load: str) -> Load:
    return next(candidate for candidate in manifest.loads if candidate.name == load)


def _rate(step: Step, load: Load, search: Search | None) -> float | None:
    """Return the rate that a step was measured at: it may have one of its own."""
    if search and search.of != "users" and step.searched:
        level = step.searched.level
        return level if search.of == "rate" else None if load.rate is None else load.rate * level
    return step.steered.rate if step.steered else load.rate


def _step(step: Step, index: int, load: Load, loads: Sequence[Load], search: Search | None) -> Step:
    others = [other for other in loads if other is not load and other.counts[index]]
    end_s = step.end_s if load.ended_s is None else min(step.end_s, load.ended_s)
    return step.changed(
        users=load.counts[index],
        arrivals=load.arrivals,
        rate=_rate(step, load, search),
        searched=step.searched if search else None,
        think_ms=load.think_ms,
        beside=tuple(other.name for other in others if not _ended_by(other, step.begin_s)),
        missed=tuple(other.name for other in others if _ended_by(other, end_s)),
        streams=sum(load_part.counts[index] for load_part in loads if load_part.kind == "streams"),
    )


def _ended_by(load: Load, second: float) -> bool:
    return load.ended_s is not None and load.ended_s < second
