"""The counts of Query Store on each procedure's statements, where it was asked for.

Unlike the plan cache it keeps the counts of a plan that was evicted. It counts statements, not calls of procedures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.dropped import Dropped, read_dropped
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.sample_times import dated
from stallmark.analysis.read.server_summary import QueryStoreSummary
from stallmark.record.reader import Record

TOP_WAITS = 3

_STATEMENT = ["executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads", "logical_writes"]

_WRITES = "READ_WRITE"
_OPTIONS = {"QUERY_CAPTURE_MODE": "capture", "WAIT_STATS_CAPTURE_MODE": "wait_capture"}
_STATES = ["database", "state", "readonly_reason", *_OPTIONS.values()]
SHOWN_S = 120.0
"""The counts of an interval are read for so long after its end, and then no more."""


@dataclass(frozen=True)
class State:
    """The state of Query Store in a sample. `reason`: the bits of why it is read-only, or None if not known. `modes`:
    what it captures, by option; None in a record of before it was asked for."""

    t: float
    name: str
    reason: int | None
    modes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class QueryStore:
    """The counters of one run by procedure, and by "procedure: wait category"; empty where it was not asked for.
    `states`: the samples of its state, by database, "" for the only one."""

    statements: Mapping[str, Counters] = field(default_factory=dict)
    waits: Mapping[str, Counters] = field(default_factory=dict)
    states: Mapping[str, Sequence[State]] = field(default_factory=dict)
    dropped: Sequence[Dropped] = ()

    def stopped(self, interval: Interval) -> dict[str, State]:
        """Return the first state of each database in which Query Store counted nothing for a part of an interval."""
        found = {database: _stopped(states, interval) for database, states in self.states.items()}
        return {database: state for database, state in found.items() if state}

    def changed(self, interval: Interval) -> dict[tuple[str, str], State]:
        """Return the first state in which an option was not as the run began, by database and option."""
        found = {}
        for database, states in self.states.items():
            for option, before in states[0].modes.items():
                other = (state for state in _around(states, interval) if state.modes[option] not in (before, None))
                if before is not None and (state := next(other, None)):
                    found[database, option] = state
        return found

    def findings(self, interval: Interval) -> Iterator[Finding]:
        """Yield from when on counts lack, by database."""
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
        found = []
        partial = {*self.stopped(interval), *(database for database, _ in self.changed(interval))}
        dropped = {plan.group for plan in self.dropped if plan.overlaps(interval)}
        for name, counters in self.statements.items():
            delta = over(counters, interval)
            if delta is None or delta.broken or not delta["executions"]:
                continue
            worker, elapsed = (delta.mean(what, "executions") for what in ("worker_us", "elapsed_us"))
            summary = QueryStoreSummary(
                name,
                round(delta["executions"]),
                delta.mean("physical_reads", "executions"),
                delta.mean("logical_reads", "executions"),
                delta.mean("logical_writes", "executions"),
                None if worker is None else worker / 1000,
                None if elapsed is None else elapsed / 1000,
                self._top_waits(name, interval),
                whole=name not in dropped
                and not any(not database or name.startswith(f"{database}.") for database in partial),
            )
            found.append((delta["physical_reads"], summary))
        return [summary for _, summary in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]

    def _top_waits(self, procedure: str, interval: Interval) -> list[tuple[str, float]]:
        found = []
        for name, counters in self.waits.items():
            whose, _, category = name.rpartition(": ")
            delta = over(counters, interval) if whose == procedure else None
            if delta and not delta.broken and delta["wait_ms"]:
                found.append((category, delta["wait_ms"] / delta.seconds))
        return sorted(found, key=lambda wait: (-wait[1], wait[0]))[:TOP_WAITS]


def read_query_store(record: Record, intervals: Sequence[Interval]) -> QueryStore:
    return QueryStore(
        read_counters(record, "query_store", _STATEMENT, group="procedure", entity="plan", within=intervals),
        read_counters(record, "query_store_waits", ["wait_ms"], group="wait", entity="plan", within=intervals),
        _read_states(record),
        read_dropped(record, "query_store", "procedure", "plan", "executions", within_s=SHOWN_S),
    )


def _read_states(record: Record) -> dict[str, list[State]]:
    found: dict[str, list[State]] = {}
    for times, batch in dated(record, "query_store_state", _STATES):
        for t, row in zip(times, batch.to_pylist(), strict=True):
            if row["state"] is not None:
                modes = {option: row.get(name) for option, name in _OPTIONS.items()}
                state = State(float(t), row["state"], row["readonly_reason"], modes)
                found.setdefault(row["database"] or "", []).append(state)
    return found


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
