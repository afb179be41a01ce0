"""The wording of the validity gates: requirement, figure, limit, and why a gate failed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stallmark.analysis.finding import Kind
from stallmark.analysis.validity.gates import Gate
from stallmark.analysis.validity.invalid import GateKind
from stallmark.format import listed, number, percent, plural, short, spoken
from stallmark.report.text import NameFirst, says
from stallmark.report.text.templates import Format, Template


class _Words(NamedTuple):
    """The words of a gate. `figure` and `allowed` are templates of a table’s cells, of value, limit and facts."""

    asks: str
    figure: str
    allowed: str


_WORDS = {
    GateKind.MIX: _Words(
        "each transaction type has its share of the deck, within 1 % or what chance explains",
        "{value:finely} off ({transaction:spoken})",
        "≤ {limit:finely}{by_chance:chance}",
    ),
    GateKind.FOLLOWERS: _Words(
        "the market returns what the users’ orders trigger, within 1 % or what is under way at both ends",
        "{each:number} {transaction:plural} per {follows:spoken}",
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
        "nine in ten of each type finish within its limit",
        "{value:finely} of {transaction:spoken} over {limit_s:g} s",
        "≤ {limit:finely}",
    ),
    GateKind.LAG: _Words(
        "the background sessions’ transactions start when they are due, and no queue grows",
        "{facts:lag}",
        "≤ {limit:g} s",
    ),
    GateKind.CONSISTENCY: _Words("every consistency condition holds after the run", "{facts:checked}", "all"),
    GateKind.COMPLETED: _Words(
        "the database counts what the driver saw committed, up to unknown outcomes",
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


def _lag(value: float, worst_s: float, grows: bool, waiting_first: float, waiting_last: float, **_: object) -> str:
    queue = f", queue from {number(waiting_first)} to {number(waiting_last)}" if grows else ""
    unit, factor = ("s", 1) if worst_s >= 0.1 else ("ms", 1000)
    return f"{number(value * factor)} {unit} late on average, {number(worst_s * factor)} {unit} at worst{queue}"


def _checked(checked: int, broken: Sequence[str], refused: int, **_: object) -> str:
    return f"{checked - len(broken)} of {checked} hold" + (f", {refused} refused by the server" if refused else "")


def _completed(limit: float, counted: int | None, seen: int, silent_executors: int, **_: object) -> str:
    if counted is None:
        return "not counted"
    if silent_executors:
        return f"{counted:,} counted, {seen:,} seen, {silent_executors:,} executor killed before its last report"
    return f"{counted:,} counted, {seen:,} seen{_doubtful(limit)}"


SENTENCES: Mapping[Kind, str] = {
    GateKind.FOLLOWERS: NameFirst(
        "{transaction:plural} per {follows:spoken}: {each:number} instead of the expected {expected_each:number}. "
        "When the measured interval began {under_way_at_begin:,.0f} were under way, and {under_way_at_end:,.0f} when "
        "it ended."
    ),
    GateKind.ABORTS: (
        "Transactions got in each other’s way: {value:finely} were aborted by deadlocks, serialisation failures or "
        "lock timeouts ({limit:finely} allowed{facts:mostly}), and what a transaction did before it was aborted counts "
        "as load."
    ),
    GateKind.LOCKS: (
        "Users spent {value:finely} of their time waiting for each other’s locks ({limit:percent} allowed), and asked "
        "the storage for nothing meanwhile. Use more customers or fewer users."
    ),
}


@says(GateKind.MIX)
def _(value: float, limit: float, transaction: str, off: float, by_chance: bool) -> str:
    return (
        f"The mix was not that of the deck: {_share(value)} {'more' if off > 0 else 'fewer'} {plural(transaction)} "
        f"than their share ({_share(limit)} allowed)."
    )


@says(GateKind.LIMITS)
def _(value: float, limit: float, transaction: str, limit_s: float, slow: Sequence[tuple[str, float, float]]) -> str:
    each = listed([f"{spoken(name)} ({_share(share)} over {over_s:g} s)" for name, share, over_s in slow])
    return f"More than a tenth took longer than the limit: {each}."


@says(GateKind.LAG)
def _(value: float, limit: float, worst_s: float, grows: bool, waiting_first: float, waiting_last: float) -> str:
    late = [f"started {number(value)} s late on average"] if value > limit else []
    queue = [f"queued up from {number(waiting_first)} to {number(waiting_last)}"] if grows else []
    return f"The background sessions fell behind: their transactions {listed([*late, *queue])}."


@says(GateKind.CONSISTENCY)
def _(value: float, limit: float, checked: int, broken: Sequence[str], refused: int) -> str:
    names = listed([f"“{name}”" for name in broken])
    which = f"conditions {names} do" if len(broken) > 1 else f"condition {names} does"
    return f"The data were wrong after the run: the {which} not hold."


@says(GateKind.COMPLETED)
def _(value: float, limit: float, transaction: str, counted: int, seen: int, silent_executors: int) -> str:
    lost, more = "commits were lost, or somebody changed the data", "some were done twice, or by somebody else"
    return (
        f"The database counts {counted:,} {plural(transaction)}, the driver saw {seen:,} committed{_doubtful(limit)}: "
        f"{lost if counted < seen else more}."
    )


def _doubtful(limit: float) -> str:
    return f" and {limit:,.0f} of unknown outcome" if limit else ""


def _mostly(transaction: str, transaction_rate: float, **_: object) -> str:
    return f", {spoken(transaction)} {_share(transaction_rate)}" if transaction_rate else ""


def _share(value: float) -> str:
    """Return a share in percent with two digits, as thresholds of a few per cent need."""
    return f"{short(value * 100, 2)} %" if value < 0.1 else percent(value)


FORMATS: Mapping[str, Format] = {
    "chance": lambda by_chance: " (chance)" if by_chance else "",
    "checked": lambda facts: _checked(**facts),
    "completed": lambda facts: _completed(**facts),
    "finely": _share,
    "lag": lambda facts: _lag(**facts),
    "more_allowed": lambda limit: f"up to {limit:,.0f} more" if limit else "equal",
    "mostly": lambda facts: _mostly(**facts),
}


# How to read the tables of gates and limits. ------------------------------------------------------------------

P90_LIMITS = "Red: more than a tenth took longer than the limit."
NEAREST_TO_FAILING = "Found: in the step that is nearest to failing the gate, or fails it by most."
