"""The values of a ceiling, from the levels that a search tried. The replicate is the run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stallmark.analysis.finding import Finding
from stallmark.analysis.points import group
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest.workload import LevelSeen
from stallmark.stats import student


@dataclass(frozen=True)
class Level:
    """One level that was tried: what the search saw of it, and the step in which it ran."""

    seen: LevelSeen
    step: StepSummary


@dataclass(frozen=True)
class Ceiling:
    """The ceiling of one run. `holds` is None where no level held, `breaks` where none was seen to break."""

    variant: str
    repeat: int
    of: Literal["users", "rate", "load"]
    low: float  # asked
    high: float
    tolerance: float
    outcome: Literal["found", "at_least", "none", "unconfirmed"] | None  # None: the run ended before
    holds: float | None
    breaks: float | None
    levels: list[Level]

    @property
    def middle(self) -> float | None:
        """Return the ceiling as one number; None where it is not between two levels."""
        if self.outcome != "found" or self.holds is None or self.breaks is None:
            return None
        return math.sqrt(self.holds * self.breaks)

    def steps_at(self, level: float | None) -> list[StepSummary]:
        """Return the steps of a level, in the order in which it was tried."""
        return [one.step for one in self.levels if one.seen.level == level]

    @property
    def limit_step(self) -> StepSummary | None:
        """Return the step that shows what ends first: the last of the lowest level that broke."""
        return next(reversed(self.steps_at(self.breaks)), None)

    @property
    def limit(self) -> Finding | None:
        """Return the verdict on the device at the lowest level that broke; None if its steps do not agree."""
        verdicts = [step.bottleneck.device_verdict for step in self.steps_at(self.breaks)]
        kinds = {(one.kind, one.facts.get("device")) if one else None for one in verdicts}
        return verdicts[-1] if len(kinds) == 1 else None

    @property
    def driver_bound(self) -> bool:
        """Return whether the driver was the bottleneck in a step of the lowest level that broke."""
        return any(step.validity.driver_bound for step in self.steps_at(self.breaks))

    @property
    def tps(self) -> float | None:
        """Return the transactions per second of the highest level that held, of all its steps; None where none did."""
        steps = self.steps_at(self.holds)
        return sum(step.result_tps for step in steps) / len(steps) if steps else None


def ceilings(runs: Sequence[RunSummary]) -> list[Ceiling]:
    """Return the ceiling of every run that searched for one."""
    return [found for run in runs for found in _of_run(run)]


def by_variant(found: Sequence[Ceiling]) -> list[list[Ceiling]]:
    return group(found, lambda one: one.variant)


def of_repeats(levels: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the ceiling over repeats, of which each held one level and broke the next: the geometric mean, with its
    interval by Student's t of the runs. No run knows its ceiling better than its two levels."""
    logs = np.log([math.sqrt(holds * breaks) for holds, breaks in levels])
    ends = [float(np.exp(end)) for end in student.paired(np.zeros(len(logs)), logs).interval()] if len(logs) > 1 else []
    low, high = min([*ends, *(holds for holds, _ in levels)]), max([*ends, *(breaks for _, breaks in levels)])
    return float(np.exp(logs.mean())), low, high


def _of_run(run: RunSummary) -> Iterator[Ceiling]:
    if (search := run.manifest.search) is None:
        return
    named = {step.name: step.searched for step in run.manifest.steps if step.searched}
    yield Ceiling(
        variant=run.steps[0].variant if run.steps else run.manifest.variant.name,
        repeat=run.manifest.repeat,
        of=search.of,
        low=search.low,
        high=search.high,
        tolerance=search.tolerance,
        outcome=search.outcome,
        holds=search.holds,
        breaks=search.breaks,
        levels=[Level(seen, step) for step in run.steps if (seen := named.get(step.step))],
    )
