"""The base of all runs of a variant, whatever drives the server: prepare, watch during the load, check, record."""

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from stallmark import engines
from stallmark.collectors import collectors_for, drop_left_behind, storage_alarm
from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Interrupted
from stallmark.engines.abilities import required
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.experiment.manifest import Place, PreparedStorage, manifest
from stallmark.experiment.preflight import refuse_restoring_others, refuse_sessions_of_others
from stallmark.experiment.progress import Phase, Show
from stallmark.experiment.storage_work import StorageWork, carry_out_hook, seconds_since
from stallmark.experiment.work import Work
from stallmark.loaders import ledger
from stallmark.loaders.databases import databases
from stallmark.loaders.ledger import Entry
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import ChosenSize, Condition, Memory, Outage, Took
from stallmark.record.manifest.workload import Counted, Opening, Workload
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import AnyScenario, Variant
from stallmark.scenarios.variant import OwnReset
from stallmark.schema.deploy import schemas_of, telling_blockers
from stallmark.stopping import StopSignal, later
from stallmark.storage.emulator.arrays import PROBE_FOLDER
from stallmark.storage.probe_file import remove_leftovers
from stallmark.transactions import checks, find_workload, open_workload
from stallmark.transactions.workload import Workload as TransactionWorkload

# The counters in the database that a run is checked against.


def commit_counts(engine: Engine, workload: TransactionWorkload) -> dict[str, int]:
    """Return the commits that the database itself has counted, by the transaction's name."""
    counts = {kind.name: engine.query(query)[0][0] for kind, query in workload.users.counted.items()}
    return {name: int(number or 0) for name, number in counts.items()}


WATCH_EVERY_S = 15.0
SETTLED_AFTER_S, SETTLED_WITHIN_S = 0.5, 10.0


@dataclass(frozen=True)
class RunOrder:
    """A run to be made of a variant."""

    variant: Variant
    folder: Path
    place: Place
    title: str
    loaded: Entry
    """The database as loaded, to whose size shares of the data refer."""
    original_pool_bytes: int | None
    check: Callable[[], None]
    """Raises StallmarkError when our lock on the server is lost."""
    notes: Sequence[str]  # stored in the record
    storage: StorageWork
    prepared: PreparedStorage  # stored in the record
    opened: Callable[[], None]
    """Called when the record exists."""
    show: Show
    began: float = field(default_factory=time.monotonic)
    chosen: ChosenSize | None = None
    """The size of the buffer pool, if it was chosen for this run."""


