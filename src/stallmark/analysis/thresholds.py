"""Thresholds: limits that a scenario declares beforehand, held against every measured step.

thresholds: [p95 < 20ms, read_ms < 5, tps > 500, trade_order.p99 < 1s, errors < 1 %]
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stallmark.analysis.compare.metrics import METRICS
from stallmark.analysis.points import group
from stallmark.analysis.read.transactions import TransactionSummary
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.quantities import finite, parse_milliseconds

PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")
MILLISECONDS = (*PERCENTILES, "latency", "read_ms", "write_ms")
SHARES = ("cpu", "errors")

_RULE = re.compile(r"\s*(?:(\w+)\.)?([a-z_]\w*(?:\.9)?)\s*(<=?|>=?)\s*(\S.*?)\s*")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
}
_OF_STEP: dict[str, Callable[[StepSummary], float | None]] = {
    **{one.key: one.value for one in METRICS},
    **{name: lambda step, name=name: step.latency.judged_ms.get(name) for name in PERCENTILES},  # type: ignore[misc]
    "errors": lambda step: _failed(step.throughput.failed, step.throughput.committed + step.throughput.rolled_back),
}
_OF_TRANSACTION: dict[str, Callable[[TransactionSummary], float | None]] = {
    "tps": lambda one: one.tps,
    "latency": lambda one: one.latency_mean_ms,
    **{name: lambda one, name=name: one.judged_ms.get(name) for name in PERCENTILES},  # type: ignore[misc]
    "errors": lambda one: _failed(one.failed, one.done),
}


@dataclass(frozen=True)
class Threshold:
    """A threshold of the scenario, as it was written, and one step: the value in the unit of the limit, infinite if the
    percentile is that of a transaction that was given up. `holds` is None
    if it was not measured, or the step is invalid."""

    text: str
    metric: str
    step: str  # its key
    value: float | None
    limit: float
    holds: bool | None


@dataclass(frozen=True)
class Rule:
    """A threshold as it was written. `limit` is in the metric's unit: milliseconds, a share, or its own."""

    text: str
    transaction: str | None
    metric: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Parse a threshold; raise ValueError with what to write."""
        found = _RULE.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is no threshold: write it as p95 < 20ms, tps > 500 or trade_order.p99 < 1s")
        transaction, metric, sign, limit = found.groups()
        known = _OF_TRANSACTION if transaction else _OF_STEP
        if metric not in known:
            of = " of a transaction" if transaction else ""
            raise ValueError(f"{text!r}: there is no metric {metric}{of}: there are {', '.join(known)}")
        return cls(text, transaction, metric, sign, _limit(text, metric, limit))

    def value(self, step: StepSummary) -> float | None:
        """Return what was measured; None where it was not."""
        if self.transaction is None:
            return _OF_STEP[self.metric](step)
        found = next((one for one in step.transactions if one.name == self.transaction), None)
        return _OF_TRANSACTION[self.metric](found) if found else None


def judge(runs: Sequence[RunSummary]) -> list[Threshold]:
    """Hold every step against the thresholds of its scenario. One that was cut short, or is invalid, has no verdict."""
    return [one for run in runs for one in _of_run(run)]


@dataclass(frozen=True)
class ThresholdVerdict:
    """One threshold over all steps. `passed`: in every step; None if it was missed in none and not judged in some.
    `steps` are those that missed it, else those in which it was not judged, else all."""

    text: str
    passed: bool | None
    steps: list[Threshold]


def over_steps(judged: Sequence[Threshold]) -> list[ThresholdVerdict]:
    """Return the verdict on each threshold, in the scenario's order."""
    found = []
    for same in group(judged, lambda one: one.text):
        missed = [one for one in same if one.holds is False]
        unknown = [one for one in same if one.holds is None]
        found.append(
            ThresholdVerdict(same[0].text, False if missed else None if unknown else True, missed or unknown or same)
        )
    return found


def _of_run(run: RunSummary) -> Iterator[Threshold]:
    level = run.manifest.service_level
    of_level = level.transactions if level and not run.manifest.search else ()  # a search goes beyond it
    for text in (*(run.manifest.scenario.thresholds or ()), *of_level):
        try:
            rule = Rule.parse(text)
        except ValueError as error:
            raise StallmarkError(f"The scenario in {run.folder} has a threshold of another version: {error}.") from None
        for step in run.steps:
            value = rule.value(step)
            sound = not (step.interval.cut or step.validity.invalid or run.incomplete_because)
            holds = _HOLDS[rule.sign](value, rule.limit) if value is not None and sound else None
            yield Threshold(text, rule.metric, step.key, value, rule.limit, holds)


def _limit(text: str, metric: str, limit: str) -> float:
    try:
        if metric in MILLISECONDS:
            return parse_milliseconds(limit)
        if metric in SHARES:
            if not limit.endswith("%"):
                raise ValueError
            return finite(limit.removesuffix("%")) / 100
        return finite(limit)
    except ValueError:
        example = "20ms" if metric in MILLISECONDS else "1 %" if metric in SHARES else "500"
        raise ValueError(f"{text!r}: {limit} is no limit of {metric}: write it as {example}") from None


def _failed(failed: int, done: int) -> float | None:
    return failed / (failed + done) if failed + done else None
