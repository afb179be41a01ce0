"""Copies of every load, each on data of its own: how throughput grows with their number, and which limits are kept."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.loads.points import LoadPoint, WholePoint
from stallmark.analysis.points import group
from stallmark.analysis.validity.service_level import LevelOutcome


@dataclass(frozen=True)
class LoadInCells:
    """A load in so many cells. `scaling`: T(k) · k₁ / (k · T(k₁)), 1 being linear from the fewest cells k₁ of the same
    users each; None where either is not known or in doubt."""

    load: str
    point: LoadPoint
    scaling: float | None


@dataclass(frozen=True)
class CellsStep:
    """All loads of a variant in so many cells. `row`: its number among the steps of so many cells, of which there are
    several where users are varied, too."""

    variant: str
    cells: int
    whole: WholePoint
    loads: list[LoadInCells]
    row: int = 0

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
        least, rows = min(map(_cells, same)), Counter[int]()
        fewest: dict[tuple[str, int], LoadPoint] = {}
        for step in group(sorted(same, key=_cells), lambda point: point.first.step):
            first, cells = step[0].first, _cells(step[0])
            row = rows[cells]
            rows[cells] += 1
            if cells == least:
                fewest |= {(point.first.load, row): point for point in step}
            over_all = next(w for w in whole if (w.first.variant, w.first.step) == (first.variant, first.step))
            loads = [LoadInCells(p.first.load, p, _scaling(fewest.get((p.first.load, row)), p)) for p in step]
            steps.append(CellsStep(first.variant, cells, over_all, loads, row))
    return steps


def _scaling(fewest: LoadPoint | None, point: LoadPoint) -> float | None:
    if fewest is None:
        return None
    before, now = fewest.rate, point.rate
    if not before or now is None or fewest.doubts or point.doubts:
        return None
    return now * _cells(fewest) / (_cells(point) * before)


def _cells(point: LoadPoint) -> int:
    return point.first.cells or 0