class AnyRun(ABC):
    """One run of one variant."""

    def __init__(self, scenario: AnyScenario, engine: Engine, order: RunOrder):
        self._scenario, self._engine, self._order = scenario, engine, order
        self._variant, self._title, self._show = order.variant, order.title, order.show
        self._workload = find_workload(scenario.contents.name)
        self._watch = Watch(order.check)
        self._notes = list(order.notes)
        self._openings: dict[str, Opening] = {}
        self._counted: dict[str, dict[str, int]] = {}
        self.conditions_hold = True

    @abstractmethod
    def _work(self) -> Work:
        """Describe the work of this run for the manifest."""

    def _mend(self) -> None:
        """Repair what a killed run left half done in the database."""

    @abstractmethod
    def _drive(self, writer: RecordWriter) -> str | None:
        """Drive the server; return why that ended early, None when it did not."""

    def go(self) -> str | None:
        """Execute the run; return why it is incomplete, None when it is whole. The record is closed in any case."""
        with self._show.bar(f"{self._title}: preparing", None, Phase.PREPARING):
            memory = self._prepare()
        writer = self._writer = self._open_record(memory)
        # Stands in the record if an error comes that nothing below expects.
        reason: str | None = "Stallmark ended unexpectedly"
        stop: StopSignal | None = None
        try:
            self._order.opened()
            self._probe(writer, "before")
            took = Took(prepare_s=seconds_since(self._order.began))
            writer.update(took=took)
            began = time.monotonic()
            # The server's limit of connections is for the users.
            self._engine.close_idle()
            reason = self._drive(writer) or self._watch.look()
            if reason is None:
                took, began = took.changed(load_s=seconds_since(began)), time.monotonic()
                self._note_changed_settings(writer)
                try:
                    # Whatever becomes of the probe, the data are checked: their consistency is part of the verdict.
                    self._probe(writer, "after")
                finally:
                    self._check(writer)
                writer.update(took=took.changed(end_s=seconds_since(began)))
            elif writer.manifest.unheard.executors:
                # Executors that were not heard to the end may have committed more than they reported: the database has
                # counted it.
                with suppress(StallmarkError, CallFailed):  # the server may be gone too
                    self._count_settled(writer)
        except StopSignal as stopped:
            stop, reason = stopped, str(stopped)
            raise
        except (StallmarkError, CallFailed, OSError) as error:
            # The loss of the server comes first, as it explains the error; if both are the same, it is written once.
            reason = ". ".join(dict.fromkeys(filter(None, (self._watch.look(), as_reason(error)))))
        finally:
            with later():
                closed = writer.close(reason)
            if stop and closed != reason:
                stop.add_note(f"The record is not whole: {closed}.")
        return closed

    def _prepare(self) -> Memory:
        engine, scenario = self._engine, self._scenario
        self._reset()
        for folder in engine.directories().values():
            # A killed probe or raw load leaves a large file.
            remove_leftovers(folder / PROBE_FOLDER)
        with telling_blockers(engine, self._show.say):
            drop_left_behind(engine)
            self._mend()
            contents = scenario.contents
            # A user's own database is not among these: Stallmark notes nothing in it.
            for database, _, _ in databases(engine, self._workload, contents.scale):
                ledger.note_driven(database)
            for part in self._workload.parts:
                own = engine.database_of(part.name)
                if opened := open_workload(own, part, contents.scale, contents.seed):
                    self._openings[part.name] = Opening(name=opened.name, done=dict(opened.done))
                self._counted[part.name] = commit_counts(own, part)
        engine.devices.use(scenario.emulated_arrays_of(self._variant, self._order.loaded.loaded_bytes))
        if "io_trace" in scenario.observe:
            required(engine.tracing).use()
        wanted = None
        if pool := scenario.pool_of(self._variant):
            wanted = pool.resolve(self._order.loaded.loaded_bytes or 0)
            required(engine.memory).cap(wanted)
        elif engine.memory:
            # The variant before may have capped the pool.
            engine.memory.give_back()
        for name, setting in engine.variant_settings.items():
            if (wanted_so := scenario.setting_for(self._variant, name)) is not None:
                required(setting).make(wanted_so)
            elif setting:
                setting.give_back()
        if scenario.start_cache == "cold":
            self._notes.extend(required(engine.caches).empty())
        elif scenario.start_cache == "prefilled":
            schemas = schemas_of(self._workload.metadata)
            if any(part.is_given for part in self._workload.parts):
                schemas = [*engine.schemas_in_use()]
            required(engine.prefill).fill(*schemas)
        engines.checkpoint(engine)
        return Memory(
            configured_bytes=wanted,
            reached_bytes=engine.buffer_pool_bytes(),
            original_bytes=self._order.original_pool_bytes,
            chosen=self._order.chosen,
        )

    def _reset(self) -> None:
        """Restore the database, as the scenario says."""
        reset = self._scenario.reset
        if reset == "restore":
            self._restore()
        elif isinstance(reset, OwnReset) and reset.restore:
            refuse_sessions_of_others(self._engine)
            required(self._engine.user_backup).restore(reset.restore)
        elif isinstance(reset, OwnReset):
            carry_out_hook(self._variant.name, reset, self._show)

    def _restore(self) -> None:
        refuse_restoring_others(self._scenario, self._engine)  # who may have come since the last one
        place = self._variant.place
        for database in engines.copied(self._engine):
            required(database.backup).restore(place.folders() if place else None)
        entries = ledger.read(self._engine)
        if entries is None or entries.driven or entries.label != self._order.loaded.label:
            raise StallmarkError(
                f"The copy that {self._scenario.contents} was restored from is not of the database as loaded: "
                "drop it (the embedded one: remove its folder) and run again."
            )

    def _open_record(self, memory: Memory) -> RecordWriter:
        dialect = self._engine.dialect
        statements = {part.name: facts for part in self._workload.parts if (facts := part.statements(dialect))}
        collectors = collectors_for(self._engine, self._scenario.observe, statements)
        described = manifest(
            self._scenario,
            self._variant,
            place=self._order.place,
            work=self._work(),
            storage=self._order.prepared,
            engine=self._engine,
            memory=memory,
            loaded=self._order.loaded,
            collectors=collectors,
            notes=self._notes,
        )
        writer = RecordWriter(self._order.folder, _change_workloads(described, self._with_counts_before))
        self._collectors = [c for c in collectors if described.collectors[c.name].unavailable is None]
        for collector in self._collectors:
            collector.step_ends = [step.end_s for step in described.steps]
            writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
        return writer

    def _with_counts_before(self, workload: Workload) -> Workload:
        """Return a workload with what was counted in the database before it began."""
        counted = {name: Counted(before=number) for name, number in self._counted.get(workload.name, {}).items()}
        return workload.changed(opening=self._openings.get(workload.name), counted=counted)

    def _probe(self, writer: RecordWriter, when: str) -> None:
        if probed := self._order.storage.probe(self._title, self._order.loaded.loaded_bytes or 0):
            writer.update(probes=writer.manifest.probes.changed(**{when: probed}))
            writer.save_manifest()

    @contextmanager
    def _given_back(
        self, sampler: Sampler, writer: RecordWriter, finish: Callable[[], None], say: Callable[[], Sequence[str]]
    ) -> Iterator[None]:
        """Stop everything at the end of the load, however it comes, even when a part of the stopping fails. `finish`
        ends the load; `say` then returns the notes on it."""
        try:
            yield
        finally:
            with later(), ExitStack() as ends:
                ends.callback(lambda: writer.note(*say()))
                ends.callback(_write_down, sampler, writer)
                ends.callback(self._keep_files, writer.folder)
                ends.callback(self._engine.devices.relax)
                # After the users, because a session hands in its last counters as it ends.
                ends.callback(sampler.stop)
                ends.callback(finish)

    def _keep_files(self, folder: Path) -> None:
        for name, text in [pair for collector in self._collectors for pair in collector.files().items()]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def _check_server(self) -> None:
        if (
            reason := self._writer.failed
            or self._engine.unexpected_end()
            or storage_alarm(self._collectors)
            or self._watch.why
        ):
            raise Interrupted(reason)

    def _check(self, writer: RecordWriter) -> None:
        checking = self._show.bar(f"{self._title}: checking consistency", None, Phase.CHECKING)
        with checking, telling_blockers(self._engine, self._show.say):
            scale = self._order.loaded.identity.scale
            findings = checks.run(self._engine, self._workload, scale, driven=True)
        findings = [finding for finding in findings if finding.holds is not None or finding.refused]
        self._count(writer)
        writer.update(
            conditions=[Condition(**vars(finding)) for finding in findings],
            database=writer.manifest.database.changed(bytes_after=engines.bytes_used(self._engine)),
        )
        self.conditions_hold = all(finding.holds is not False for finding in findings)

    def _note_changed_settings(self, writer: RecordWriter) -> None:
        """Note which settings of the server are no longer as they were when the run began."""
        try:
            now = engines.settings(self._engine).configuration
        except (StallmarkError, CallFailed) as error:
            writer.note(f"Whether settings of the server changed during the run is not known ({as_reason(error)}).")
            return
        before = writer.manifest.server.settings
        if changed := [name for name in before if now.get(name, before[name]) != before[name]]:
            values = "; ".join(f"{name} was {before[name]} and is {now[name]}" for name in changed)
            writer.note(f"Settings of the server changed during the run: {values}.")

    def _count_settled(self, writer: RecordWriter) -> None:
        """Count the commits after the last one: executors whose conductor was killed take a moment to notice."""
        until, before = time.monotonic() + SETTLED_WITHIN_S, None
        self._count(writer)
        while writer.manifest.workload.counted != before and time.monotonic() < until:
            before = writer.manifest.workload.counted
            time.sleep(SETTLED_AFTER_S)
            self._count(writer)

    def _count(self, writer: RecordWriter) -> None:
        """Put into the manifest what is counted in the database now that the load is over."""
        after = {part.name: commit_counts(self._engine.database_of(part.name), part) for part in self._workload.parts}

        def at_end(workload: Workload) -> Workload:
            known = after.get(workload.name, {})
            numbers = {name: number.changed(after=known.get(name)) for name, number in workload.counted.items()}
            return workload.changed(counted=numbers)

        checked = _change_workloads(writer.manifest, at_end)
        writer.update(workload=checked.workload, loads=checked.loads)


