"""How many runs a wanted difference needs, from the spread of runs already made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.driver.analysis import compare_statistics as statistics
from stallmark.driver.analysis.compare import declared_metric
from stallmark.driver.analysis.compare_sides import experiment, variant
from stallmark.driver.analysis.points import group
from stallmark.driver.analysis.summary import RunSummary
from stallmark.driver.engines.errors import StallmarkError

SHOWN = (3, 4, 5, 6, 8, 10, 15, 20)
"""Numbers of runs for which the plan says what they can show."""


@dataclass(frozen=True)
class RunsPlan:
    """`spread` is the standard deviation of ln of the primary metric of single runs, pooled within variants and steps;
    its interval (χ², CONFIDENCE) says how roughly it is known. Runs are of each variant; None: more than anyone makes.
    """

    primary: str
    unit: str
    spread: float
    spread_low: float
    spread_high: float
    df: int
    runs_seen: int
    difference: float  # wanted: 0.05 is 5 %
    runs: int | None
    runs_low: int | None  # were the spread at the lower end of its interval
    runs_high: int | None
    can_show: list[tuple[int, float]]  # runs, smallest difference
    run_s: float | None  # how long one of them took, warm-up included


def plan_runs(runs: Sequence[RunSummary], difference: float) -> RunsPlan:
    """Raises StallmarkError where no variant ran twice, or where the metric is missing or zero."""
    whole = [run for run in runs if run.steps and not run.incomplete_because]
    if not whole:
        raise StallmarkError("There is no whole run among these to tell the spread from.")
    if any(run.queries is not None for run in whole):
        raise StallmarkError("A plan is for runs of transactions: these are runs of queries.")
    what = declared_metric(whole)
    values: list[list[float]] = []
    for same in group(whole, lambda run: (experiment(run), variant(run))):
        for steps in group(
            [step for run in same for step in run.steps], lambda step: (step.step, step.users)
        ):
            known = [value for step in steps if (value := what.value(step)) is not None and value > 0]
            values.append(known)
    found = statistics.pooled_spread(values)
    if found is None:
        raise StallmarkError(
            f"No variant has two runs in which {what.title} was measured, so nothing tells how much runs scatter: make "
            "at least 2 of one, `repeats: 2`."
        )
    spread, df = found
    low, high = statistics.spread_interval(spread, df)
    needed = [statistics.runs_needed(difference, one) for one in (spread, low, high)]
    ends = [planned[-1].get("end_s") for run in whole if (planned := run.manifest.get("steps"))]
    lengths = [end for end in ends if end is not None]
    return RunsPlan(
        primary=what.title,
        unit=what.unit,
        spread=spread,
        spread_low=low,
        spread_high=high,
        df=df,
        runs_seen=sum(len(known) for known in values if len(known) > 1),
        difference=difference,
        runs=needed[0],
        runs_low=needed[1],
        runs_high=needed[2],
        can_show=[(count, statistics.detectable_with(count, spread)) for count in SHOWN],
        run_s=float(np.median(lengths)) if lengths else None,
    )
