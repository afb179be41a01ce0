"""The statements of procedures and of a user's own SQL: the reads, the waits and the plans of each.

The plan cache loses the last counts of a plan that it evicts while they rise. Query Store, if it was asked for, keeps
them; it counts statements, not calls of procedures.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark import format
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.rises import Codes
from stallmark.analysis.read.server_summary import delta_over, largest_readers
from stallmark.analysis.read.throughput import Latencies, Load
from stallmark.analysis.read.times import Interval, ReadKind, first_of_runs, numbers_of, rows_with_times, sample_times
from stallmark.format import Shown, words
from stallmark.record.manifest.workload import Workload
from stallmark.record.reader import Record


@dataclass(frozen=True)
class Dropped:
    """An entity that was counting when it was seen last, at `last`, and was gone at `gone` (s since run start)."""

    group: str
    last: float
    gone: float

    def overlaps(self, interval: Interval) -> bool:
        """Return True if the lost counts may belong to an interval."""
        return self.last < interval.end and self.gone > interval.begin


def read_dropped(record: Record, table: str, group: str, within_s: float = np.inf) -> list[Dropped]:
    """Return the plans that were executed from one sample to the next and had disappeared at the third, `within_s`
    after the first: their counts since the second are lost. A plan that was not executed any more has lost none."""
    times = sample_times(record, table)
    if times is None:
        return []
    groups, plans = Codes(), Codes()
    seen = _Seen()
    for t, batch in rows_with_times(record, table, [group, "plan", "executions"]):
        executions = numbers_of(batch, "executions")
        if executions is None or not {group, "plan"} <= set(batch.schema.names):
            return []
        named = pc.and_(batch.column("plan").is_valid(), batch.column(group).is_valid())
        named = named.to_numpy(zero_copy_only=False)
        group_code, plan_code = groups.codes(batch, group), plans.codes(batch, "plan")
        seen.add(np.searchsorted(times, t)[named], group_code[named], plan_code[named], executions[named])
    # The last sample of the run proves nothing: the plan may still be there.
    gone = seen.last + 1
    early = np.flatnonzero(seen.rose & (seen.last > 0) & (gone < len(times)))
    return [
        Dropped(groups.names[seen.group[i]], float(times[seen.last[i]]), float(times[gone[i]]))
        for i in early
        if times[gone[i]] - times[seen.last[i] - 1] < within_s
    ]


class _Seen:
    """The last sample of each entity: its time's index, its value, and whether it had risen since the one before."""

    def __init__(self) -> None:
        self.last, self.group = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.value, self.rose = np.empty(0), np.empty(0, dtype=bool)

    def add(self, time: np.ndarray, group: np.ndarray, entity: np.ndarray, values: np.ndarray) -> None:
        """Add rows in the order of time."""
        if not len(time):
            return
        more = max(0, int(entity.max()) + 1 - len(self.last))
        self.last, self.group = np.pad(self.last, (0, more), constant_values=-1), np.pad(self.group, (0, more))
        self.value, self.rose = np.pad(self.value, (0, more)), np.pad(self.rose, (0, more))
        order = np.argsort(entity, kind="stable")
        time, group, entity, values = time[order], group[order], entity[order], values[order]
        first = first_of_runs(entity)
        before = np.append(0.0, values[:-1])
        before[first] = self.value[entity[first]]  # a new one began at zero
        last = np.append(np.flatnonzero(first)[1:], len(first)) - 1
        number = entity[last]
        self.last[number], self.group[number] = time[last], group[last]
        self.value[number], self.rose[number] = values[last], (values > before)[last]


_ABOUT = ("planned", "statement", "procedure", "position", "plan_hash", "text")
_COUNTS = ("executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads")


@dataclass(frozen=True)
class StatementSummary:
    """One statement of a procedure, in all over the `seconds` that the plan cache was seen for."""

    procedure: Annotated[str, words("procedure")]
    position: int  # characters of the procedure's text before it
    text: Annotated[str, words("statement")]  # beginning of the text
    plans: tuple[str, ...]  # hashes of their shapes, the one executed most first
    executions: int
    physical_reads: float  # pages
    logical_reads: float
    cpu_ms: float
    waited_ms: float  # time beyond that on a CPU: for I/O, locks and everything else
    seconds: float
    whole: bool = True  # or a plan left the cache meanwhile, and with it what it had counted last


