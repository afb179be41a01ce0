"""The wording of validity: the gates, and why a step's figures must not be compared."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.service_level import LevelOutcome, ServiceLevelKind
from stallmark.analysis.validity import CounterSource, ValidityKind
from stallmark.analysis.validity_gates import Gate, GateKind
from stallmark.errors import as_reason
from stallmark.format import display_name, listed, number, percent, plural, short
from stallmark.report.text import Format, NameFirst, Template, clause, says

# The wording of the validity gates: requirement, figure, limit, and why a gate failed.


class _Words(NamedTuple):
    """The words of a gate."""

    asks: str  # the requirement
    figure: str  # template of a table cell, filled with value, limit and facts
    allowed: str  # template of a table cell, too


_WORDS = {
    GateKind.MIX: _Words(
        "each transaction type has its share of the deck, to within 1 % or chance variation",
        "{value:finely} off ({transaction:display_name})",
        "≤ {limit:finely}{by_chance:chance}",
    ),
    GateKind.FOLLOWERS: _Words(
        "the market answers users’ orders at the expected rate, to within 1 % or the orders in flight at start and end",
        "{each:number} {transaction:plural} per {follows:display_name}",
        "{expected_each:number} ± {limit:finely}",
    ),
    GateKind.ABORTS: _Words(
        "few transactions are aborted by a deadlock, serialisation failure or lock timeout, retried or not",
        "{value:finely}{facts:mostly}",
        "≤ {limit:finely}",
    ),
    GateKind.LOCKS: _Words(
        "users spend little of their time waiting for each other’s locks", "{value:finely}", "≤ {limit:finely}"
    ),
    GateKind.LIMITS: _Words(
        "at least 90 % of each transaction type finish within its limit",
        "{value:finely} of {transaction:display_name} over {limit_s:g} s or given up",
        "≤ {limit:finely}",
    ),
    GateKind.LAG: _Words(
        "the background sessions’ transactions start when they are due, and no queue grows",
        "{facts:lag}",
        "≤ {limit:g} s",
    ),
    GateKind.CONSISTENCY: _Words("every consistency condition holds after the run", "{facts:checked}", "all"),
    GateKind.COMPLETED: _Words(
        "the database has as many new commits as the driver saw, apart from unknown outcomes",
        "{facts:completed}",
        "{limit:more_allowed}",
    ),
}


def asks(gate: Gate) -> str:
    """Return the gate's requirement."""
    return _WORDS[gate.kind].asks


def figure(gate: Gate) -> str:
    """Return the gate's figure, as text."""
    return Template(_WORDS[gate.kind].figure, FORMATS)(value=gate.value, limit=gate.limit, **gate.facts)


def allowed(gate: Gate) -> str:
    """Return the allowed range, as text."""
    return Template(_WORDS[gate.kind].allowed, FORMATS)(limit=gate.limit, **gate.facts)


def _lag(
    value: float,
    worst_s: float,
    grows: bool,
    waiting_first: float,
    waiting_last: float,
    missed: Sequence[tuple[str, int, int]] = (),
    **_: object,
) -> str:
    queue = f", queue from {number(waiting_first)} to {number(waiting_last)}" if grows else ""
    queue += "".join(f", {_periods_in_words(*timer)}" for timer in missed)
    unit, factor = ("s", 1) if worst_s >= 0.1 else ("ms", 1000)
    return f"{number(value * factor)} {unit} late on average, {number(worst_s * factor)} {unit} at worst{queue}"


def _checked(checked: int, broken: Sequence[str], refused: int, **_: object) -> str:
    return f"{checked - len(broken)} of {checked} hold" + (f", {refused} refused by the server" if refused else "")


def _completed(limit: float, counted: int | None, seen: int, silent_executors: int, **_: object) -> str:
    if counted is None:
        return "not counted"
    if silent_executors:
        killed = f"{silent_executors:,} executor{'s' * (silent_executors > 1)} killed before the last report"
        return f"{counted:,} counted, {seen:,} seen, {killed}"
    return f"{counted:,} counted, {seen:,} seen{_doubtful(limit)}"


@says(GateKind.MIX)
def _(value: float, limit: float, transaction: str, off: float, by_chance: bool) -> str:
    return (
        f"The transaction mix differed from the deck: {_share(value)} {'more' if off > 0 else 'fewer'} "
        f"{plural(transaction)} than their share ({_share(limit)} allowed)."
    )


@says(GateKind.LIMITS)
def _(value: float, limit: float, transaction: str, limit_s: float, slow: Sequence[tuple[str, float, float]]) -> str:
    texts = listed([f"{display_name(name)} ({_share(share)}, limit {over_s:g} s)" for name, share, over_s in slow])
    return f"More than 10 % of a transaction type took longer than its limit or were given up: {texts}."


def _periods_in_words(transaction: str, ended: int, due: int) -> str:
    return f"{display_name(transaction)} ended {ended:,} times and was due {due:,} times"


