"""The statements that a report may make on two variants, or on two steps of one: every output takes them from here.

The number of runs that a wanted difference needs, from the spread of runs already made.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from stallmark.analysis.compare.checks import checks
from stallmark.analysis.compare.settings import OF_STEPS, ROLES, undeclared_differences
from stallmark.analysis.compare.sides import (
    Side,
    Unpaired,
    chosen_pairs,
    declared_metric,
    experiment,
    name_of,
    pair_up,
    ratio,
    sides,
    steps_of,
    variant,
    with_again,
)
from stallmark.analysis.compare.summary import Check, Claim, ComparisonSummary, PairKind, Ratio, ReasonKind, Verdict
from stallmark.analysis.finding import Finding, caution, invalid
from stallmark.analysis.metrics import THROUGHPUT, Metric, Point, group
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.record.devices import emulated_roles
from stallmark.stats import inference as statistics
from stallmark.stats.thresholds import CONFIDENCE, REPLICATES

T = TypeVar("T")

_OPPOSITE = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def decide(metric: Metric, observed: Ratio, checked: Iterable[Check] = ()) -> Claim:
    """Return the claim on a pair, from its ratio of a metric and from the checks whether it may be compared."""
    failed = [check for check in checked if check.passed is False]
    # A failed check outweighs every number.
    if failed:
        return Claim(Verdict.NOT_COMPARABLE, reasons=tuple(check.reason for check in failed if check.reason))
    if min(observed.runs_a, observed.runs_b) < REPLICATES or observed.p_adjusted is None or observed.ratio is None:
        return Claim(Verdict.INDICATIVE, observed.ratio)
    if observed.p_adjusted > 1 - CONFIDENCE:
        return Claim(Verdict.NO_DIFFERENCE, observed.ratio)
    better = (observed.ratio > 1) == (metric.better == "higher")
    return Claim(Verdict.BETTER if better else Verdict.WORSE, observed.ratio)


def comparable(candidates: Sequence[T], claim: Callable[[T, T], Claim]) -> list[T]:
    """Return the first and those that may be compared with it and with each other."""
    kept: list[T] = []
    for candidate in candidates:
        if all(claim(other, candidate).comparable for other in kept):
            kept.append(candidate)
    return kept


class Claims:
    """The claims on the throughput of any two points of an experiment. Those that its comparison judged are taken from
    there; others are checked as it does, and their p-values corrected by the number of all pairs."""

    def __init__(self, runs: Sequence[RunSummary], judged: ComparisonSummary | None = None):
        self.judged = judged is not None
        sides = [Side(_name(same[0]), tuple(same)) for same in group(runs, _name)]
        self._sides = {side.name: side for side in with_again(sides)}
        self._pairs = {(pair.a, pair.b, pair.step, pair.users): pair.claim for pair in judged.pairs} if judged else {}
        self._by_throughput = judged is not None and judged.primary == THROUGHPUT.key
        self._made: dict[tuple[str, str], Claim] = {}

    def claim(self, a: Point, b: Point) -> Claim:
        """Return the claim on B against A: points of one variant, or the same step of two."""
        key = a.first.key, b.first.key
        if key not in self._made:
            self._made[key] = (
                self._claim_on_steps(a, b) if a.first.variant == b.first.variant else self._claim_on_variants(a, b)
            )
        return self._made[key]

    def comparable_points(self, compared: Sequence[Point]) -> list[Point]:
        """Return the first point and those that may be compared with it and with each other."""
        return comparable(compared, self.claim)

    def incomparable_pairs(self, compared: Sequence[Point]) -> list[list[str]]:
        """Return the pairs of variants that must not be compared in a step that both have."""
        by_step = group(compared, lambda point: (point.first.step, point.first.users))
        pairs = [pair for same in by_step for pair in combinations(same, 2) if not self.claim(*pair).comparable]
        return [list(names) for names in dict.fromkeys((a.first.variant, b.first.variant) for a, b in pairs)]

    def reasons_against(self, a: str, b: str) -> list[Finding]:
        """Return the reasons that forbid a comparison of two variants in every step: their settings, wrong data, or an
        emulated device next to a real one."""
        sides = [self._sides[name] for name in (a, b)]
        every = [run for side in sides for run in side.runs]
        first = sides[0].runs[0].manifest
        different = [
            difference
            for run in every[1:]
            for difference in undeclared_differences(first, run.manifest)
            if difference.kind not in OF_STEPS
        ]
        reasons = [invalid(ReasonKind.SETTINGS_DIFFER, differences=list(dict.fromkeys(different)))] if different else []
        if wrong := [name_of(run) for run in every if any(condition.holds is False for condition in run.conditions)]:
            reasons.append(invalid(ReasonKind.DATA_WRONG, runs=wrong))
        roles = [emulated_roles(run.manifest) for run in every]
        if mixed := next(
            (role for role in ROLES if 0 < sum(role in run_roles for run_roles in roles) < len(roles)), None
        ):
            reasons.append(invalid(ReasonKind.DEVICES_DIFFER, role=mixed))
        return reasons

    def _claim_on_variants(self, a: Point, b: Point) -> Claim:
        judged = self._judged_claim(a, b)
        if judged and (self._by_throughput or not judged.comparable):
            return judged
        side_a, side_b = (_side(self._sides[point.first.variant], point) for point in (a, b))
        step = a.first.step, a.first.users
        if step != (b.first.step, b.first.users):
            apart = caution(PairKind.NO_COMMON_STEP, a=a.first.variant, b=b.first.variant)
            return Claim(Verdict.NOT_COMPARABLE, reasons=(apart,))
        pairing = pair_up(side_a, side_b)
        observed = ratio(THROUGHPUT, steps_of(pairing.a, step), steps_of(pairing.b, step), pairing.paired)
        pairs = len(self._sides) * (len(self._sides) - 1) // 2
        if observed.p is not None:
            observed = replace(observed, p_adjusted=min(1.0, observed.p * pairs))
        return decide(THROUGHPUT, observed, checks(side_a, side_b, step, THROUGHPUT, list(self._sides.values())))

    def _judged_claim(self, a: Point, b: Point) -> Claim | None:
        """Return the claim of the comparison, whichever of the two is its baseline."""
        step = a.first.step, a.first.users
        if claim := self._pairs.get((a.first.variant, b.first.variant, *step)):
            return claim
        claim = self._pairs.get((b.first.variant, a.first.variant, *step))
        if claim is None or claim.ratio is None:
            return claim
        return Claim(_OPPOSITE.get(claim.verdict, claim.verdict), 1 / claim.ratio)

    def _claim_on_steps(self, a: Point, b: Point) -> Claim:
        """Return the claim on two steps of one variant, which are pairs by their runs."""
        by_run = {step.run: step for step in a.steps}
        pairs = [(by_run[step.run], step) for step in b.steps if step.run in by_run]
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        return decide(THROUGHPUT, ratio(THROUGHPUT, first, second, paired=True))


def _name(run: RunSummary) -> str:
    return run.steps[0].variant if run.steps else variant(run)


def _side(side: Side, point: Point) -> Side:
    """Return the side with only those runs that have a step of the point."""
    keys = {step.key for step in point.steps}

    def having(runs: Iterable[RunSummary]) -> tuple[RunSummary, ...]:
        return tuple(run for run in runs if any(step.key in keys for step in run.steps))

    return Side(side.name, having(side.runs), having(side.again))


SHOWN = (3, 4, 5, 6, 8, 10, 15, 20)
"""Numbers of runs for which the plan lists the smallest difference that they can show."""


@dataclass(frozen=True)
class RunsPlan:
    """A plan of the number of runs of each side.

    The spread is the standard deviation of ln of the primary metric of single runs, pooled within variants and steps.
    Its interval (χ², CONFIDENCE) shows how precise the spread is.
    """

    primary: str
    unit: str
    spread: float
    spread_low: float
    spread_high: float
    df: int
    runs_seen: int
    difference: float  # requested: 0.05 is 5 %
    runs: int | None  # None: more than MOST_RUNS
    runs_low: int | None  # if the spread were at the lower end of its interval
    runs_high: int | None
    can_show: list[tuple[int, float]]  # runs, smallest difference
    run_s: float | None
    """Duration of one run with preparation and end, or of its load if no more is known."""
    left_out: Finding | None
    """The number of given runs without information on the spread, with the reason, or None."""
    unpaired: Unpaired | None = None
    """The reason why the given runs are unpaired, other than too few repeats."""


def plan_runs(runs: Sequence[RunSummary], difference: float) -> RunsPlan:
    """Plan the number of runs. Raise StallmarkError if no variant ran twice, the metric is missing or zero, or no run
    counts."""
    if any(run.queries is not None for run in runs):
        raise StallmarkError("A plan is for runs of transactions: these are runs of queries.")
    whole = [run for run in runs if run.steps and not run.incomplete_because]
    left_out = _left_out(runs)
    if not any(_sound(step) for run in whole for step in run.steps):
        raise StallmarkError(f"None of these runs can show the run-to-run variation{_in_brackets(left_out)}.")
    metric = declared_metric(whole)
    values: list[list[list[float]]] = []
    # A and A′ apart: what changed between them is drift, which no further run makes smaller.
    for same in group(whole, lambda run: (experiment(run), variant(run), run.manifest.again)):
        sound = [step for run in same for step in run.steps if _sound(step)]
        values.append(
            [
                [value for step in steps if (value := metric.value(step)) is not None and value > 0]
                for steps in group(sound, lambda step: (step.step, step.users))
            ]
        )
    pooled = statistics.pooled_spread(values)
    if pooled is None:
        raise StallmarkError(
            f"No variant has two runs in which {metric.title} was measured, so their variation is unknown: make at "
            f"least 2 of one, `repeats: 2`{_in_brackets(left_out)}."
        )
    spread, df = pooled
    low, high = statistics.spread_interval(spread, df)
    unpaired = _unpaired_reason(whole)
    paired = unpaired is None
    needed = [statistics.runs_needed(difference, assumed, paired) for assumed in (spread, low, high)]
    lengths = [seconds for run in whole if (seconds := _seconds(run)) is not None]
    return RunsPlan(
        primary=metric.title,
        unit=metric.unit,
        spread=spread,
        spread_low=low,
        spread_high=high,
        df=df,
        runs_seen=sum(most for steps in values if (most := max(map(len, steps), default=0)) > 1),
        difference=difference,
        runs=needed[0],
        runs_low=needed[1],
        runs_high=needed[2],
        can_show=[(count, statistics.detectable_with(count, spread, paired)) for count in SHOWN],
        run_s=float(np.median(lengths)) if lengths else None,
        left_out=left_out,
        unpaired=unpaired,
    )


def _seconds(run: RunSummary) -> float | None:
    took, planned = run.manifest.took, run.manifest.steps
    if took and took.seconds is not None:
        return took.seconds
    return planned[-1].end_s if planned else None


def _unpaired_reason(runs: Sequence[RunSummary]) -> Unpaired | None:
    """Return the reason why runs like these cannot be paired, however many are made, or None if they can."""
    try:
        pairs = chosen_pairs(sides(runs), None, None)
    except StallmarkError:  # one side alone
        return None
    reasons = [reason for a, b in pairs if (reason := pair_up(a, b).unpaired) not in (None, Unpaired.FEW_REPEATS)]
    return reasons[0] if reasons else None


def _sound(step: StepSummary) -> bool:
    return not step.validity.invalid and not step.validity.driver_bound


def _left_out(runs: Sequence[RunSummary]) -> Finding | None:
    """Return the number of runs without information on the spread, and the reason. Counts steps if runs have
    several."""
    reasons: Counter[str] = Counter()
    for run in runs:
        if run.incomplete_because or not run.steps:
            reasons["incomplete"] += max(1, len(run.steps))
            continue
        for step in run.steps:
            if not _sound(step):
                reasons["invalid" if step.validity.invalid else "driver_bound"] += 1
    if not reasons:
        return None
    counts = [max(1, len(run.steps)) for run in runs]
    return caution(PairKind.PLAN_LEFT_OUT, of=sum(counts), steps=max(counts) > 1, left_out=dict(reasons))


def _in_brackets(left_out: Finding | None) -> str:
    """Return the number of runs that do not count, in brackets for an error."""
    if left_out is None:
        return ""
    count = sum(left_out.facts["left_out"].values())
    return f" ({count} of {left_out.facts['of']} are incomplete, invalid or limited by the driver)"