@dataclass(frozen=True)
class Statements:
    """The counters of one run by statement and plan."""

    counters: Mapping[str, Counters] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The other columns of each statement and plan."""
    dropped: Sequence[Dropped] = ()  # the plans that left the cache

    def findings(self, interval: Interval) -> Iterator[Finding]:
        """Yield the number of plans that left the cache while they were executed."""
        if dropped := [plan for plan in self.dropped if plan.overlaps(interval)]:
            procedures = sorted({self.about[plan.group]["procedure"] for plan in dropped})
            yield caution(ReadKind.PLANS_LEFT, plans=len(dropped), procedures=procedures)

    def summaries(self, interval: Interval) -> list[StatementSummary]:
        """Return the statements that were executed, those that read most first."""
        by_statement: dict[str, list[tuple[Mapping[str, str], Delta]]] = defaultdict(list)
        for planned, counters in self.counters.items():
            delta = delta_over(counters, interval)
            if delta is not None and not delta.broken and delta["executions"]:
                about = self.about[planned]
                by_statement[about["statement"]].append((about, delta))
        partial = {self.about[plan.group]["statement"] for plan in self.dropped if plan.overlaps(interval)}
        statements = [_summary(plans, whole=name not in partial) for name, plans in by_statement.items()]
        return sorted(
            statements, key=lambda statement: (-statement.physical_reads, statement.procedure, statement.position)
        )


def _summary(plans: list[tuple[Mapping[str, str], Delta]], whole: bool) -> StatementSummary:
    plans = sorted(plans, key=lambda plan: -plan[1]["executions"])
    about = plans[0][0]
    total = {name: sum(delta[name] for _, delta in plans) for name in _COUNTS}
    return StatementSummary(
        procedure=about["procedure"],
        position=int(about["position"]),
        text=about["text"],
        plans=tuple(about["plan_hash"] for about, _ in plans),
        executions=round(total["executions"]),
        physical_reads=total["physical_reads"],
        logical_reads=total["logical_reads"],
        cpu_ms=total["worker_us"] / 1000,
        waited_ms=max(0.0, total["elapsed_us"] - total["worker_us"]) / 1000,
        seconds=plans[0][1].seconds,
        whole=whole,
    )


def read_statements(record: Record, intervals: Sequence[Interval]) -> Statements:
    counters = read_counters(record, "statements", _COUNTS, group="planned", entity="plan", within=intervals)
    return Statements(counters, _about(record), read_dropped(record, "statements", "planned"))


def _about(record: Record) -> dict[str, Mapping[str, str]]:
    """Return the other columns of each statement and plan."""
    texts: dict[str, Mapping[str, str]] = {}
    for batch in record.batches("statements", _ABOUT):
        if batch.num_columns == len(_ABOUT):
            planned = Codes().codes(batch, "planned")
            _, last = np.unique(planned[::-1], return_index=True)
            rows = batch.take(pa.array(len(planned) - 1 - last)).to_pylist()
            texts |= {row["planned"]: row for row in rows}
    return texts


TOP_WAITS = 3

_STATEMENT = ["executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads", "logical_writes"]

_WRITES = "READ_WRITE"
_OPTIONS = {"QUERY_CAPTURE_MODE": "capture", "WAIT_STATS_CAPTURE_MODE": "wait_capture"}
_STATES = ["database", "state", "readonly_reason", *_OPTIONS.values()]
SHOWN_S = 120.0
"""Seconds after the end of an interval during which its counts are read."""


@dataclass(frozen=True)
class State:
    """The state of Query Store in a sample."""

    t: float
    name: str
    reason: int | None  # the bits of the reason for being read-only, or None if unknown
    modes: Mapping[str, str | None] = field(default_factory=dict)
    """Captured events by option; None in records older than this setting."""


_EACH_STATEMENT = "Per statement executed"


@dataclass(frozen=True)
class QueryStoreSummary:
    """The statements of one procedure over the measured interval, as Query Store counted them."""

    name: str
    executions: int  # number of executions of statements
    physical_reads: Annotated[float | None, Shown("physical reads", group=_EACH_STATEMENT)]  # pages
    logical_reads: Annotated[float | None, Shown("logical reads", group=_EACH_STATEMENT)]
    logical_writes: Annotated[float | None, Shown("logical writes", group=_EACH_STATEMENT)]
    worker_ms: Annotated[float | None, Shown("CPU ms", group=_EACH_STATEMENT)]
    elapsed_ms: Annotated[float | None, Shown("ms", group=_EACH_STATEMENT)]
    waits: list[tuple[str, float]]  # Query Store's category, ms per second; longest first
    whole: bool = True  # or it stopped counting meanwhile, or dropped counts, and these are of a part


@dataclass(frozen=True)
class QueryStore:
    """The counters of one run by procedure, and by "procedure: wait category"; empty if it was not asked for. `states`:
    the samples of its state, by database, "" for the only one."""

    statements: Mapping[str, Counters] = field(default_factory=dict)
    waits: Mapping[str, Counters] = field(default_factory=dict)
    states: Mapping[str, Sequence[State]] = field(default_factory=dict)
    dropped: Sequence[Dropped] = ()

    def stopped(self, interval: Interval) -> dict[str, State]:
        """Return the first state of each database in which Query Store counted nothing for a part of an interval."""
        first_stopped = {database: _stopped(states, interval) for database, states in self.states.items()}
        return {database: state for database, state in first_stopped.items() if state}

    def changed(self, interval: Interval) -> dict[tuple[str, str], State]:
        """Return the first state in which an option was not as the run began, by database and option."""
        first_changed = {}
        for database, states in self.states.items():
            for option, before in states[0].modes.items():
                other = (state for state in _around(states, interval) if state.modes[option] not in (before, None))
                if before is not None and (state := next(other, None)):
                    first_changed[database, option] = state
        return first_changed

    def findings(self, interval: Interval) -> Iterator[Finding]:
        """Yield the time from which counts are missing, by database."""
        for database, state in self.stopped(interval).items():
            yield caution(
                ReadKind.QUERY_STORE_STOPPED,
                database=database or None,
                state=state.name,
                reason=state.reason,
                **_when(state, interval),
            )
        for (database, option), state in self.changed(interval).items():
            yield caution(
                ReadKind.QUERY_STORE_CHANGED,
                database=database or None,
                option=option,
                before=self.states[database][0].modes[option],
                now=state.modes[option],
                **_when(state, interval),
            )
        if dropped := {plan.group for plan in self.dropped if plan.overlaps(interval)}:
            yield caution(ReadKind.QUERY_STORE_DROPPED, procedures=sorted(dropped))

    def summaries(self, interval: Interval) -> list[QueryStoreSummary]:
        """Return the procedures whose statements were executed, those that read most first."""
        partial = {*self.stopped(interval), *(database for database, _ in self.changed(interval))}
        dropped = {plan.group for plan in self.dropped if plan.overlaps(interval)}
        return [
            QueryStoreSummary(
                name,
                round(delta["executions"]),
                delta.mean("physical_reads", "executions"),
                delta.mean("logical_reads", "executions"),
                delta.mean("logical_writes", "executions"),
                delta.mean("worker_us", "executions", 1000),
                delta.mean("elapsed_us", "executions", 1000),
                self._top_waits(name, interval),
                whole=name not in dropped
                and not any(not database or name.startswith(f"{database}.") for database in partial),
            )
            for name, delta in largest_readers(self.statements, interval)
        ]

    def _top_waits(self, procedure: str, interval: Interval) -> list[tuple[str, float]]:
        waits = []
        for name, counters in self.waits.items():
            whose, _, category = name.rpartition(": ")
            delta = delta_over(counters, interval) if whose == procedure else None
            if delta and not delta.broken and delta["wait_ms"]:
                waits.append((category, delta["wait_ms"] / delta.seconds))
        return sorted(waits, key=lambda wait: (-wait[1], wait[0]))[:TOP_WAITS]


def read_query_store(record: Record, intervals: Sequence[Interval]) -> QueryStore:
    return QueryStore(
        read_counters(record, "query_store", _STATEMENT, group="procedure", entity="plan", within=intervals),
        read_counters(record, "query_store_waits", ["wait_ms"], group="wait", entity="plan", within=intervals),
        _read_states(record),
        read_dropped(record, "query_store", "procedure", within_s=SHOWN_S),
    )


def _read_states(record: Record) -> dict[str, list[State]]:
    by_database: dict[str, list[State]] = {}
    for times, batch in rows_with_times(record, "query_store_state", _STATES):
        for t, row in zip(times, batch.to_pylist(), strict=True):
            if row["state"] is not None:
                modes = {option: row.get(name) for option, name in _OPTIONS.items()}
                state = State(float(t), row["state"], row["readonly_reason"], modes)
                by_database.setdefault(row["database"] or "", []).append(state)
    return by_database


def _stopped(states: Sequence[State], interval: Interval) -> State | None:
    """Return the first state other than writing around an interval."""
    return next((state for state in _around(states, interval) if state.name != _WRITES), None)


def _around(states: Sequence[State], interval: Interval) -> Iterator[State]:
    """Yield the states from the last sample before an interval to the first after it."""
    begin = max((state.t for state in states if state.t <= interval.begin), default=interval.begin)
    end = min((state.t for state in states if state.t >= interval.end), default=interval.end)
    yield from (state for state in states if begin <= state.t <= end)


def _when(state: State, interval: Interval) -> dict[str, float]:
    after_s = min(max(0.0, state.t - interval.begin), interval.seconds)
    return {"after_s": after_s, "measured_s": interval.seconds}


_READS = ("executions", "logical_reads", "physical_reads")
PAGES = "Pages, per execution"


@dataclass(frozen=True)
class OwnStatementSummary:
    """One statement in the measured interval of one step. Percentiles are None if the sample is too small for them."""

    name: str  # transaction, and the statement's number in it
    transaction: str
    line: int
    text: str
    executions: Annotated[int, Shown("executions", format.count)]
    per_s: Annotated[float, Shown("per s")]
    rows: Annotated[float | None, Shown("rows each")]  # per execution: returned, or changed if none are returned
    errors: Annotated[int, Shown("errors", format.count)]
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys as of a transaction: sent to answered whole
    logical_reads: Annotated[float | None, Shown("asked for", group=PAGES)] = None
    physical_reads: Annotated[float | None, Shown("read", group=PAGES)] = None
    """Pages per execution; None if the server has no such counters."""


def read_statement_reads(record: Record, intervals: Sequence[Interval]) -> Mapping[str, Counters]:
    """Return the server's counts of each statement, by the name that its table has; empty if it has no such view."""
    return read_counters(record, "statement_reads", _READS, group="statement", entity="plan", within=intervals)


