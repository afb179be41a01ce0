"""Points of loads: the same load in the same step of the same variant; compared, alone and together, and in cells."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from stallmark.analysis.compare.claims import Claims, comparable, decide
from stallmark.analysis.compare.sides import ratio_of
from stallmark.analysis.compare.summary import Claim, Ratio, ReasonKind
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding, info
from stallmark.analysis.load_steps import LoadLevel, LoadsKind, LoadStep, WholeStep
from stallmark.analysis.metrics import METRICS, THROUGHPUT, Direction, Point, group, mean_of, points
from stallmark.analysis.run import RunSummary
from stallmark.analysis.service_level import LevelOutcome

# Points of loads: the same load in the same step of the same variant, its repeats together.

_WORST_FIRST = (LevelOutcome.NOT_MET, LevelOutcome.NOT_KNOWN, LevelOutcome.MEAN_ONLY, LevelOutcome.MET)


T = TypeVar("T")


@dataclass(frozen=True)
class _Repeats(Generic[T]):
    """Equal steps of several runs. Means are over the runs in which the figure is known."""

    runs: tuple[T, ...]

    @property
    def first(self) -> T:
        return self.runs[0]

    def mean(self, value: Callable[[T], float | None]) -> float | None:
        return mean_of([value(run) for run in self.runs])


class LoadPoint(_Repeats[LoadStep]):
    """A load in a step over its runs."""

    @property
    def rate(self) -> float | None:
        return self.mean(lambda run: run.rate)

    @property
    def level(self) -> LoadLevel | None:
        """Return the worst outcome of the runs."""
        levels = [run.level for run in self.runs if run.level]
        return min(levels, key=lambda level: _WORST_FIRST.index(level.outcome), default=None)

    @property
    def doubts(self) -> list[Finding]:
        return [doubt for run in self.runs for doubt in run.doubts]

    @property
    def storage_share(self) -> float | None:
        """Return the share of the response time that storage takes."""
        return self.mean(lambda run: run.budget.storage_share if run.budget else None)


class WholePoint(_Repeats[WholeStep]):
    """A step over its runs, all loads together."""


def load_points(steps: Sequence[LoadStep]) -> list[LoadPoint]:
    """Return one point per variant, step and load."""
    return [LoadPoint(tuple(same)) for same in group(steps, lambda step: (step.variant, step.step, step.load))]


def whole_points(steps: Sequence[WholeStep]) -> list[WholePoint]:
    """Return one point per variant and step."""
    return [WholePoint(tuple(same)) for same in group(steps, lambda step: (step.variant, step.step))]


# The statements that a report may make on a load in two variants.


class LoadClaims:
    """The claims on the throughput of a load in one step of any two variants.

    A load of users is checked by its own view. Another load is checked by its run, where reads per transaction may
    differ with the share of each load.
    """

    def __init__(self, runs: Sequence[RunSummary], views: Mapping[str, ExperimentSummary]):
        self._whole = Claims(runs), _points_by_step(runs)
        self._views = {
            name: (Claims(view.runs, view.comparison), _points_by_step(view.runs)) for name, view in views.items()
        }

    def claim(self, a: LoadPoint, b: LoadPoint) -> Claim:
        """Return the claim on B relative to A, the same load and step."""
        view = self._views.get(a.first.load)
        claims, points_by_step = view or self._whole
        steps = [points_by_step.get((point.first.variant, point.first.step)) for point in (a, b)]
        if steps[0] and steps[1]:
            claim = claims.claim(steps[0], steps[1])
            if view or any(reason.kind is not ReasonKind.READS_DIFFER for reason in claim.reasons):
                return claim
        rates_a, rates_b = ([run.rate for run in point.runs] for point in (a, b))
        return decide(THROUGHPUT, ratio_of("throughput", "", "higher", rates_a, rates_b, paired=False))

    def comparable_points(self, load_points: Sequence[LoadPoint]) -> list[LoadPoint]:
        """Return the first point and those that may be compared with it and with each other."""
        return comparable(load_points, self.claim)


def _points_by_step(runs: Sequence[RunSummary]) -> dict[tuple[str, str], Point]:
    steps = [step for run in runs for step in run.steps]
    return {(point.first.variant, point.first.step): point for point in points(steps)}


# Loads together against each of them alone: what the others cost it, in the runs of one variant.
#
# Both are steps of the same run, so they are pairs, and the run is the replicate as in every comparison.


@dataclass(frozen=True)
class Penalty:
    """A load next to the others compared with itself alone: together ÷ alone."""

    variant: str
    load: str
    step: str  # the step of all loads together
    primary: str | None
    open_loop: bool
    emulated: bool
    runs: int
    left_out: int  # runs omitted because of a doubt about either step
    doubtful: bool  # every run has a doubt, and the figures are from these runs
    rate: Ratio
    latency: Ratio


def penalties(load_points: Sequence[LoadPoint]) -> list[Penalty]:
    """Return the penalty of every load that also ran alone with the same number of users or streams, by variant and
    step."""
    alone = {
        (point.first.variant, point.first.load, point.first.count): point for point in load_points if point.first.alone
    }
    return [
        _penalty(before, point)
        for point in load_points
        if not point.first.alone and (before := alone.get((point.first.variant, point.first.load, point.first.count)))
    ]


def _penalty(alone: LoadPoint, together: LoadPoint) -> Penalty:
    by_run = {run.run: run for run in alone.runs}
    pairs = [(by_run[run.run], run) for run in together.runs if run.run in by_run]
    # Doubtful runs count only if there are no others, and the result is then marked.
    sound = [(a, b) for a, b in pairs if not a.doubts and not b.doubts]
    unit = {"users": "per s", "streams": "per h", "raw": "IOPS"}[together.first.kind]

    def ratio(title: str, unit: str, better: Direction, value: Callable[[LoadStep], float | None]) -> Ratio:
        a, b = ([value(pair[side]) for pair in sound or pairs] for side in (0, 1))
        return ratio_of(title, unit, better, a, b, paired=True)

    first = together.first
    return Penalty(
        variant=first.variant,
        load=first.load,
        step=first.step,
        primary=first.primary,
        open_loop=first.open_loop,
        emulated=any(run.emulated for run in together.runs),
        runs=len(sound or pairs),
        left_out=len(pairs) - len(sound),
        doubtful=not sound,
        rate=ratio("throughput", unit, "higher", lambda run: run.rate),
        latency=ratio("mean latency", "ms", "lower", lambda run: run.mean_ms),
    )


# Copies of every load, each on data of its own: how throughput grows with their number, and which limits are kept.


@dataclass(frozen=True)
class LoadInCells:
    """A load in a number of cells."""

    load: str
    point: LoadPoint
    scaling: float | None
    """T(k) · k₁ / (k · T(k₁)) with k cells, k₁ being the fewest with the same users each: 1 is linear. None if a rate
    is unknown or in doubt. Example: 100 per s in one cell and 180 in two is 0.9."""


@dataclass(frozen=True)
class CellsStep:
    """All loads of a variant in a number of cells."""

    variant: str
    cells: int
    whole: WholePoint
    loads: list[LoadInCells]
    row: int = 0  # number among the steps with equal cells: several if users are varied too

    @property
    def slo_met(self) -> bool | None:
        """Return True if every service level was met, or None if no level is set or one is unknown."""
        levels = [level.outcome for load in self.loads if (level := load.point.level)]
        if LevelOutcome.NOT_MET in levels:
            return False
        return None if not levels or LevelOutcome.NOT_KNOWN in levels else True


def cells_steps(load_points: Sequence[LoadPoint], whole: Sequence[WholePoint]) -> list[CellsStep]:
    """Return the steps of an experiment on cells, fewest first, by variant; empty for another experiment."""
    steps = []
    counted = [point for point in load_points if point.first.cells]
    for same in group(counted, lambda point: point.first.variant):
        least, rows = min(map(_cells, same)), Counter[int]()
        fewest: dict[tuple[str, int], LoadPoint] = {}
        for step in group(sorted(same, key=_cells), lambda point: point.first.step):
            first, cells = step[0].first, _cells(step[0])
            row = rows[cells]
            rows[cells] += 1
            # Scaling is relative to the fewest cells, row by row: users may vary within a number of cells.
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


MOST_VARIANTS = 3
"""The most variants that one sentence names; with more it names the two furthest apart."""


def penalty_findings(cost: Sequence[Penalty]) -> Iterator[Finding]:
    """Yield the cost that the loads impose on each other. Loads with a given rate are judged by their latency."""
    for step in group(cost, lambda penalty: penalty.step):
        # A doubtful load is named, but its ratio is not.
        sound = [penalty for penalty in step if not penalty.doubtful]
        compared = [
            (penalty, measure, claim.ratio, claim.verdict)
            for penalty in sound
            for measure, claim in [_penalty_claim(penalty)]
            if claim.ratio is not None
        ]
        by_variant = group(compared, lambda entry: entry[0].variant)
        if not by_variant:
            continue
        several = len(by_variant) > 1
        chosen = _extremes(
            by_variant,
            lambda entries: float(np.mean([_log_benefit(measure, ratio) for _, measure, ratio, _ in entries])),
        )
        yield info(
            LoadsKind.TOGETHER,
            step=step[0].step if len({penalty.step for penalty in cost}) > 1 else None,
            variants=[
                [
                    entries[0][0].variant if several else None,
                    [[penalty.load, measure, ratio, verdict] for penalty, measure, ratio, verdict in entries],
                ]
                for entries in chosen
            ],
            left_out=len(by_variant) - len(chosen),
            in_doubt=list(dict.fromkeys(penalty.load for penalty in step if penalty.doubtful)),
            fewest_runs=min(penalty.runs for penalty, *_ in compared),
        )


def _penalty_claim(penalty: Penalty) -> tuple[str, Claim]:
    """Return the claim on a load next to the others, on its latency if its rate is given."""
    if penalty.open_loop:
        return "latency", decide(METRICS["latency"], penalty.latency)
    return "rate", decide(THROUGHPUT, penalty.rate)


def _log_benefit(measure: str, ratio: float) -> float:
    """Return a ratio as a logarithm, with the sign that makes more better."""
    return float(np.log(ratio)) * (-1 if measure == "latency" else 1)


def _extremes(items: list[Any], value: Any) -> list[Any]:
    """Return all items if they are few, else the least and the most by `value`."""
    return items if len(items) <= MOST_VARIANTS else [min(items, key=value), max(items, key=value)]


def cells_findings(cells: Sequence[CellsStep]) -> Iterator[Finding]:
    by_variant = group(cells, lambda step: step.variant)
    for same in by_variant:
        first, last = same[0], same[-1]
        loads = [
            [load.load, load.scaling * last.cells / first.cells, load.scaling] for load in last.loads if load.scaling
        ]
        if last.cells > first.cells and loads:
            yield info(
                LoadsKind.CELLS,
                variant=same[0].variant if len(by_variant) > 1 else None,
                cells=[first.cells, last.cells],
                loads=loads,
                in_doubt=[load.load for load in last.loads if not load.scaling],
                fewest_runs=min(len(load.point.runs) for step in (first, last) for load in step.loads),
            )
