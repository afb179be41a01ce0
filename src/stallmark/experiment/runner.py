"""The runner of a scenario: its database, then every variant and repeat in run order."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from stallmark import engines, format
from stallmark.engines.abilities import required
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, NotGivenBack, ServerLost, StallmarkError, as_reason, as_sentence, in_words
from stallmark.experiment import LoadByHand, LoadMachines
from stallmark.experiment.any_run import AnyRun, RunOrder
from stallmark.experiment.estimate import Estimate, estimate
from stallmark.experiment.manifest import EndNote, Place, PreparedStorage
from stallmark.experiment.others import advice_on_unseen
from stallmark.experiment.preflight import (
    advice,
    advice_on_pools,
    caution_on_history,
    refuse_driven,
    refuse_impossible_devices,
    refuse_places,
    refuse_pool_sizes,
    refuse_what_cannot_be,
    users_loads,
)
from stallmark.experiment.progress import Phase, Show, show_build
from stallmark.experiment.remaining_runs import EarlierExperiment, RemainingRuns
from stallmark.experiment.runs import QueryRun, Run
from stallmark.experiment.status import pace
from stallmark.experiment.storage_work import StorageWork, carry_out_hook
from stallmark.experiment.target import arrangement, locations
from stallmark.loaders import ledger
from stallmark.loaders.databases import build, databases, missing, read_entry
from stallmark.loaders.ledger import Entry
from stallmark.record.files import exclusive_folder
from stallmark.record.reader import Record
from stallmark.record.writer import experiment_folder, folder_of
from stallmark.scenarios.model import AnyScenario, QueryScenario, TimedScenario
from stallmark.schema.deploy import telling_blockers
from stallmark.stopping import later
from stallmark.transactions import find_workload


# The loss of the server as the reason of what failed by it.
@contextmanager
def naming_loss(check: Callable[[], None]) -> Iterator[None]:
    """Raise ServerLost in place of an error if the server was lost, with the loss and then the error. `check` is the
    function that `Engine.hold` yields."""
    try:
        yield
    except ServerLost:
        raise
    except (StallmarkError, CallFailed, OSError) as failed:
        try:
            check()
        except ServerLost as lost:
            raise ServerLost(f"{as_sentence(lost)} {as_sentence(in_words(failed))}") from failed
        raise


@dataclass(frozen=True)
class ExperimentEnd:
    """The result of an experiment: why it ended early, if so, and whether the data were consistent after every run."""

    incomplete_because: str | None
    conditions_hold: bool


class Runner:
    """The runs of one scenario on one engine, as `stallmark run` makes them. `folder` holds their records."""

    def __init__(
        self,
        scenario: AnyScenario,
        engine: Engine,
        out: Path,
        show: Show,
        machines: LoadMachines | None = None,
        begun: EarlierExperiment | None = None,
        by_hand: LoadByHand | None = None,
    ):
        """With `begun`, make only the runs that it lacks, into its folder."""
        self._begun = begun
        self._scenario = scenario
        self._engine = engine
        if scenario.restart:
            engine.restart = partial(
                carry_out_hook, "restart", scenario.restart, show, "The command that restarts the server"
            )
        self._show = show
        self._machines = machines
        self._by_hand = by_hand
        if begun:
            self._experiment, self.folder = begun.last.experiment, begun.folder
        else:
            self.folder = experiment_folder(out, scenario.name)
            self._experiment = self.folder.name

    def run(self) -> ExperimentEnd:
        finished = None
        try:
            with self._engine.hold() as check, naming_loss(check):
                finished = self._run(check)
        except NotGivenBack as left:
            if finished is None or not finished.incomplete_because:
                raise
            because = f"{finished.incomplete_because}. {as_reason(left)}"
            finished = replace(finished, incomplete_because=because)
        return finished

    def _run(self, check: Callable[[], None]) -> ExperimentEnd:
        machines = self._machines.count if self._machines else 1
        if self._by_hand:
            self._by_hand.refuse(self._scenario)
        refuse_what_cannot_be(self._scenario, self._engine, self.folder.parent, machines, self._by_hand)
        taken = f"Another Stallmark is making the runs of {self.folder}: wait for it or stop it."
        with exclusive_folder(self.folder, taken=taken):
            if self._begun:
                self._begun = EarlierExperiment.read(self.folder)  # another may have added to it until now
                self._begun.refuse_another_server(self._engine)
                self._begun.refuse_another_place(self._engine)
            try:
                return self._make_runs(check, machines)
            finally:
                if any(variant.place for variant in self._scenario.variants):
                    with later():
                        for database in engines.copied(self._engine):
                            required(database.backup).bring_home()

    def _make_runs(self, check: Callable[[], None], machines: int) -> ExperimentEnd:
        if self._machines:
            self._machines.refuse(self._scenario, self._engine)
        storage = StorageWork(self._scenario, self._engine, self._show)
        storage.refuse_impossible()
        advices = [*advice(self._scenario, machines), *advice_on_unseen(self._engine)]
        for sentence in (*locations(self._engine, self._scenario), *advices):
            self._show.say(sentence)
        if shallow := caution_on_history(self._scenario, self._engine):
            self._show.tell(shallow)
        # Every run begins with a checkpoint: a refusal of the server must come before the load.
        engines.checkpoint(self._engine)
        original_pool_bytes = self._engine.buffer_pool_bytes()
        expected = self._expect()
        loaded = self._prepare_database(advices)
        self._examine()
        asked = curve.spec(loaded.loaded_bytes or 0) if (curve := self._scenario.curve) else None
        refuse_pool_sizes(self._scenario, self._engine, loaded.loaded_bytes)
        for sentence in (scarce := advice_on_pools(self._scenario, self._engine, loaded.loaded_bytes)):
            self._show.say(sentence)
        advices += scarce
        refuse_impossible_devices(self._scenario, loaded.loaded_bytes)
        refuse_places(self._scenario, self._engine, loaded.loaded_bytes)
        storage.refuse_sizes(loaded.loaded_bytes or 0)
        done: Mapping[int, Record] = {}
        resumed_after_s: float | None = None
        if self._begun:
            done, resumed_after_s = self._begun.records, self._begun.gap_s()
        self._expected = self._machines.expected_machines(self._engine) if self._machines else None
        holds = all(
            condition.holds is not False for record in done.values() for condition in record.manifest.conditions
        )
        present, prepared = None, PreparedStorage()
        took_s = {n: took.seconds for n, made in done.items() if (took := made.manifest.took) and took.seconds}
        last = done[max(done)].folder if done else None
        remaining, note = RemainingRuns(self._scenario, asked, done), EndNote()
        try:
            for turn in remaining:
                number, planned = turn.number, turn.planned
                note.preparing(last, planned.variant.name)
                check()
                self._show.enter(Phase.PREPARING, number)
                began = time.monotonic()
                # Hooks and preconditioning are repeated only if the next variant needs other storage.
                if not self._scenario.same_storage(planned.variant, present):
                    present, prepared = planned.variant, storage.make(planned.variant)
                if self._begun:
                    self._begun.make_room(number)
                last = folder_of(self.folder, number, planned.variant.name)
                order = RunOrder(
                    planned.variant,
                    folder=last,
                    place=Place(
                        self._experiment, number, planned.repeat, planned.block, planned.again, resumed_after_s
                    ),
                    title=f"[{number}/{turn.of}] {planned.variant.name}{' again' * planned.again}",
                    loaded=loaded,
                    original_pool_bytes=original_pool_bytes,
                    check=check,
                    notes=advices,
                    storage=storage,
                    prepared=prepared,
                    chosen=turn.chosen,
                    opened=note.opened,
                    show=self._show,
                    began=began,
                )
                run = self._make(order)
                resumed_after_s = None
                with naming_loss(check):
                    reason = run.go()
                holds = holds and run.conditions_hold
                if reason:
                    return ExperimentEnd(reason, holds)
                took_s[number] = time.monotonic() - began
                remaining.add(number, last)
                if to_make := remaining.left():
                    left = format.roughly(expected.left_s(took_s, to_make))
                    self._show.say(f"about {left} left for {len(to_make)} of {turn.of} runs")
        except (StallmarkError, CallFailed, OSError) as failed:  # a hook, a restore, an operator, a disk that is full
            # No record exists yet that could name the failure.
            if not note.applies:
                raise
            note.record_failure(failed)
            return ExperimentEnd(as_reason(failed), holds)
        except BaseException as failed:
            note.record_failure(failed)
            raise
        finally:
            note.free()
        return ExperimentEnd(None, holds)

    def _examine(self) -> None:
        """Have a user's own SQL tried before its load."""
        if isinstance(self._scenario, TimedScenario):
            for load in users_loads(self._scenario):
                if not (workload := find_workload(load.workload)).is_given:
                    continue
                most = self._by_hand.most_users(load.most_users) if self._by_hand else load.most_users
                workload.examine(self._engine.database_of(workload.name), most)

    def _make(self, order: RunOrder) -> AnyRun:
        if isinstance(self._scenario, QueryScenario):
            return QueryRun(self._scenario, self._engine, order)
        assert isinstance(self._scenario, TimedScenario)
        return Run(self._scenario, self._engine, order, self._expected, self._by_hand)

    def _expect(self) -> Estimate:
        """Return the expected duration of the experiment, and show it before the first run."""
        scenario, choice = self._scenario, self._scenario.contents
        workload = find_workload(choice.name)
        to_build = missing(self._engine, workload, choice.scale, choice.seed)
        copies = (
            [required(database.backup) for database in engines.copied(self._engine)]
            if scenario.reset == "restore"
            else []
        )
        expected = estimate(
            scenario,
            self._engine.dialect,
            to_build=to_build,
            to_copy=bool(copies) and (to_build > 0 or any(copy.label() is None for copy in copies)),
            pace=pace(self.folder.parent) if self._engine.is_local else 1.0,
        )
        if not (self._begun and self._begun.records):
            self._show.expect(expected)
        return expected

    def _prepare_database(self, advices: list[str]) -> Entry:
        """Load the database unless it exists; append sentences for the records to `advices`."""
        choice, to_be_copied = self._scenario.contents, self._scenario.reset == "restore"
        workload = find_workload(choice.name)
        if not list(databases(self._engine, workload, choice.scale)):
            return read_entry(self._engine, workload)
        # A user's setup.sql makes the database again, which `run --sql` has changed. Ours may take hours to load.
        if to_be_copied and workload.is_given and self._engine.is_local and not self._engine.by_workload:
            self._clear_if_driven()
        loading = show_build(self._show, f"Loading {choice}")
        with loading as progress, telling_blockers(self._engine, self._show.say):
            workers = os.cpu_count() or 1
            built = build(
                self._engine,
                workload,
                choice.scale,
                choice.seed,
                workers=workers,
                to_be_copied=to_be_copied,
                arrange=arrangement(self._engine, self._scenario),
                progress=progress,
            )
        if built.caution:
            self._show.say(built.caution)
            advices.append(built.caution)
        if not built.complete:
            raise StallmarkError(f"Another build is still loading {choice}: run again when it has ended.")
        if to_be_copied:
            self._keep_copies()
        return read_entry(self._engine, workload)

    def _clear_if_driven(self) -> None:
        """Clear a database that load has changed if no copy from before is kept."""
        entry = ledger.read(self._engine)
        if entry and entry.driven and required(self._engine.backup).label() != entry.label:
            self._show.say(f"{self._scenario.contents} has changed since setup.sql made it: it is made again.")
            self._engine.clear_database()

    def _keep_copies(self) -> None:
        for database in engines.copied(self._engine):
            entry, backup = ledger.read(database), required(database.backup)
            assert entry
            if backup.label() != entry.label:
                refuse_driven(self._scenario, database, entry)
                with self._show.bar("Keeping a copy to start every variant from", None):
                    backup.keep(entry.label)
