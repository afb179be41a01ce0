"""The state of a run as its controller follows it: rows merged, warm-up, steps added, and why it ends early."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil

from stallmark.driver.load import LoadSpec, Step, Timeline, WarmUpLimits
from stallmark.driver.messages import (
    ChangedByHand,
    ExecutorDied,
    Incomplete,
    LateMachine,
    MachineLost,
    Message,
    MessagesLost,
    NotUnderstood,
    SessionLost,
    StoppedByHand,
)
from stallmark.driver.rows import RowMerger, Rows, TransactionRow
from stallmark.driver.searched_load import Judgement, SearchPlan
from stallmark.driver.tally import SECOND_NS, parts_by_second
from stallmark.errors import as_reason
from stallmark.processes import exit_clause, killed_by
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Step as RecordedStep
from stallmark.record.manifest.workload import Waited
from stallmark.record.writer import RecordWriter
from stallmark.stats.ceiling_search import Ceiling, Next
from stallmark.transactions.workload import Workload

# The CPU of those processes of the client that drive no users: the command with its collectors, and the conductor.
#
# Executors report their own (executor.py). Together they are what driving the load costs this machine.

COMMAND, CONDUCTOR = "command", "conductor"


class ClientCpu:
    """The CPU of this process and of the conductor since the run's start, second by second."""

    def __init__(self, conductor: int, start_ns: int):
        """Take the conductor's process id."""
        self._conductor = psutil.Process(conductor)
        self._start_ns = self._seen_ns = start_ns
        self._spent = self._now()

    def rows(self, now_ns: int) -> Iterator[dict[str, Any]]:
        """Yield a row for each second that has ended since the last call, if its CPU is known."""
        until_ns = now_ns - (now_ns - self._start_ns) % SECOND_NS
        if until_ns <= self._seen_ns:
            return
        before, self._spent = self._spent, self._now()
        since_ns, self._seen_ns = self._seen_ns, until_ns
        for process in before.keys() & self._spent.keys():
            spent_ns = self._spent[process] - before[process]
            for second, part in parts_by_second(since_ns - self._start_ns, until_ns - self._start_ns):
                cpu_us = spent_ns * part // (until_ns - since_ns) // 1000
                yield {"second": second, "process": process, "cpu_us": cpu_us}

    def _now(self) -> dict[str, int]:
        """Return the ns that each has taken; without the conductor once that has ended."""
        cpu_ns = {COMMAND: time.process_time_ns()}
        with suppress(psutil.Error):
            times = self._conductor.cpu_times()
            cpu_ns[CONDUCTOR] = int((times.user + times.system) * SECOND_NS)
        return cpu_ns


# The reasons for which a run, or one load of it, ends early, as they are told.


def end_reason(message: Message, workloads: Mapping[str, Workload]) -> str:
    """Return the reason for the end of a run or of a load, worded as the end of a sentence."""
    loads = getattr(message, "loads", None) or [load for load in [getattr(message, "load", None)] if load]
    where = load_suffix(loads, workloads)
    if machine := getattr(message, "machine", 0):
        where += f" on load machine {machine}"
    match message:
        case ExecutorDied(pid=pid, reason=reason) if reason:
            return f"executor process {pid}{where} could not begin: {reason}"
        case ExecutorDied(loads, pid, code):
            how = exit_clause(code)
            if code is None:
                how = "closed its channel without a word"
            elif not killed_by(code):
                how = "ended by a fault of its own, whose message stands in its output"
            background = [workloads[load].background for load in loads]
            others = {work.executed_by: None for work in background if work.sessions_per_user}
            part = "".join(f" and its part of {executor}" for executor in others)
            return f"executor process {pid}{where} {how}, and its users{part} with it"
        case SessionLost(load, user, why):
            who = workloads[load].background.executed_by if user is None else f"virtual user {user}"
            return f"{who}{where} lost the server: {why}"
        case MachineLost(machine):
            return (
                f"load machine {machine} was lost: its `stallmark worker` ended, or the network between the machines "
                "failed"
            )
        case MessagesLost(machine):
            return f"messages of load machine {machine} were lost: the network between the machines failed"
        case Incomplete(why):
            return why
    return "the load driver stopped the users too early"


def late_machine_notice(message: LateMachine) -> str:
    """Return the sentence on a load machine that came when the run had all of its own."""
    return f"Load machine {message.name} came when all were there: it waits for the next run."


def not_understood_notice(message: NotUnderstood) -> str:
    """Return the sentence on a sender whose messages are left out."""
    sender = message.sender or "the load driver's conductor"
    where = f" on load machine {message.machine}" if message.machine else ""
    return f"What {sender}{where} sent was no message of Stallmark: it was left out, and the run goes on."


