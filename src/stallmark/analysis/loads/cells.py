"""Copies of every load, each on data of its own: how throughput grows with their number, and which limits are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.loads.points import LoadPoint, WholePoint
from stallmark.analysis.points import group
from stallmark.analysis.validity.service_level import LevelOutcome


@dataclass(frozen=True)
class LoadInCells:
    """A load in so many cells. `scaling`: T(k) · k₁ / (k · T(k₁)), 1 being linear from the fewest cells k₁; None where
    either is not known or in doubt."""

    load: str
    point: LoadPoint
    scaling: float | None


@dataclass(frozen=True)
class CellsStep:
    """All loads of a variant in so many cells."""

    variant: str
    cells: int
    whole: WholePoint
    loads: list[LoadInCells]

    @property
    def met(self) -> bool | None:
        """Tell whether no service level was broken; None where there is none, or nothing is known of one."""
        levels = [level.outcome for one in self.loads if (level := one.point.level)]
        if LevelOutcome.NOT_MET in levels:
            return False
        return None if not levels or LevelOutcome.NOT_KNOWN in levels else True


def cells_steps(found: Sequence[LoadPoint], whole: Sequence[WholePoint]) -> list[CellsStep]:
    """Return the steps of an experiment on cells, fewest first, by variant; none of another experiment."""
    steps = []
    counted = [point for point in found if point.first.cells]
    for same in group(counted, lambda point: point.first.variant):
        fewest = {point.first.load: point for point in reversed(sorted(same, key=_cells))}
        for step in group(sorted(same, key=_cells), lambda point: point.first.step):
            first = step[0].first
            over_all = next(w for w in whole if (w.first.variant, w.first.step) == (first.variant, first.step))
            loads = [LoadInCells(p.first.load, p, _scaling(fewest[p.first.load], p)) for p in step]
            steps.append(CellsStep(first.variant, _cells(step[0]), over_all, loads))
    return steps


def _scaling(fewest: LoadPoint, point: LoadPoint) -> float | None:
    before, now = fewest.rate, point.rate
    if not before or now is None or fewest.doubts or point.doubts:
        return None
    return now * _cells(fewest) / (_cells(point) * before)


def _cells(point: LoadPoint) -> int:
    return point.first.cells or 0
