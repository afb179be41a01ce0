"""Limits that are declared beforehand: a scenario's thresholds, and the rules of --fail-if."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stallmark.analysis.metrics import METRICS, group
from stallmark.errors import StallmarkError, WrongOption
from stallmark.quantities import finite, parse_milliseconds, parse_size

if TYPE_CHECKING:
    from stallmark.analysis.run import RunSummary
    from stallmark.analysis.step_summary import StepSummary

# Rules as people write them, in scenarios and behind `--fail-if`: a metric, a sign, and a limit with its unit. k6's
# thresholds are the model.
#
#     p95 < 20ms   trade_order.p99 <= 1s   errors < 1 %   enough above 4GiB   ceiling below 200 users
#     worse   not better by 10 %   not within 5 %

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


# Thresholds: limits that a scenario declares beforehand, held against every measured step.
#
# thresholds: [p95 < 20ms, read_ms < 5, tps > 500, trade_order.p99 < 1s, errors < 1 %]


@dataclass(frozen=True)
class Threshold:
    """A threshold of the scenario, as it was written, and one step: the value in the unit of the limit, infinite if the
    percentile is that of a transaction that was given up. `holds` is None
    if it was not measured, or the step is invalid."""

    text: str
    metric: str
    step: str  # key of the step
    value: float | None
    limit: float
    holds: bool | None


@dataclass(frozen=True)
class ThresholdVerdict:
    """One threshold over all steps."""

    text: str
    passed: bool | None  # True if every step kept it; None if no step missed it and some were not judged
    steps: list[Threshold]  # the steps that missed it, else those without a verdict, else all


def parse_threshold(text: str) -> Rule:
    """Parse a threshold; raise ValueError with the expected form."""
    limited = [metric for metric in METRICS.values() if not metric.is_setting]
    measures = {metric.key: Measure((metric.limit_unit,)) for metric in limited}
    measures |= {f"*.{metric.key}": measures[metric.key] for metric in limited if metric.of_type}
    return parse_rule(text, "p95 < 20ms, errors < 1 % or trade_order.p99 < 1s", measures)


def judge(runs: Sequence[RunSummary]) -> list[Threshold]:
    """Hold every step against the thresholds of its scenario. One that was cut short, or is invalid, has no verdict."""
    return [threshold for run in runs for threshold in _judge_run(run)]


def verdicts_over_steps(judged: Sequence[Threshold]) -> list[ThresholdVerdict]:
    """Return the verdict on each threshold, in the scenario's order."""
    verdicts = []
    for same in group(judged, lambda threshold: threshold.text):
        missed = [threshold for threshold in same if threshold.holds is False]
        unknown = [threshold for threshold in same if threshold.holds is None]
        passed = False if missed else None if unknown else True
        verdicts.append(ThresholdVerdict(same[0].text, passed, missed or unknown or same))
    return verdicts


def _judge_run(run: RunSummary) -> Iterator[Threshold]:
    level = run.manifest.service_level
    of_level = level.transactions if level and not run.manifest.search else ()  # a search goes beyond it
    for text in (*(run.manifest.scenario.thresholds or ()), *of_level):
        try:
            rule = parse_threshold(text)
        except ValueError as error:
            raise StallmarkError(f"The scenario in {run.folder} has a threshold of another version: {error}.") from None
        for step in run.steps:
            value = _value(rule, step)
            sound = not (step.interval.cut or step.validity.invalid or run.incomplete_because)
            yield Threshold(text, rule.metric, step.key, value, rule.limit, rule.holds(value) if sound else None)


def _value(rule: Rule, step: StepSummary) -> float | None:
    """Return the measured value, or None without one."""
    metric = METRICS[rule.metric]
    if rule.transaction is not None:
        return metric.value_of_type(step, rule.transaction)
    return (metric.limited or metric.value)(step)


# The rules of `--fail-if`, by which a command fails in CI.
#
# Of `compare`, judged by the verdict and its estimate, `within` by the whole interval of the difference:
#
#     worse                 B is worse than the baseline
#     worse by 5 %          … and by 5 % or more
#     not better            B is not better
#     not better by 10 %    … or by less than 10 %
#     not within 5 %        B differs from the baseline by more than 5 %, either way
#
# Of `report`, judged by the findings of all runs: `ceiling below 200 users`, `below 500 per second`, `below 1.5 times
# the load`, and `enough above 4GiB`. A comparison that cannot be made fails always, and so does a value that no run
# shows: a gate that sees nothing must not pass.

_BY = Measure(("share",), ("", "by", "not", "not by"))
_OF_PAIRS = {"worse": _BY, "better": _BY, "": Measure(("share",), ("not within",))}
_OF_RUNS = {
    "enough": Measure(("bytes",), ("above", ">")),
    "ceiling": Measure(("users", "rate", "load"), ("below", "<")),
}
_PAIR_EXAMPLES = "worse, worse by 5 %, not better, not better by 10 %, or not within 5 %"
_RUN_EXAMPLES = (
    "enough above 4GiB, ceiling below 200 users, ceiling below 500 per second, or ceiling below 1.5 times the load"
)


def fail_rule(text: str, *, of_runs: bool) -> Rule:
    """Parse a rule of `report`, else of `compare`. Raise StallmarkError with the expected form."""
    try:
        return parse_rule(text, *((_RUN_EXAMPLES, _OF_RUNS) if of_runs else (_PAIR_EXAMPLES, _OF_PAIRS)))
    except ValueError as error:
        raise WrongOption(f"--fail-if {error}.") from None
