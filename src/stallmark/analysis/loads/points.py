"""Points of loads: the same load in the same step of the same variant, its repeats together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stallmark.analysis.finding import Finding
from stallmark.analysis.loads.run import WholeStep
from stallmark.analysis.loads.step import LoadLevel, LoadStep
from stallmark.analysis.points import group, mean_of
from stallmark.analysis.validity.service_level import LevelOutcome

_WORST_FIRST = (LevelOutcome.NOT_MET, LevelOutcome.NOT_KNOWN, LevelOutcome.MEAN_ONLY, LevelOutcome.MET)


@dataclass(frozen=True)
class LoadPoint:
    """A load in a step over its runs. Means are over those runs in which the figure is known."""

    runs: tuple[LoadStep, ...]

    @property
    def first(self) -> LoadStep:
        return self.runs[0]

    @property
    def rate(self) -> float | None:
        return self.mean(lambda one: one.rate)

    @property
    def level(self) -> LoadLevel | None:
        """Return the worst outcome of its runs."""
        levels = [one.level for one in self.runs if one.level]
        return min(levels, key=lambda one: _WORST_FIRST.index(one.outcome), default=None)

    @property
    def doubts(self) -> list[Finding]:
        return [doubt for one in self.runs for doubt in one.doubts]

    @property
    def storage_share(self) -> float | None:
        """Return the share of the response time that storage takes."""
        return self.mean(lambda one: one.budget.storage_share if one.budget else None)

    def mean(self, of: Callable[[LoadStep], float | None]) -> float | None:
        return mean_of([of(one) for one in self.runs])


@dataclass(frozen=True)
class WholePoint:
    """A step over its runs, all loads together."""

    runs: tuple[WholeStep, ...]

    @property
    def first(self) -> WholeStep:
        return self.runs[0]

    def mean(self, of: Callable[[WholeStep], float | None]) -> float | None:
        return mean_of([of(one) for one in self.runs])


def load_points(steps: Sequence[LoadStep]) -> list[LoadPoint]:
    """Return one point per variant, step and load."""
    return [LoadPoint(tuple(same)) for same in group(steps, lambda one: (one.variant, one.step, one.load))]


def whole_points(steps: Sequence[WholeStep]) -> list[WholePoint]:
    """Return one point per variant and step."""
    return [WholePoint(tuple(same)) for same in group(steps, lambda one: (one.variant, one.step))]
