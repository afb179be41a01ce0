"""The verdicts on pairs of sides over runs, with their evidence.

A verdict is on one metric, which the scenario declares before anything runs. Where several pairs are judged at once,
Holm's correction is among them. All other metrics explain, and are corrected among themselves.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from stallmark.analysis.cause import explain
from stallmark.analysis.cause_evidence import Cause
from stallmark.analysis.compare.checks import changed_plans, checks
from stallmark.analysis.compare.claims import decide
from stallmark.analysis.compare.settings import folders_on_one_disk, intended_differences, with_varied
from stallmark.analysis.compare.sides import (
    Between,
    Pairing,
    Side,
    adjusted,
    came_back,
    chosen_pairs,
    confounded,
    declared_metric,
    experiment,
    name_of,
    order,
    other_ratios,
    pair_up,
    ratio,
    sides,
    steps_of,
    transaction_ratios,
    variant,
    with_again,
)
from stallmark.analysis.compare.summary import (
    Check,
    CheckKind,
    ComparisonSummary,
    PairComparison,
    PairKind,
    Ratio,
    ReasonKind,
    SideSummary,
    Verdict,
    WithinRun,
    check,
)
from stallmark.analysis.finding import ExperimentKind, Finding, caution, early_ends, info, invalid
from stallmark.analysis.metrics import THROUGHPUT, Metric
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.stats.inference import welch
from stallmark.stats.steady_state import batches
from stallmark.stats.thresholds import BATCHES_FEWEST, CONFIDENCE


def compare_runs(
    runs: Sequence[RunSummary],
    between: Between | None = None,
    baseline: str | None = None,
    varied: Collection[str] = (),
) -> ComparisonSummary:
    """Compare runs. Raise StallmarkError without two sides, or without a step that two sides share.

    `varied`: settings of the server that were changed by hand between the sides.
    """
    if any(run.queries is not None for run in runs):
        raise StallmarkError("Runs of queries are compared by `stallmark report`, query by query.")
    if any(run.manifest.search for run in runs):
        raise StallmarkError("Ceilings are compared by `stallmark report`: two searches try levels of their own.")
    whole = [run for run in runs if run.steps and not run.incomplete_because]
    left_out = [
        caution(PairKind.INCOMPLETE, run=name_of(run), said=run.incomplete_because)
        for run in runs
        if not run.steps or run.incomplete_because
    ]
    left_out += early_ends(run.manifest for run in runs)
    if not whole:
        because = f": {runs[0].incomplete_because}" if runs and runs[0].incomplete_because else ""
        raise StallmarkError(f"There is nothing to compare: no run was measured to its end{because}.")
    if varied:
        whole, between = with_varied(whole, varied), between or _sides_compared(whole)
    all_sides = with_again(sides(whole, between))
    chosen = chosen_pairs(all_sides, baseline, between)
    metric = declared_metric(chosen[0][0].runs)
    drafts = [_draft(metric, a, b, step) for a, b in chosen for step in a.all_steps if b.steps(step)]
    if not drafts:
        raise StallmarkError(
            "The sides have no step in common: compare runs whose steps have the same names and numbers of users."
        )
    left_out += [
        caution(PairKind.NO_COMMON_STEP, a=a.name, b=b.name) for a, b in chosen if not any(map(b.steps, a.all_steps))
    ]
    asked = _wanted_sides(all_sides, chosen, baseline)
    left_out += _without_partner(asked, chosen)
    left_out += _pooled_experiments(all_sides, between)
    # All pairs together are one family for Holm's correction.
    family = adjusted([draft.primary for draft in drafts])
    return ComparisonSummary(
        primary=metric.key,
        baseline=chosen[0][0].name,
        sides=[_side(side) for side in asked],
        pairs=[
            _judge(metric, draft, primary, len(drafts), all_sides)
            for draft, primary in zip(drafts, family, strict=True)
        ],
        left_out=left_out,
    )


def _sides_compared(runs: Sequence[RunSummary]) -> Between | None:
    """Return the sides of runs whose settings were changed by hand: experiments, where all have the same variants."""
    variants: dict[str, set[str]] = {}
    for run in runs:
        variants.setdefault(experiment(run), set()).add(variant(run))
    alike = all(names == variants[experiment(runs[0])] for names in variants.values())
    return "experiments" if alike and len(variants) > 1 else None


def _wanted_sides(
    all_sides: Sequence[Side], chosen: Sequence[tuple[Side, Side]], baseline: str | None
) -> Sequence[Side]:
    """Return the sides that were to be compared: with one variant as the baseline, those that it is paired with."""
    if baseline is None or baseline in {experiment(run) for side in all_sides for run in side.runs}:
        return all_sides
    return [side for side in all_sides if any(side is member for pair in chosen for member in pair)]


def _without_partner(asked: Sequence[Side], chosen: Sequence[tuple[Side, Side]]) -> Iterator[Finding]:
    """Yield a caution for each side that is in no pair."""
    for side in asked:
        if not any(side is member for pair in chosen for member in pair):
            yield caution(PairKind.NO_PARTNER, side=side.name, experiment=experiment(chosen[0][0].runs[0]))


def _pooled_experiments(all_sides: Sequence[Side], between: Between | None) -> Iterator[Finding]:
    """Yield a caution if runs of several experiments form one side without being requested."""
    several = {side.name: list(dict.fromkeys(map(experiment, side.runs))) for side in all_sides}
    if between is None and (pooled := [name for name, names in several.items() if len(names) > 1]):
        experiments = list(dict.fromkeys(name for side in pooled for name in several[side]))
        yield caution(PairKind.POOLED, sides=pooled, experiments=experiments)


def comparison_within(runs: Sequence[RunSummary]) -> ComparisonSummary | None:
    """Compare the variants of an experiment that repeated them, or return None if no verdict is possible."""
    whole = [run for run in runs if run.steps and not run.incomplete_because]
    names = [variant(run) for run in whole]
    if any(run.queries is not None for run in runs) or len(set(names)) < 2 or len(set(names)) == len(names):
        return None
    try:
        return compare_runs(runs)
    except StallmarkError:  # no step in common, or a metric of a later version
        return None


@dataclass(frozen=True)
class _Draft:
    """A pair before Holm's correction among all pairs."""

    a: Side
    b: Side
    step: tuple[str, int]
    pairing: Pairing
    primary: Ratio