@says(GateKind.LAG)
def _(
    value: float,
    limit: float,
    worst_s: float,
    grows: bool,
    waiting_first: float,
    waiting_last: float,
    missed: Sequence[tuple[str, int, int]] = (),
) -> str:
    late = [f"started {number(value)} s late on average"] if value > limit else []
    queue = [f"queued up from {number(waiting_first)} to {number(waiting_last)}"] if grows else []
    behind = [f"their transactions {listed([*late, *queue])}"] if late or queue else []
    return (
        f"The background sessions fell behind: {listed([*behind, *(_periods_in_words(*timer) for timer in missed)])}."
    )


@says(GateKind.CONSISTENCY)
def _(value: float, limit: float, checked: int, broken: Sequence[str], refused: int) -> str:
    names = listed([f"“{name}”" for name in broken])
    which = f"conditions {names} do" if len(broken) > 1 else f"condition {names} does"
    return f"The data were wrong after the run: the {which} not hold."


@says(GateKind.COMPLETED)
def _(value: float, limit: float, transaction: str, counted: int, seen: int, silent_executors: int) -> str:
    lost, more = "commits were lost, or another program changed the data", "some were done twice, or by another program"
    return (
        f"The database counts {counted:,} {plural(transaction)}, the driver saw {seen:,} committed{_doubtful(limit)}: "
        f"{lost if counted < seen else more}."
    )


def _doubtful(limit: float) -> str:
    return f" and {limit:,.0f} of unknown outcome" if limit else ""


def _mostly(transaction: str, transaction_rate: float, **_: object) -> str:
    return f", {display_name(transaction)} {_share(transaction_rate)}" if transaction_rate else ""


def _share(value: float) -> str:
    """Return a share in percent with two digits, as thresholds of a few per cent need."""
    return f"{short(value * 100, 2)} %" if value < 0.1 else percent(value)


# How to read the tables of gates and limits. ------------------------------------------------------------------

P90_LIMITS = "Red: more than 10 % took longer than the limit or were given up."
NEAREST_TO_FAILING = "Found: the value of the step that fails the gate by most, or comes closest to failing it."


# The wording of why a step's figures must not be compared, and of its service level.

_COUNTERS = {
    CounterSource.DATA_FILES: "I/O to the data files",
    CounterSource.LOG: "I/O to the log",
    CounterSource.DATA_DEVICE: "the data device",
    CounterSource.LOG_DEVICE: "the log’s device",
}


SENTENCES: Mapping[Kind, str] = {
    GateKind.FOLLOWERS: NameFirst(
        "{transaction:plural} per {follows:display_name}: {each:number} instead of the expected "
        "{expected_each:number}. {under_way_at_begin:,.0f} were in flight when the measured interval began, and "
        "{under_way_at_end:,.0f} when it ended."
    ),
    GateKind.ABORTS: (
        "Transactions conflicted: {value:finely} were aborted by deadlocks, serialisation failures or lock timeouts "
        "({limit:finely} allowed{facts:mostly}). The work of a transaction before its abort is part of the load."
    ),
    GateKind.LOCKS: (
        "Users spent {value:finely} of their time waiting for each other’s locks ({limit:percent} allowed), without "
        "loading the storage. Use more customers or fewer users."
    ),
    ValidityKind.RUN_INCOMPLETE: "{said}",
    ValidityKind.LOADS_MISSED: (
        "This step continued without {loads:listed}, which had ended early, so the load was not the planned one."
    ),
    ValidityKind.SERVER_STARTED: (
        "The server was restarted, or the address led to another one: its start time at {after_s:.0f} s differs from "
        "that at {before_s:.0f} s. The limits of the server are not judged from this step."
    ),
    ValidityKind.CONNECTIONS_LOST: (
        "The server was lost: {lost:,} connections of {users:,} users broke within {within_s} s, as in a restart, a "
        "failover or a network failure. The limits of the server are not judged from this step."
    ),
    ValidityKind.COUNTERS_BEGAN_AGAIN: (
        "The counters of {of:counters} restarted while this step was measured, so their totals are unknown."
    ),
    ValidityKind.COUNTERS_INCOMPLETE: (
        "The counters of {of:counters} cover only {covered_s:.0f} s of the {measured_s} s measured."
    ),
    ValidityKind.FOREIGN_CPU: (
        "Other programs kept {share:percent} of the CPUs of the server’s machine busy, while the server waited for "
        "CPUs, or almost none was free."
    ),
    ValidityKind.NOT_CONNECTED: (
        "{connected_users:number} of {users} users were connected on average while this step was measured. If the "
        "others were still logging in, a longer warm-up gives them time."
    ),
    DriverKind.LITTLES_LAW: NameFirst(
        "Little’s law does not hold: {users:number} users were running, but throughput times latency and think time "
        "accounts for {accounted_users:number}."
    ),
    ValidityKind.STORAGE_ERROR: (
        "The server’s error log reports trouble with its storage: {text:as_reason} (error {error})."
    ),
    DriverKind.OVERHEAD: (
        "The driver was the bottleneck: users{machine:on_machine} spent {share:percent} of their time neither thinking "
        "nor in a call."
    ),
    DriverKind.EXECUTOR_CPU: (
        "The driver was the bottleneck: an executor{machine:on_machine} used {share:percent} of a CPU core."
    ),
    ServiceLevelKind.READS_NOT_KNOWN: "Not known: {why:clause}.",
    ServiceLevelKind.NO_HISTOGRAM: "No histogram of single reads covers this step.",
    ServiceLevelKind.TOO_FEW_READS: "The histogram holds only {reads:,} reads, too few for a {percentile}.",
    ServiceLevelKind.READS_NOT_MEASURED: "The duration of reads of the data files was not measured.",
    ServiceLevelKind.NOTHING_READ: "Nothing was read from the data files.",
}
FORMATS: Mapping[str, Format] = {
    "chance": lambda by_chance: " (chance)" if by_chance else "",
    "checked": lambda facts: _checked(**facts),
    "completed": lambda facts: _completed(**facts),
    "finely": _share,
    "lag": lambda facts: _lag(**facts),
    "more_allowed": lambda limit: f"up to {limit:,.0f} more" if limit else "equal",
    "mostly": lambda facts: _mostly(**facts),
    "counters": _COUNTERS.__getitem__,
    "on_machine": lambda machine: f" on load machine {machine}" if machine else "",
}


