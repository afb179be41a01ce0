"""Predictions of throughput for other read times, for every variant of some runs.

They are tested where variants with other read times were really run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean

from stallmark.analysis.bottleneck.laws import predict
from stallmark.analysis.bottleneck.summary import Demands, NoteKind, Prediction, Source
from stallmark.analysis.cause.evidence import ModelTest, check_model
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
    tps: float  # the result, as measured
    read_ms: float  # as measured
    read_source: Source
    predictions: list[Prediction]  # in the order asked for


@dataclass(frozen=True)
class WhatIfs:
    """Predictions, and how good such predictions were. `left_out`: steps for which nothing can be predicted,
    and why."""

    found: list[WhatIf]
    tests: list[ModelTest]
    left_out: list[Finding]


def what_if(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIfs:
    """Predict throughput for read times. Raise StallmarkError where no step was measured."""
    same = [point.steps for point in points(steps)]
    known = [some for some in same if len(_demands(some)) == len(some)]
    left_out = list(_left_out([step for some in same if some not in known for step in some]))
    if not same:
        raise StallmarkError("These runs hold no measured step: there is nothing to predict.")
    tests = [test for a, b in permutations(known, 2) for test in check_model(a, b)]
    return WhatIfs([_of(some, times_ms) for some in known], tests, left_out)


def _of(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIf:
    demands = _demands(steps)
    first = steps[0]
    return WhatIf(
        first.variant,
        first.step,
        first.users,
        len(steps),
        any(step.emulated for step in steps),
        fmean(one.tps for one in demands),
        fmean(one.read_ms for one in demands),
        demands[0].read_source,
        [_averaged([predict(one, read_ms) for one in demands]) for read_ms in times_ms],
    )


def _averaged(some: Sequence[Prediction]) -> Prediction:
    return Prediction(
        some[0].read_ms,
        fmean(one.tps for one in some),
        fmean(one.low for one in some),
        fmean(one.high for one in some),
        fmean(one.response_ms for one in some),
        some[0].limit if len({one.limit for one in some}) == 1 else None,
    )


def _demands(steps: Sequence[StepSummary]) -> list[Demands]:
    return [step.cause.demands for step in steps if step.cause and step.cause.demands]


def _left_out(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    unknown = [step for step in steps if not (step.cause and step.cause.demands)]
    for same in group(unknown, _why):
        names = list(dict.fromkeys(f"{step.variant}, {step.step}" for step in same))
        yield info(NoteKind.NOT_PREDICTED, steps=names, because=_why(same[0]))


def _why(step: StepSummary) -> Finding:
    return next(iter(step.cause.notes if step.cause else ()), info(NoteKind.QUERIES))
