"""Limits that are declared beforehand: a scenario's thresholds, and the rules of --fail-if."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stallmark.analysis.ceiling import ANSWERS, CeilingKind
from stallmark.analysis.compare.summary import PairComparison, Verdict
from stallmark.analysis.finding import Finding
from stallmark.analysis.metrics import METRICS, group
from stallmark.analysis.pool_curve import CurveKind
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.rules import Measure, Rule, parse_rule

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
        raise StallmarkError(f"--fail-if {error}.") from None


def applies(rule: Rule, pair: PairComparison) -> bool | None:
    """Return True if a rule applies to a pair, or the pair has no verdict; None if these runs cannot show it."""
    primary = pair.primary
    if not pair.claim.decided:
        return True
    if not rule.metric:  # `not within 5 %`
        if primary.low is None or primary.high is None:
            return None
        if primary.low > 1 + rule.limit or primary.high < 1 - rule.limit:
            return True
        return False if primary.low >= 1 - rule.limit and primary.high <= 1 + rule.limit else None
    amount = abs(pair.claim.ratio - 1) if pair.claim.ratio is not None else 0.0
    if (pair.verdict == rule.metric and amount >= rule.limit) != rule.negated:
        return True
    unseen = pair.verdict == Verdict.NO_DIFFERENCE and 0 < rule.limit < (primary.detectable or 0.0)
    return None if unseen else False


def enough_bytes(findings: Sequence[Finding]) -> int | None:
    """Return the most memory that is shown to be enough; None if none is."""
    enough = (finding.facts["pool_bytes"] for finding in findings if finding.kind is CurveKind.ENOUGH)
    return max(enough, default=None)


def ceilings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the result of each search for a ceiling."""
    of_several = (CeilingKind.REPEATS, CeilingKind.RATIO)
    return [finding for finding in findings if finding.kind in ANSWERS and finding.kind not in of_several]
