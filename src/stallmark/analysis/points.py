"""Steps that were meant to be the same, put together: repeats of one variant become one point of a
comparison."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stallmark.analysis.summary import StepSummary
from stallmark.format import percent, plural, size

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    steps: tuple[StepSummary, ...]

    @property
    def first(self) -> StepSummary:
        return self.steps[0]

    @property
    def tps(self) -> float:
        """The result: of the primary transaction where there is one."""
        return sum(step.result_tps for step in self.steps) / len(self.steps)

    @property
    def counted(self) -> str:
        """What `tps` counts."""
        return plural(self.first.primary) if self.first.primary else "committed transactions"

    @property
    def latency_mean_ms(self) -> float | None:
        return self._mean(lambda step: step.latency_mean_ms)

    @property
    def reads_per_transaction(self) -> float | None:
        return self._mean(lambda step: step.reads_per_transaction)

    @property
    def spread(self) -> float:
        """Largest over smallest throughput of the repeats, less 1."""
        slowest = min(step.result_tps for step in self.steps)
        return max(step.result_tps for step in self.steps) / slowest - 1 if slowest else 0.0

    @property
    def pool(self) -> str:
        """The buffer pool in words, "64 MiB (20 % of the data)"."""
        step = self.first
        if step.buffer_pool_bytes is None:
            return "a buffer pool of unknown size"
        share = step.buffer_pool_share
        if share is None:
            return size(step.buffer_pool_bytes)
        part = "all" if share >= 1 else percent(share)
        return f"{size(step.buffer_pool_bytes)} ({part} of the data)"

    def _mean(self, of: Callable[[StepSummary], float | None]) -> float | None:
        values = [value for step in self.steps if (value := of(step)) is not None]
        return sum(values) / len(values) if values else None


def group(some: Sequence[T], by: Callable[[T], Hashable]) -> list[list[T]]:
    """Those of which `by` says the same together, in the order of appearance."""
    groups: dict[Hashable, list[T]] = {}
    for one in some:
        groups.setdefault(by(one), []).append(one)
    return list(groups.values())


def points(steps: Sequence[StepSummary]) -> list[Point]:
    """One point per variant and step, repeats together."""
    same = group(steps, lambda step: (step.variant, step.step, step.users))
    return [Point(tuple(steps)) for steps in same]


def labels(some: Sequence[Point], among: Sequence[Point]) -> list[str]:
    """Names, in quotes, that tell `some` points from the others: the variant, the step, or both."""
    variants = len({point.first.variant for point in among}) > 1
    steps = len({point.first.step for point in among}) > 1
    chosen = [[p.first.variant] * (variants or not steps) + [p.first.step] * steps for p in some]
    return [f"“{', '.join(names)}”" for names in chosen]