def _draft(metric: Metric, a: Side, b: Side, step: tuple[str, int]) -> _Draft:
    """Draft a pair of the runs that have the step: in others it was not reached, or not planned."""
    a, b = a.having(step), b.having(step)
    pairing = pair_up(a, b)
    return _Draft(a, b, step, pairing, ratio(metric, *_steps(pairing, step), pairing.paired))


def _steps(pairing: Pairing, step: tuple[str, int]) -> tuple[list[StepSummary], list[StepSummary]]:
    return steps_of(pairing.a, step), steps_of(pairing.b, step)


def _judge(metric: Metric, draft: _Draft, primary: Ratio, pairs: int, among: Sequence[Side]) -> PairComparison:
    a, b, step = draft.a, draft.b, draft.step
    steps_a, steps_b = _steps(draft.pairing, step)
    paired = draft.pairing.paired and len(steps_a) == len(steps_b)
    checked = checks(a, b, step, metric, among)
    if primary.ratio is None:
        reason = invalid(ReasonKind.NOT_MEASURED, metric=metric.key, a=a.name, b=b.name)
        checked = [*checked, check(CheckKind.METRIC_MEASURED, False, reason, metric=metric.key)]
    verdict = decide(metric, primary, checked).verdict
    # Only single runs need it: repeated runs have an interval between runs.
    within = _interval_within_run(metric, draft) if verdict == Verdict.INDICATIVE else None
    comparable = verdict != Verdict.NOT_COMPARABLE
    # A cause of a difference that is not comparable would be misleading.
    cause = explain(steps_a, steps_b, paired) if comparable else None
    others = other_ratios(metric.key, steps_a, steps_b, paired)
    transactions = transaction_ratios(steps_a, steps_b, paired)
    ramp = len({users for _, users in (*a.all_steps, *b.all_steps)}) > 1
    return PairComparison(
        a=a.name,
        b=b.name,
        step=step[0],
        users=step[1],
        verdict=verdict,
        finding=_finding(metric, verdict, draft, primary, checked, within, cause, list(step) if ramp else None),
        primary=primary if comparable else primary.without_ratio,
        others=others if comparable else [other.without_ratio for other in others],
        transactions=transactions if comparable else [transaction.without_ratio for transaction in transactions],
        checks=checked,
        cautions=_cautions(metric, a, b, among, checked, primary, pairs),
        method=info(
            PairKind.METHOD,
            paired=paired,
            runs=[len(draft.pairing.a), len(draft.pairing.b)],
            unpaired=draft.pairing.unpaired,
            left_out=draft.pairing.left_out,
            df=primary.df,
        ),
        order=order(a, b),
        confounded=confounded(a, b),
        within_run=within,
        cause=cause,
    )


