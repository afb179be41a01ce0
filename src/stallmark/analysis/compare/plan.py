"""The number of runs that a wanted difference needs, from the spread of runs already made."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.compare.sides import (
    Unpaired,
    chosen_pairs,
    declared_metric,
    experiment,
    pair_up,
    sides,
    variant,
)
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.metrics import group
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError
from stallmark.stats import inference as statistics

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