@says(ValidityKind.ENDED_EARLY)
def _(measured_s: int, planned_s: float | None) -> str:
    planned = "" if planned_s is None else f" of the {planned_s:g} s planned"
    return f"The run ended early: this step was measured for {measured_s} s{planned}."


@says(ValidityKind.BY_HAND)
def _(changes: int, stopped: bool) -> str:
    did = ["changed the users" + (f" {changes:,} times" if changes > 1 else "")] if changes else []
    did += ["ended the run"] if stopped else []
    return f"Somebody {listed(did)} on Locust’s page: the run is exploratory, so it has no verdict."


@says(ValidityKind.NOT_TIMED)
def _(of: CounterSource) -> str:
    setting = "track_wal_io_timing" if of == CounterSource.LOG else "track_io_timing"
    return (
        f"The server did not time {_COUNTERS[of]} for a part of this step ({setting} was off), although it did in the "
        "rest of this run: the duration of that I/O is unknown. Leave the setting on."
    )


@says(ValidityKind.FOREIGN_IO)
def _(share: float, with_writes: bool) -> str:
    counted = "bytes read and written" if with_writes else "reads"
    return f"Other programs used the storage: {percent(share)} of the {counted} did not belong to this run."


@says(ValidityKind.TRANSACTIONS_FAILED)
def _(share: float, transaction: str = "", said: str = "", code: str = "") -> str:
    words = (
        (f" The most frequent error was that of {display_name(transaction)}: {as_reason(said)} ({code}).")
        if said
        else ""
    )
    return f"{percent(share)} of the transactions failed; latencies are those of the others.{words}"


@says(DriverKind.LATE_STARTS)
def _(late_ms: float, latency_ms: float, think_ms: float = 0.0) -> str:
    think = f" and a think time of {number(think_ms)} ms" if think_ms else ""
    return (
        f"The driver was the bottleneck: transactions started {number(late_ms)} ms late on average, at a mean latency "
        f"of {number(latency_ms)} ms{think}."
    )


@says(ServiceLevelKind.READS_TAKE)
def _(
    outcome: LevelOutcome, percentile: str, figure_ms: float, reads: int, limit_ms: float, ideal_ms: float | None,
    ideal_met: bool | None, why: Finding | None,
) -> str:  # fmt: skip
    within = f"{'above' if outcome == LevelOutcome.NOT_MET else 'within'} {limit_ms:g} ms"
    if ideal_met is not None and outcome != LevelOutcome.NOT_MET:
        within += f"{' and also within' if ideal_met else ' but above'} the ideal {ideal_ms:g} ms"
    only = f". This is a mean, not a {percentile}: {clause(why)}" if why else ""
    return f"The {'mean' if why else percentile} of {reads:,} reads was {number(figure_ms)} ms, {within}{only}."


MARKS: Mapping[Kind, str] = {
    ValidityKind.RUN_INCOMPLETE: "incomplete",
    ValidityKind.ENDED_EARLY: "cut short",
    ValidityKind.LOADS_MISSED: "another load",
    ValidityKind.BY_HAND: "by hand",
    ValidityKind.SERVER_STARTED: "server lost",
    ValidityKind.CONNECTIONS_LOST: "server lost",
    DriverKind.OVERHEAD: "driver-bound",
    DriverKind.EXECUTOR_CPU: "driver-bound",
    DriverKind.LATE_STARTS: "driver-bound",
}
