"""The record of one load of a run with several loads: its own rows, next to everything that the server reports."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Load, Search, Step, application, ended_early
from stallmark.record.reader import Record

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

    def table(self, name: str) -> pa.Table:
        whole = self._whole.table(name)
        if name not in OF_ONE_LOAD:
            return whole
        self.require(name, "load")
        return whole.filter(pc.equal(whole["load"], self.load))

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if name == "waits":
            yield from self._waits(columns)
            return
        if name not in OF_ONE_LOAD:
            yield from super().batches(name, columns)
            return
        self.require(name, "load")
        for batch in super().batches(name, list(dict.fromkeys([*columns, "load"]))):
            own = batch.filter(pc.equal(batch.column("load"), self.load))
            yield own.select([column for column in columns if column in own.schema.names])

    def _waits(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in super().batches("waits", list(dict.fromkeys([*columns, "second", "application"]))):
            yield batch.filter(self._waits_mask(batch)).select([name for name in columns if name in batch.schema.names])

    def _waits_mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a mask of the rows of sampled waits from its own sessions, by their second and application."""
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
