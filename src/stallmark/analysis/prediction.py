"""Predictions of throughput for other read times, for every variant of some runs.

They are tested where variants with other read times were really run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean

from stallmark.analysis.attribution import NoteKind, Prediction, Source
from stallmark.analysis.bottleneck import mean_prediction
from stallmark.analysis.cause.evidence import ModelTest, check_model, demands_of
from stallmark.analysis.finding import Finding, info
from stallmark.analysis.points import group, points
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError


@dataclass(frozen=True)
class WhatIf:
    """One variant at one number of users. Everything is a mean over its runs, and so are the ends of ranges."""

    variant: str
    step: str
    users: int
    runs: int
    emulated: bool
    tps: float  # the measured result
    read_ms: float  # measured
    read_source: Source
    predictions: list[Prediction]  # ordered as requested


@dataclass(frozen=True)
class WhatIfs:
    """Predictions, and tests of such predictions. `left_out`: steps without a prediction, with the reason."""

    found: list[WhatIf]
    tests: list[ModelTest]
    left_out: list[Finding]


def predict_throughputs(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIfs:
    """Predict throughput for read times. Raise StallmarkError if no step was measured."""
    same = [point.steps for point in points(steps)]
    known = [steps_of_point for steps_of_point in same if demands_of(steps_of_point)]
    left_out = list(
        _left_out([step for steps_of_point in same if steps_of_point not in known for step in steps_of_point])
    )
    if not same:
        raise StallmarkError("These runs hold no measured step: there is nothing to predict.")
    tests = [test for a, b in permutations(known, 2) for test in check_model(a, b)]
    return WhatIfs([_predict_point(steps_of_point, times_ms) for steps_of_point in known], tests, left_out)


def _predict_point(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIf:
    demands = demands_of(steps)
    first = steps[0]
    return WhatIf(
        first.variant,
        first.step,
        first.users,
        len(steps),
        any(step.emulated for step in steps),
        fmean(demand.tps for demand in demands),
        fmean(demand.read_ms for demand in demands),
        demands[0].read_source,
        [mean_prediction(demands, read_ms) for read_ms in times_ms],
    )


def _left_out(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    unknown = [step for step in steps if not (step.cause and step.cause.demands)]
    for same in group(unknown, _missing_reason):
        names = list(dict.fromkeys(f"{step.variant}, {step.step}" for step in same))
        yield info(NoteKind.NOT_PREDICTED, steps=names, because=_missing_reason(same[0]))


def _missing_reason(step: StepSummary) -> Finding:
    return next(iter(step.cause.notes if step.cause else ()), info(NoteKind.QUERIES))