def load_suffix(loads: Sequence[str], workloads: Mapping[str, Workload]) -> str:
    """Name loads where the run has several."""
    return f" of {' and '.join(loads)}" if loads and len(workloads) > 1 else ""


# The wait for a steady state during a run: it decides for every step when to begin to measure it.

CHECK_EVERY_S = 5
SETTLED_AFTER_S = 2  # all executors have reported a second after this time
LAST_PART = 0.5  # share of the time since the ramp: a step's beginning must not count for ever


@dataclass
class SecondSeries:
    """The throughput and latency of all loads together that executors of all machines have reported, by second."""

    committed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    done: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    latency_us: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, row: TransactionRow) -> None:
        self.committed[row.second] += row.committed
        self.done[row.second] += row.committed + row.rolled_back
        self.latency_us[row.second] += row.latency_us

    def throughput(self, begin: int, end: int) -> np.ndarray:
        """Return the committed transactions in each of the seconds begin ≤ s < end."""
        return np.array([self.committed.get(second, 0) for second in range(begin, end)], dtype=float)

    def latency(self, begin: int, end: int) -> np.ndarray:
        """Return the mean latency in µs by second; NaN in seconds in which nothing ended."""
        done = np.array([self.done.get(second, 0) for second in range(begin, end)], dtype=float)
        total = np.array([self.latency_us.get(second, 0) for second in range(begin, end)], dtype=float)
        return np.divide(total, done, out=np.full(len(done), np.nan), where=done > 0)


class SteadyStateWait:
    """The wait for a steady state, which decides for each step when it is measured. `waited` records each decision."""

    def __init__(self, timeline: Timeline, loads: Sequence[LoadSpec], seen: SecondSeries):
        self.timeline = timeline
        self._loads = loads
        self.waited: list[Waited] = []
        self._seen = seen
        self._check_s = 0.0

    @property
    def waiting(self) -> bool:
        """Return True if a step is still to be decided."""
        return self.timeline.warm_up_limits is not None and len(self.waited) < len(self.timeline.steps)

    def check(self, now_s: float) -> bool:
        """Decide on the next step if it is time. Return whether that was done, and `timeline` is a new one. `now_s`
        counts from the run's start."""
        if not self.waiting or now_s < self._check_s:
            return False
        index = len(self.waited)
        step, earliest_s = self.timeline.steps[index], self._earliest_s()
        steady = earliest_s <= now_s < step.measure_s and self._steady(step, now_s)
        if not steady and now_s < step.measure_s:
            # Before the shortest warm-up there is nothing to check.
            next_s = earliest_s if now_s < earliest_s else now_s + CHECK_EVERY_S
            self._check_s = min(next_s, step.measure_s)
            return False
        self._decide(index, min(math.ceil(now_s), step.measure_s) if steady else step.measure_s, steady)
        return True

    def pass_over(self) -> None:
        """Note that the last step has ended before it was measured as planned."""
        limits, step = self.timeline.warm_up_limits, self.timeline.steps[-1]
        if limits and len(self.waited) < len(self.timeline.steps):
            self._note(limits, step.measure_s - step.begin_s - step.ramp_s, steady=False)

    def _earliest_s(self) -> float:
        step, limits = self.timeline.steps[len(self.waited)], self.timeline.warm_up_limits
        assert limits
        return step.begin_s + step.ramp_s + limits.at_least_s

    def _steady(self, step: Step, now_s: float) -> bool:
        """Return True if the load is steady: by its throughput if any load is a closed loop, otherwise by its latency.

        The throughput of an open loop is the rate of its arrivals, independent of the server.
        """
        from stallmark.stats.steady_state import steady_enough

        index = self.timeline.steps.index(step)
        began_s = step.begin_s + step.ramp_s
        until = math.floor(now_s - SETTLED_AFTER_S)
        # Only the last part of the time since the ramp: the beginning is expected to differ.
        since = math.ceil(until - LAST_PART * (until - began_s))
        active = [load for load in self._loads if load.users_in(index)]
        # A step without users, of loads that rest, is steady by definition.
        if not active:
            return True
        closed = any(load.arrivals.kind == "closed" for load in active)
        series = (self._seen.throughput if closed else self._seen.latency)(since, until)
        return steady_enough(series, step.end_s - step.measure_s)

    def _decide(self, index: int, second: float, steady: bool) -> None:
        limits, step = self.timeline.warm_up_limits, self.timeline.steps[index]
        assert limits
        self.timeline = self.timeline.measuring_from(index, second)
        self._note(limits, second - step.begin_s - step.ramp_s, steady)

    def _note(self, limits: WarmUpLimits, seconds: float, steady: bool) -> None:
        self.waited.append(
            Waited(at_least_s=limits.at_least_s, at_most_s=limits.at_most_s, seconds=max(0.0, seconds), steady=steady)
        )


