"""The statements that a report may make on two variants, or on two steps of one: every output takes them from here."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

from stallmark.analysis.compare.checks import checks
from stallmark.analysis.compare.settings import OF_STEPS, differences_from_first, mixed_role
from stallmark.analysis.compare.sides import Side, name_of, pair_up, ratio, steps_of, variant, with_again
from stallmark.analysis.compare.summary import Check, Claim, ComparisonSummary, PairKind, Ratio, ReasonKind, Verdict
from stallmark.analysis.finding import Finding, caution, invalid
from stallmark.analysis.metrics import THROUGHPUT, Metric, Point, group
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import emulated_roles
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

    def facts(self, a: Point, b: Point) -> dict[str, Any]:
        """Return the throughput of two points and the claim on B against A, as facts of a finding."""
        claim, primary = self.claim(a, b), a.first.throughput.primary
        return {"per_s": [a.tps, b.tps], "ratio": claim.ratio, "verdict": claim.verdict, "primary": primary}

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
        every = [run for name in (a, b) for run in self._sides[name].runs]
        different = [difference for difference in differences_from_first(every) if difference.kind not in OF_STEPS]
        reasons = [invalid(ReasonKind.SETTINGS_DIFFER, differences=different)] if different else []
        if wrong := [name_of(run) for run in every if run.has_wrong_data]:
            reasons.append(invalid(ReasonKind.DATA_WRONG, runs=wrong))
        if mixed := mixed_role([emulated_roles(run.manifest) for run in every]):
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
