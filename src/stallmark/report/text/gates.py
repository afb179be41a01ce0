"""The wording of the validity gates: requirement, figure, limit, and why a gate failed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stallmark.analysis.finding import Kind
from stallmark.analysis.validity.gates import Gate
from stallmark.analysis.validity.kinds import GateKind
from stallmark.format import listed, number, percent, plural, short, spoken
from stallmark.report.text import NameFirst, says


@dataclass(frozen=True)
class _Words:
    """The words of a gate. `figure` and `allowed` make a table's cell from its value, limit and facts."""

    asks: str
    figure: Callable[..., str]
    allowed: Callable[..., str]


def asks(gate: Gate) -> str:
    """Return the gate's requirement."""
    return _WORDS[gate.kind].asks


def figure(gate: Gate) -> str:
    """Return the gate's figure, as text."""
    return _WORDS[gate.kind].figure(value=gate.value, limit=gate.limit, **gate.facts)


def allowed(gate: Gate) -> str:
    """Return the allowed range, as text."""
    return _WORDS[gate.kind].allowed(limit=gate.limit, **gate.facts)


def _at_most(limit: float, **_: object) -> str:
    return f"≤ {_share(limit)}"


def _mix(value: float, transaction: str, **_: object) -> str:
    return f"{_share(value)} off ({spoken(transaction)})"


def _mix_allowed(limit: float, by_chance: bool, **_: object) -> str:
    return f"≤ {_share(limit)}" + (" (chance)" if by_chance else "")


def _followers(each: float, transaction: str, follows: str, **_: object) -> str:
    return f"{number(each)} {plural(transaction)} per {spoken(follows)}"


def _followers_allowed(limit: float, expected_each: float, **_: object) -> str:
    return f"{number(expected_each)} ± {_share(limit)}"


def _aborts(value: float, transaction: str, transaction_rate: float, **_: object) -> str:
    return f"{_share(value)}{_mostly(transaction, transaction_rate)}"


def _limits(value: float, transaction: str, limit_s: float, **_: object) -> str:
    return f"{_share(value)} of {spoken(transaction)} over {limit_s:g} s"


def _lag(value: float, worst_s: float, grows: bool, waiting_first: float, waiting_last: float, **_: object) -> str:
    queue = f", queue from {number(waiting_first)} to {number(waiting_last)}" if grows else ""
    unit, factor = ("s", 1) if worst_s >= 0.1 else ("ms", 1000)
    return f"{number(value * factor)} {unit} late on average, {number(worst_s * factor)} {unit} at worst{queue}"


def _completed(limit: float, counted: int | None, seen: int, silent_executors: int, **_: object) -> str:
    if counted is None:
        return "not counted"
    if silent_executors:
        return f"{counted:,} counted, {seen:,} seen, {silent_executors:,} executor killed before its last report"
    return f"{counted:,} counted, {seen:,} seen{_doubtful(limit)}"


_WORDS = {
    GateKind.MIX: _Words(
        "each transaction type has its share of the deck, within 1 % or what chance explains", _mix, _mix_allowed
    ),
    GateKind.FOLLOWERS: _Words(
        "the market returns what the users’ orders trigger, within 1 % or what is under way at both ends",
        _followers,
        _followers_allowed,
    ),
    GateKind.ABORTS: _Words(
        "few transactions are aborted by a deadlock, serialisation failure or lock timeout, retried or not",
        _aborts,
        _at_most,
    ),
    GateKind.LOCKS: _Words(
        "users spend little of their time waiting for each other’s locks", lambda value, **_: _share(value), _at_most
    ),
    GateKind.LIMITS: _Words("nine in ten of each type finish within its limit", _limits, _at_most),
    GateKind.LAG: _Words(
        "the background sessions’ transactions start when they are due, and no queue grows",
        _lag,
        lambda limit, **_: f"≤ {limit:g} s",
    ),
    GateKind.CONSISTENCY: _Words(
        "every consistency condition holds after the run",
        lambda checked, broken, refused, **_: (
            f"{checked - len(broken)} of {checked} hold" + (f", {refused} refused by the server" if refused else "")
        ),
        lambda **_: "all",
    ),
    GateKind.COMPLETED: _Words(
        "the database counts what the driver saw committed, up to unknown outcomes",
        _completed,
        lambda limit, **_: f"up to {limit:,.0f} more" if limit else "equal",
    ),
}


@says(GateKind.MIX)
def _(value: float, limit: float, transaction: str, off: float, by_chance: bool) -> str:
    return (
        f"The mix was not that of the deck: {_share(value)} {'more' if off > 0 else 'fewer'} {plural(transaction)} "
        f"than their share ({_share(limit)} allowed)."
    )


SENTENCES: Mapping[Kind, str] = {
    GateKind.FOLLOWERS: NameFirst(
        "{transaction:plural} per {follows:spoken}: {each:number} instead of the expected {expected_each:number}. "
        "When the measured interval began {under_way_at_begin:,.0f} were under way, and {under_way_at_end:,.0f} when "
        "it ended."
    ),
}


@says(GateKind.ABORTS)
def _(value: float, limit: float, transaction: str, transaction_rate: float) -> str:
    return (
        f"Transactions got in each other’s way: {_share(value)} were aborted by deadlocks, serialisation failures or "
        f"lock timeouts ({_share(limit)} allowed{_mostly(transaction, transaction_rate)}), and what a "
        "transaction did before it was aborted counts as load."
    )


@says(GateKind.LOCKS)
def _(value: float, limit: float) -> str:
    return (
        f"Users spent {_share(value)} of their time waiting for each other’s locks ({percent(limit)} allowed), "
        "and asked the storage for nothing meanwhile. Use more customers or fewer users."
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


def _mostly(transaction: str, rate: float) -> str:
    return f", {spoken(transaction)} {_share(rate)}" if rate else ""


def _share(value: float) -> str:
    """Return a share in percent with two digits, as thresholds of a few per cent need."""
    return f"{short(value * 100, 2)} %" if value < 0.1 else percent(value)


# How to read the tables of gates and limits. ------------------------------------------------------------------

P90_LIMITS = "Red: more than a tenth took longer than the limit."
NEAREST_TO_FAILING = "Found: in the step that is nearest to failing the gate, or fails it by most."