# The controller's merging of what is reported: it writes into the record, and counts.
class Merger(RowMerger):
    """A merger that writes into the record, and counts what has come."""

    def __init__(self, writer: RecordWriter):
        super().__init__()
        self.writer = writer
        self.seen = SecondSeries()
        self.errors = 0
        self.committed: Counter[tuple[str, str]] = Counter()
        """Transactions by load and name."""
        self.given_up: Counter[tuple[str, str, str]] = Counter()
        """Transactions that were not tried again, by load, name and the server's words."""

    def add(self, reported: Rows) -> None:
        super().add(reported)
        for row in reported.transactions:
            self.seen.add(row)
            self.committed[row.load, row.transaction] += row.committed
        for error in reported.errors:
            self.errors += error.attempts
            self.given_up[error.load, error.transaction, f"{as_reason(error.message)} ({error.code})"] += error.given_up

    def write_before(self, second: float) -> None:
        """Write and forget the rows of all seconds before `second`."""
        rows = self.pop_before(second)
        for table in Rows.__struct_fields__:
            self.writer.append(table, [row.columns() for row in getattr(rows, table)])


# The steps of a run in its manifest while it goes on: their times, and those that a search adds.


def with_times(steps: Sequence[RecordedStep], timeline: Timeline, waited: Sequence[Waited]) -> tuple[RecordedStep, ...]:
    """Return the steps with the times of the timeline, and how each of the first was waited for."""
    known = [*waited, *[None] * (len(steps) - len(waited))]
    return tuple(
        step.changed(begin_s=now.begin_s, measure_s=now.measure_s, end_s=now.end_s, waited=how)
        for step, now, how in zip(steps, timeline.steps, known, strict=True)
    )


def users_in(judged: Judgement, plan: SearchPlan, loads: Sequence[LoadSpec], ended: Collection[str]) -> list[int]:
    """Return the users of each load in the step that is added; none where none is. A load that ended stays so."""
    if not isinstance(judged.then, Next):
        return []
    level = judged.then.level
    return [0 if load.name in ended else plan.users_at(load.name, level, load.users[0]) for load in loads]


def changed_by_hand(
    made: Manifest, timeline: Timeline, loads: Sequence[LoadSpec], change: ChangedByHand | StoppedByHand
) -> dict[str, Any]:
    """Return the fields of the manifest that change with the timeline, once somebody has changed the load: its last
    step is new, or ends the run."""
    last = len(timeline.steps) - 1
    if isinstance(change, StoppedByHand):
        steps = made.steps[: last + 1]
        counts = {load.name: load.counts[: last + 1] for load in made.loads}
        steps = (*steps[:-1], steps[-1].changed(stopped_by_hand=True))
    else:
        users: Counter[str] = Counter()
        for load, number in zip(loads, change.users, strict=True):
            users[load.name] += number
        before, added = made.steps[:last], timeline.steps[last]
        step = before[-1].changed(
            name=added.name, users=added.users, waited=None, spawn_rate=change.spawn_rate, stopped_by_hand=False
        )
        steps = (*before, step)
        counts = {load.name: (*load.counts[:last], users.get(load.name, load.counts[last - 1])) for load in made.loads}
    return {"steps": steps, "loads": tuple(load.changed(counts=counts[load.name]) for load in made.loads)}


def manifest_changes(made: Manifest, judged: Judgement, plan: SearchPlan) -> dict[str, Any]:
    """Return the fields of the manifest that change once a level was judged: its step, the step that follows, or the
    answer.
    """
    steps, loads, search = list(made.steps), list(made.loads), made.search
    if judged.seen:
        steps[-1] = steps[-1].changed(searched=judged.seen)
    if isinstance(judged.then, Next):
        added, level = judged.timeline.steps[-1], judged.then.level
        rate = level if plan.searches_rate and not loads else None
        step = steps[0].changed(name=added.name, users=added.users, rate=rate, waited=None, searched=None)
        steps.append(step)
        loads = [load.changed(counts=(*load.counts, plan.users_at(load.name, level, load.counts[0]))) for load in loads]
    if isinstance(judged.then, Ceiling) and search:
        answer = judged.then
        search = search.changed(outcome=answer.outcome.value, holds=answer.holds, breaks=answer.breaks)
    return {"steps": tuple(steps), "loads": tuple(loads), "search": search}