def _change_workloads(made: Manifest, change: Callable[[Workload], Workload]) -> Manifest:
    """Return a manifest with the workload of every load changed. If two loads have the same workload, the database's
    commits cannot be assigned to either."""
    names = Counter(load.workload.name for load in made.loads if load.workload)
    loads = [
        load.changed(workload=change(load.workload)) if load.workload and names[load.workload.name] == 1 else load
        for load in made.loads
    ]
    return made.changed(workload=change(made.workload), loads=loads)


def _write_down(sampler: Sampler, writer: RecordWriter) -> None:
    """Put into the manifest when collectors measured nothing or in part, and how many samples were passed over."""
    writer.update(
        collectors={
            name: collector.changed(
                incomplete=sampler.incomplete.get(name),
                missed=sampler.missed[name],
                outages=[
                    Outage(since_s=failure.since, until_s=failure.until, reason=failure.reason)
                    for failure in sampler.failures
                    if failure.collector == name
                ],
            )
            for name, collector in writer.manifest.collectors.items()
        }
    )


class Watch:
    """A thread that calls `check` every WATCH_EVERY_S seconds while entered: after a restart the server is no longer
    held for this run. The check may take seconds, for which a run cannot wait.

    `why` is the raised error as a phrase, or None.
    """

    def __init__(self, check: Callable[[], None]):
        self.why: str | None = None
        self._check = check
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self._thread.join()

    def look(self) -> str | None:
        """Check now, for one thread at a time, and return `why`."""
        if self.why is None:
            try:
                self._check()
            except StallmarkError as error:
                self.why = as_reason(error)
        return self.why

    def _run(self) -> None:
        while self.why is None and not self._stopping.wait(WATCH_EVERY_S):
            self.look()