def executed_statements(
    workload: Workload, load: Load, reads: Mapping[str, Counters], interval: Interval
) -> list[OwnStatementSummary]:
    """Return the statements that were executed, in the order of the files, with their `reads` where known."""
    summaries = []
    for statement in workload.statements:
        counts = {
            name: int(interval.select(sums).sum()) for name, sums in load.statements.get(statement.name, {}).items()
        }
        if not counts or not (counts["executions"] or counts["errors"]):
            continue
        executions = counts["executions"]
        counters = reads.get(f"{workload.name}: {statement.name}") or reads.get(statement.name)
        logical, physical = _reads_each(counters, load.statements[statement.name]["executions"], interval)
        latency = load.statement_latency.get((interval.index, statement.name), Latencies.empty())
        summaries.append(
            OwnStatementSummary(
                name=statement.name,
                transaction=statement.transaction,
                line=statement.line,
                text=statement.text,
                executions=executions,
                per_s=executions / interval.seconds,
                rows=counts["rows"] / executions if executions else None,
                errors=counts["errors"],
                latency_mean_ms=counts["latency_us"] / executions / 1000 if executions else None,
                latency_ms=latency.summary(),
                logical_reads=logical,
                physical_reads=physical,
            )
        )
    return summaries


def _reads_each(
    counters: Counters | None, executed: np.ndarray, interval: Interval
) -> tuple[float | None, float | None]:
    """Return the pages that an execution asked for and that were read for it. Both are None if the server does not
    count them, or dropped counts within the interval.

    If the server counts only parts of a statement, its executions are those that the driver counted.
    """
    delta = delta_over(counters, interval) if counters else None
    if delta is None or delta.broken:
        return None, None
    executions = delta.values.get("executions")
    if executions is None:
        executions = delta.count_within(executed)
    if not executions:
        return None, None
    return delta["logical_reads"] / executions, delta["physical_reads"] / executions
