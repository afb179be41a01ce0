"""Rules as people write them, in scenarios and behind `--fail-if`: a metric, a sign, and a limit with its unit. k6's
thresholds are the model.

    p95 < 20ms   trade_order.p99 <= 1s   errors < 1 %   enough above 4GiB   ceiling below 200 users
    worse   not better by 10 %   not within 5 %
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from stallmark.quantities import finite, parse_milliseconds, parse_size

_RULE = re.compile(
    r"\s*(not\b)?\s*(?:(\w+)\.)?([a-z]\w*(?:\.9)?)??(?:\s*(<=?|>=?|\b(?:below|above|by|within)\b)\s*(\S.*?))?\s*", re.I
)
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "below": operator.lt, "above": operator.gt
}  # fmt: skip


class Measure(NamedTuple):
    """A metric that rules may limit: the units of its limit, and its forms.

    A form is the sign, behind `not` if the rule is the opposite; a rule without a sign has no limit.
    """

    units: Sequence[str]
    forms: Sequence[str] = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Rule:
    """A rule. `limit` is in its unit: milliseconds, a share, bytes, or a number."""

    negated: bool
    transaction: str | None
    metric: str
    sign: str
    limit: float
    unit: str

    def holds(self, value: float | None) -> bool | None:
        """Return True if a value is on the required side of the limit, or None if the value is unknown."""
        return None if value is None else _SIGNS[self.sign](value, self.limit)


def parse_rule(text: str, examples: str, measures: Mapping[str, Measure]) -> Rule:
    """Parse a rule of one of the `measures`; `*.p95` is one of a transaction, "" is that of a rule without a name.
    Raise ValueError with what to write, the `examples`."""
    try:
        return _parse(text, measures)
    except ValueError as error:
        # The inner message ends with a remedy of its own, and this one with the examples: only the reason is kept.
        reason = str(error).partition(": write ")[0]
        raise ValueError(f"{text!r} is not understood{reason and f' ({reason})'}: write {examples}") from None


def _parse(text: str, measures: Mapping[str, Measure]) -> Rule:
    if not (match := _RULE.fullmatch(text)):
        raise ValueError
    negated, transaction, metric, sign, limit = match.groups(default="")
    metric, sign = metric.lower(), sign.lower()
    if (measure := measures.get(f"*.{metric}" if transaction else metric)) is None:
        raise ValueError(f"unknown metric: choose one of {', '.join(filter(None, measures))}")
    if f"{negated} {sign}".strip().lower() not in measure.forms:
        raise ValueError
    value, unit = _limit(limit, measure.units) if limit else (0.0, measure.units[0])
    return Rule(bool(negated), transaction or None, metric, sign, value, unit)


def _limit(text: str, units: Sequence[str]) -> tuple[float, str]:
    """Return the limit, in the first of the units that it is written in."""
    # The last unit is tried outside, so that its error reaches the user.
    for unit in units[:-1]:
        with suppress(ValueError):
            return _PARSERS[unit](text), unit
    return _PARSERS[units[-1]](text), units[-1]


def _number_before(unit: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not (match := re.fullmatch(rf"([\d.].*?)\s*{unit}", text, re.IGNORECASE)):
            raise ValueError
        return finite(match[1])

    return parse


_PARSERS: Mapping[str, Callable[[str], float]] = {
    "ms": parse_milliseconds,
    "share": lambda text: _number_before("%")(text) / 100,
    "number": finite,
    "bytes": parse_size,
    "users": _number_before("users?"),
    "rate": _number_before(r"per\s+second"),
    "load": _number_before(r"times\s+the\s+load"),
}
