"""Points of a comparison: steps that were meant to be the same, such as repeats of one variant, put together."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stallmark.analysis.metrics import METRICS
from stallmark.analysis.step_summary import StepSummary

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    steps: tuple[StepSummary, ...]

    @property
    def first(self) -> StepSummary:
        return self.steps[0]

    @property
    def tps(self) -> float:
        """Return the result per second: of the primary transaction if one is set."""
        return sum(step.result_tps for step in self.steps) / len(self.steps)

    @property
    def relative_range(self) -> float:
        """Return the largest ÷ the smallest throughput of the repeats − 1."""
        slowest = min(step.result_tps for step in self.steps)
        return max(step.result_tps for step in self.steps) / slowest - 1 if slowest else 0.0

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the steps that have it."""
        return mean_of([METRICS[metric].value(step) for step in self.steps])


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values, or None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def sampling_uncertainty(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> float:
    """Return the relative difference that counts of two sides may have only because their samples were few."""
    return math.fsum(max((step.storage.uncertainty for step in side), default=0.0) for side in (a, b))


def group(items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return items with equal keys together, in the order of appearance."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def points(steps: Sequence[StepSummary]) -> list[Point]:
    """Return one point per variant and step, repeats together."""
    same = group(steps, lambda step: (step.variant, step.step, step.users))
    return [Point(tuple(steps)) for steps in same]


def labels(shown: Sequence[Point], among: Sequence[Point]) -> list[str]:
    """Return names that distinguish the `shown` points from the others: the variant, the step, or both."""
    variants = len({point.first.variant for point in among}) > 1
    steps = len({point.first.step for point in among}) > 1
    return [", ".join([p.first.variant] * (variants or not steps) + [p.first.step] * steps) for p in shown]


def step_names(shown: Sequence[StepSummary], among: Sequence[StepSummary]) -> list[str] | None:
    """Return the names of steps, with "(1 of 3 runs)" if other runs of a step are missing, or None if these are all
    steps."""
    if len(shown) == len(among):
        return None
    keys, everything = {step.key for step in shown}, points(among)
    counted = [(point, sum(step.key in keys for step in point.steps)) for point in everything]
    meant = [(point, count) for point, count in counted if count]
    names = labels([point for point, _ in meant], everything)
    return [
        name if count == len(point.steps) else f"{name} ({count} of {len(point.steps)} runs)"
        for name, (point, count) in zip(names, meant, strict=True)
    ]
