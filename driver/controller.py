"""The controller of one run: it starts the conductor, follows the timeline, and writes what arrives into the record."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from select import select

import msgspec

from stallmark.driver.channel import Closed, start_child
from stallmark.driver.load import (
    ExpectedMachines,
    LoadSpec,
    LocustPage,
    Step,
    Timeline,
    background_sessions,
    pack_executors,
)
from stallmark.driver.messages import (
    ChangedByHand,
    ClocksCompared,
    ConductorOrder,
    EndLoad,
    ExecutorDied,
    ExecutorSilent,
    FinalReport,
    Finished,
    Go,
    LateMachine,
    LoadMachine,
    MachineLost,
    Malformed,
    Message,
    NewTimeline,
    NotUnderstood,
    Quit,
    Rate,
    Ready,
    Refused,
    Report,
    SessionLost,
    Stopped,
    StoppedByHand,
    Waiting,
)
from stallmark.driver.run_state import (
    SETTLED_AFTER_S,
    ClientCpu,
    Merger,
    SteadyStateWait,
    changed_by_hand,
    end_reason,
    late_machine_notice,
    load_suffix,
    manifest_changes,
    not_understood_notice,
    users_in,
    with_times,
)
from stallmark.driver.searched_load import SearchedLoad, SearchPlan
from stallmark.errors import ErrorClass, StallmarkError, as_sentence
from stallmark.format import display_name
from stallmark.processes import exit_clause, kill, wait_for_exit_code
from stallmark.record.manifest.course import LeftWaiting, Unheard
from stallmark.record.manifest.course import LoadMachine as RecordedMachine
from stallmark.record.schema import OWN_STATEMENTS
from stallmark.record.writer import RecordWriter
from stallmark.stats.ceiling_search import LevelResult, Next
from stallmark.transactions import find_workload

READY_LIMIT_S = 60
EXIT_WITHIN_S = 5  # a conductor whose channel has closed is ending
FAREWELL_S = 40  # the conductor gives the executors 15 s, they give their users 10 s
CHECK_EVERY_S = 0.2
SILENT_S = 30.0  # an executor that reports four times a second has stopped
MISSING_S = 1.0  # silence at the timeline's end that counts as stopped, if no last report came: four reports
_CONDUCTOR = "the load driver's conductor"
REPORTED_AFTER_S = 0.75  # when a second has ended: executors report four times a second, load machines 0.4 s after it


@dataclass(frozen=True)
class LoadProgress:
    """The state of a run at this moment, for display."""

    elapsed_s: float
    ends_s: float  # latest end, if steps wait for a steady state
    step: Step
    waiting: bool  # waiting for a steady state
    tps: float  # committed in the last whole second that has been reported
    errors: int  # failed attempts since the start
    last_level: LevelResult | None = None  # last judged level of a search


class Interrupted(Exception):
    """An error: the run ended before its timeline did. The message is the reason."""


class Drive:
    """The loads of one run. `start` returns when every process is ready and the clock runs; then call `follow`.

    With `expected` other machines drive the loads. Each of them knows its own way to the server: the URL `engine`,
    which may hold a password, stays here. `load_machines` then describes these machines for the manifest. With a
    `search` steps are added until the ceiling is known; the caller passes the server's I/Os to `searched`. On a `page`
    of Locust somebody may change the users, which adds a step, or end the run.
    """

    def __init__(
        self,
        timeline: Timeline,
        engine: str,
        loads: Sequence[LoadSpec],
        writer: RecordWriter,
        expected: ExpectedMachines | None = None,
        search: SearchPlan | None = None,
        page: LocustPage | None = None,
    ):
        self._loads = loads
        self._workloads = {load.name: find_workload(load.workload) for load in loads}
        self._writer = writer
        self._merger = Merger(writer)
        if any(load.definition for load in loads):
            writer.add_table("own_statements", OWN_STATEMENTS)
        decks = {name: workload.users.deck for name, workload in self._workloads.items()}
        self.searched = SearchedLoad(search, decks) if search else None
        self._settling = SteadyStateWait(timeline, loads, self._merger.seen)
        self._within_s = expected.within_s if expected else 0
        self._process, self._channel = start_child("stallmark.driver.locust_conductor")
        with suppress(Closed):  # `start` says how it ended
            self._channel.send(ConductorOrder(timeline, None if expected else engine, list(loads), expected, page))
        self._ended = False
        self._left: dict[str, Counter[str]] = {name: Counter() for name in self._workloads}
        self._silent = self._lost = 0
        self._unheard: dict[tuple[str, int, int], int] = {}
        """Checks since the last report of each executor of each load. Not seconds: while this machine stands still,
        nobody reports."""
        self._not_understood: set[str] = set()
        self._say: Callable[[str], None] = lambda sentence: None
        self.start_ns = 0
        self.load_machines: list[RecordedMachine] = []
        self._parts: list[list[int]] = []
        self.ended: dict[str, tuple[int, str]] = {}
        """Loads that have ended early: after how many whole seconds, and why."""

    def start(self, say: Callable[[str], None] = lambda sentence: None) -> None:
        """Wait for the executors, and before for the load machines, then start the clock."""
        limit_s = READY_LIMIT_S + self._within_s
        self._say = say
        try:
            ready = False
            while not ready:
                if not select([self._channel], [], [], limit_s)[0]:
                    raise StallmarkError(
                        f"The load driver was not ready within {limit_s:g} s: the machine is overloaded."
                    )
                match self._channel.receive():
                    case Refused(name, why):
                        say(f"Load machine {name} was refused: {why}.")
                    case Waiting(arrived, wanted):
                        say(f"Waiting for load machines: {arrived} of {wanted} are here.")
                    case LateMachine() as message:
                        say(late_machine_notice(message))
                    case Ready(machines):
                        self._welcome(machines, say)
                        ready = True
                    case NotUnderstood() as message:
                        self._leave_out(message)
                    case message:
                        raise StallmarkError(
                            as_sentence(f"The load could not start: {end_reason(message, self._workloads)}")
                        )
            self.start_ns = time.monotonic_ns()
            self._channel.send(Go(self.start_ns))
        except Closed:
            raise StallmarkError(f"The load could not start: {self._conductor_gone()}.") from None
        self._client_cpu = ClientCpu(self._process.pid, self.start_ns)

    def clock(self) -> float:
        """Return the seconds since the run's start. Monotonic: setting the wall clock back changes nothing."""
        return (time.monotonic_ns() - self.start_ns) / 1e9

    def follow(
        self,
        show: Callable[[LoadProgress], None],
        check: Callable[[], None],
        ask: Callable[[str, float], None] = lambda load, rate: None,
    ) -> None:
        """Follow the timeline to its end. `check` is called several times a second and may raise Interrupted; `ask`
        puts a rate that was searched for into force, of a load that has no users."""
        while (now := self.clock()) < self._timeline.end_s:
            until = min(now + CHECK_EVERY_S, self._timeline.end_s)
            while (left_s := until - self.clock()) > 0:
                self._receive(timeout=left_s)
            self._unheard = {executor: checks + 1 for executor, checks in self._unheard.items()}
            if silent := self._silent_loads(SILENT_S):
                self._end_loads(silent, _standing_still(SILENT_S))
            self._merger.write_before(self.clock() - SETTLED_AFTER_S)
            self._writer.append("client_cpu", list(self._client_cpu.rows(time.monotonic_ns())))
            if self._settling.check(self.clock()):
                self._apply_timeline()
            self._search(ask)
            check()
            second = int(self.clock() - REPORTED_AFTER_S) - 1
            show(
                LoadProgress(
                    self.clock(),
                    self._timeline.end_s,
                    self._timeline.step_at(self.clock()),
                    self._settling.waiting and self.clock() < self._timeline.step_at(self.clock()).measure_s,
                    self._merger.seen.committed.get(second, 0),
                    self._merger.errors,
                    self.searched.last if self.searched else None,
                )
            )

    @property
    def _timeline(self) -> Timeline:
        return self._settling.timeline

    def _apply_timeline(self, users: Sequence[int] = (), spawn_rate: float | None = None) -> None:
        """Put a changed timeline into force, for the conductor and in the record; with `users` of each load its last
        step is new."""
        self._send(NewTimeline(self._timeline, list(users), spawn_rate))
        self._writer.update(steps=with_times(self._writer.manifest.steps, self._timeline, self._settling.waited))
        self._writer.save_manifest()

    def _ask_for(self, name: str, rate: float) -> None:
        """Put a load's rate into force: each of its cells that has users now gets an equal share."""
        step = self._timeline.index_at(self.clock())
        places = [place for place, load in enumerate(self._loads) if load.name == name and load.users_in(step)]
        for place in places:
            self._send(Rate(place, rate / len(places)))

    def _search(self, ask: Callable[[str, float], None]) -> None:
        """Judge the level of a search when it has ended, and have the next one follow."""
        search = self.searched
        if not search or not (judged := search.check(self._timeline, self.clock())):
            return
        if judged.seen:
            self._settling.pass_over()
        self._writer.update(**manifest_changes(self._writer.manifest, judged, search.plan))
        self._settling.timeline = judged.timeline
        self._apply_timeline(users_in(judged, search.plan, self._loads, self.ended))
        if isinstance(judged.then, Next):
            for name, rate in search.plan.rates_at(judged.then.level).items():
                (self._ask_for if name in self._workloads else ask)(name, rate)

    def _change_by_hand(self, change: ChangedByHand | StoppedByHand) -> None:
        """Begin a step with other users, or end the run now. A run that is ending already does so as planned."""
        now_s = self.clock()
        if now_s >= self._timeline.steps[-1].end_s:
            return
        if isinstance(change, ChangedByHand):
            timeline = self._timeline.changed_at(now_s, sum(change.users), change.ramp_s)
        else:
            timeline = self._timeline.stopped_at(now_s)
            if not any(math.floor(step.end_s) > math.ceil(step.measure_s) for step in timeline.steps):
                raise Interrupted("stopped on Locust's page before anything was measured")
        self._writer.update(**changed_by_hand(self._writer.manifest, timeline, self._loads, change))
        self._settling.timeline = timeline
        if isinstance(change, ChangedByHand):
            self._apply_timeline(change.users, change.spawn_rate)
        else:
            self._apply_timeline()

    def finish(self) -> None:
        """Stop the users, take their last reports and end all processes. Call it whatever has happened."""
        try:
            self._channel.send(Quit())
            deadline = time.monotonic() + FAREWELL_S
            while not self._ended and time.monotonic() < deadline:
                self._receive(timeout=0.5, farewell=True)
        except Closed:
            pass
        finally:
            # The last reports of all executors went through the conductor.
            if not self._ended:
                executors = sum(machine.executors for machine in self.load_machines) or len(pack_executors(self._loads))
                self._lost = executors - self._silent
            kill(self._process)
            self._channel.close()
            self._merger.write_before(float("inf"))

    def no_result_reason(self) -> str | None:
        """Return the reason why a load has no result, or None if all have one. Call it after `finish`.

        A load has no result if an executor stopped before the end, or if its primary transaction was tried and never
        committed; without a primary one, any transaction.
        """
        if self._silent_loads(MISSING_S):
            return _standing_still(MISSING_S)
        reasons = [reason for name in self._workloads if (reason := self._no_result_reason(name))]
        return "; ".join(reasons) or None

    def _no_result_reason(self, load: str) -> str | None:
        workload = self._workloads[load]
        primary = workload.users.primary
        names = [primary.name] if primary else [kind.name for kind in workload.transactions]
        failed = [
            (n, words)
            for (name_of_load, name, words), n in self._merger.given_up.items()
            if name_of_load == load and name in names and n
        ]
        if not failed or any(self._merger.committed[load, name] for name in names):
            return None
        transaction = (display_name(primary.name) if primary else "transaction") + load_suffix([load], self._workloads)
        most, words = max(failed)
        return f"no {transaction} was committed; the reason of {most:,} that failed: {words}"

    def lost_reports(self) -> Unheard:
        """Return the numbers of transactions and executors without a last report. Call it after `finish`."""
        return Unheard(unfinished=self.unfinished(), silent=self._silent, lost=self._lost)

    def unfinished(self, load: str | None = None) -> int:
        """Return the number of transactions that did not end, of one load or of all. Call it after `finish`."""
        return self._counts_left(load)["unfinished"]

    def left_waiting(self, load: str | None = None) -> LeftWaiting:
        """Return the numbers of arrivals and of deferred tasks that were never begun, of one load or of all. Call it
        after `finish`.
        """
        left = self._counts_left(load)
        return LeftWaiting(arrivals=left["unserved"], deferred=left["pending"])

    def background_sessions(self) -> dict[str, int]:
        """Return the background sessions of each load on all load machines, once these are there."""
        return background_sessions(self._loads, self._parts)

    def _counts_left(self, load: str | None) -> Counter[str]:
        return self._left[load] if load else sum(self._left.values(), Counter())

    def _send(self, message: Message) -> None:
        try:
            self._channel.send(message)
        except Closed:
            raise Interrupted(f"{self._conductor_gone()}; what it had reported is kept") from None

    def _receive(self, timeout: float, farewell: bool = False) -> None:
        if not select([self._channel], [], [], timeout)[0]:
            return
        try:
            message = self._channel.receive()
        except Closed:
            if farewell:
                raise
            raise Interrupted(f"{self._conductor_gone()}; what it had reported is kept") from None
        match message:
            case Report():
                try:
                    rows = message.rows()
                # One unreadable report must not end a run that has gone on for hours.
                except Malformed:
                    self._leave_out(NotUnderstood("an executor process"))
                    return
                self._merger.add(rows)
                self._unheard |= {(row.load, row.machine, row.executor): 0 for row in rows.users}
                if self.searched:
                    self.searched.count(rows)
                for row in rows.errors:
                    if ErrorClass(row.error_class).fatal and not farewell:
                        raise Interrupted(f"the server lost data: {row.message} ({row.code}); check its storage")
            case FinalReport(load, unfinished, unserved, pending):
                self._left[load].update(unserved=unserved, unfinished=unfinished, pending=pending)
            case ClocksCompared(machine, within_ms) if self.load_machines:
                known = self.load_machines[machine - 1]
                self.load_machines[machine - 1] = known.changed(clock_within_ms=within_ms)
            case ChangedByHand() | StoppedByHand() if not farewell:
                self._change_by_hand(message)
            case ExecutorSilent():
                self._silent += 1
            case NotUnderstood():
                self._leave_out(message)
            case LateMachine():
                self._say(late_machine_notice(message))
            case Finished():
                self._ended = True
            # Executors of a lost machine cannot report any more: the load is not the one that was asked for.
            case MachineLost(machine) if self.load_machines and not farewell:
                self._lost += self.load_machines[machine - 1].executors
                raise Interrupted(end_reason(message, self._workloads))
            # Locust stops the users at the timeline's end; before that it is an error, below.
            case Stopped() if farewell or self.clock() >= self._timeline.end_s:
                pass
            # Other loads can continue: only the loads of that executor have lost users.
            case ExecutorDied(loads) if not farewell:
                self._lost += 1
                self._end_loads(loads, end_reason(message, self._workloads))
            case SessionLost(load) if not farewell:
                self._end_loads([load], end_reason(message, self._workloads))
            case _ if not farewell:
                raise Interrupted(end_reason(message, self._workloads))

    def _conductor_gone(self) -> str:
        """Return the conductor's end as a clause."""
        code = wait_for_exit_code(self._process, EXIT_WITHIN_S)
        return f"{_CONDUCTOR} {exit_clause(code)}{', and its message stands above' if (code or 0) > 0 else ''}"

    def _leave_out(self, message: NotUnderstood) -> None:
        """Report and record, once for each sender, that a message was ignored."""
        if (sentence := not_understood_notice(message)) not in self._not_understood:
            self._not_understood.add(sentence)
            self._say(sentence)
            self._writer.note(sentence)

    def _silent_loads(self, seconds: float) -> list[str]:
        """Return the unfinished loads with an executor silent for `seconds` or longer."""
        silent = [load for (load, _, _), checks in self._unheard.items() if checks * CHECK_EVERY_S >= seconds]
        return [load for load in dict.fromkeys(silent) if load not in self.ended]

    def _end_loads(self, loads: Sequence[str], because: str) -> None:
        """Go on without loads that have lost a part of themselves. Raise Interrupted if no other is left."""
        whole_seconds = max(0, int(self.clock() - REPORTED_AFTER_S))
        ended_now = [load for load in loads if load not in self.ended]
        self.ended |= dict.fromkeys(ended_now, (whole_seconds, because))
        if len(self.ended) == len(self._workloads):
            raise Interrupted("; ".join(dict.fromkeys(because for _, because in self.ended.values())))
        for load in ended_now:
            self._send(EndLoad(load))

    def _welcome(self, machines: Sequence[LoadMachine], say: Callable[[str], None]) -> None:
        """Report the load machines and describe them for the manifest. Their names are left out: a record describes a
        machine, not its owner.
        """
        for machine in machines:
            say(f"Load machine {machine.number} is {machine.name}: {machine.facts.cores} cores.")
            self._parts.append(machine.parts)
            self.load_machines.append(
                RecordedMachine(
                    number=machine.number,
                    executors=machine.executors,
                    clock_within_ms=machine.clock_within_ms,
                    **msgspec.structs.asdict(machine.facts),
                )
            )


def _standing_still(seconds: float) -> str:
    """Return the reason for the end of loads whose executor is silent, as the end of a sentence."""
    # A conductor that stands still passes no report on, which looks the same from here.
    return (
        f"no report of an executor process arrived for more than {seconds:g} s: it or {_CONDUCTOR} was stopped, or "
        "their machine is busy; leave the processes and the processors to the run"
    )