def _finding(
    metric: Metric,
    verdict: Verdict,
    draft: _Draft,
    primary: Ratio,
    checked: Sequence[Check],
    within: WithinRun | None,
    cause: Cause | None,
    step: list[Any] | None,
) -> Finding:
    """Return the verdict with its figures. `step` is its name and users, where there are several."""
    facts: dict[str, Any] = {"a": draft.a.name, "b": draft.b.name, "step": step}
    if verdict == Verdict.NOT_COMPARABLE:
        reasons = [check_.reason for check_ in checked if check_.passed is False and check_.reason]
        return invalid(PairKind.NOT_COMPARABLE, reasons=reasons, **facts)
    # A changed plan may be the cause, so every verdict names it.
    if changed := changed_plans(*_steps(draft.pairing, draft.step)):
        facts["plans_changed"] = changed
    facts |= {"metric": metric.key, "ratio": primary.ratio, "low": primary.low, "high": primary.high}
    if verdict == Verdict.INDICATIVE:
        # With one run each, only the variation of its seconds gives an interval.
        if within:
            facts |= {"low": within.low, "high": within.high}
        fewest = min(primary.runs_a, primary.runs_b)
        return caution(PairKind.INDICATIVE, runs=fewest, interval_within_run=within is not None, **facts)
    if verdict == Verdict.NO_DIFFERENCE:
        # Significant by itself, but not after the adjustment for several pairs.
        chance = primary.family > 1 and primary.p is not None and primary.p <= 1 - CONFIDENCE
        return info(
            PairKind.NO_DIFFERENCE,
            detectable_share=primary.detectable,
            by_chance_among=primary.family if chance else None,
            **facts,
        )
    return info(PairKind.DIFFERENCE, verdict=verdict, because=cause.finding if cause else None, **facts)


def _cautions(
    metric: Metric, a: Side, b: Side, among: Sequence[Side], checked: Sequence[Check], primary: Ratio, pairs: int
) -> list[Finding]:
    cautions, back = [], came_back(a, b)
    # With one run each, one side always comes first.
    if confounded(a, b) and len(a.runs) + len(b.runs) > 2:
        if back:
            cautions.append(caution(PairKind.CAME_BACK, side=back.name, other=(b if back is a else a).name))
        else:
            cautions.append(caution(PairKind.ONE_SIDE_FIRST, a=a.name, b=b.name))
    if metric is THROUGHPUT and any(run.is_rate_given for run in (*a.runs, *b.runs)):
        cautions.append(caution(ExperimentKind.RATE_GIVEN, steps=None))
    if pairs > 1 and primary.p is not None:
        cautions.append(caution(PairKind.SEVERAL_PAIRS, pairs=pairs))
    both = [side for side in among if side.name in (a.name, b.name)]
    for side, other in permutations(both, 2):
        if alone := [step for step in side.all_steps if not other.steps(step)]:
            cautions.append(caution(PairKind.ONLY_ONE_SIDE, side=side.name, steps=[list(step) for step in alone]))
    if warming := [side.name for side in (a, b) if any(step.flash_warming for run in side.runs for step in run.steps)]:
        cautions.append(caution(PairKind.FLASH_WARMING, sides=warming))
    if unknown := [check_.kind for check_ in checked if check_.passed is None]:
        cautions.append(caution(PairKind.CHECKS_UNKNOWN, checks=unknown))
    cautions += folders_on_one_disk([*a.runs, *b.runs])
    cautions += [check_.reason for check_ in checked if check_.passed is not False and check_.reason]
    return cautions


def _side(side: Side) -> SideSummary:
    steps = [step for run in side.runs for step in run.steps]
    return SideSummary(
        name=side.name,
        runs=[name_of(run) for run in side.runs],
        again=[name_of(run) for run in side.again],
        differs=list(intended_differences(side.runs[0].manifest)),
        emulated=any(step.emulated for step in steps),
    )


def _interval_within_run(metric: Metric, draft: _Draft) -> WithinRun | None:
    """Return the interval of one run each from batch means of throughput; None of other metrics, and of few seconds."""
    if metric is not THROUGHPUT or len(draft.a.runs) != 1 or len(draft.b.runs) != 1:
        return None
    rates = [_measured_rates(side.runs[0], draft.step) for side in (draft.a, draft.b)]
    if min(map(len, rates)) < BATCHES_FEWEST:
        return None
    # Neighbouring seconds share their fate, and so do batches of them.
    a, b = map(batches, rates)
    if min(*a.means, *b.means) <= 0:
        return None
    low, high = welch(np.log(a.means), np.log(b.means), (a.inflation, b.inflation)).interval()
    shorter = min(a, b, key=lambda side: side.length)
    return WithinRun(float(np.exp(low)), float(np.exp(high)), len(shorter.means), shorter.length)


def _measured_rates(run: RunSummary, step: tuple[str, int]) -> np.ndarray:
    """Return the result's rate in every second that the step's figures are over."""
    series = run.series
    rate = series.tps if series.primary_tps is None else series.primary_tps
    measured_step, *_ = steps_of([run], step)
    return np.asarray(rate[measured_step.interval.begin_s : measured_step.interval.end_s], dtype=float)
