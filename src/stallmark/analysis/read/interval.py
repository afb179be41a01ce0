"""Which seconds of a run are measured.

Counts of the driver and of the wait sampler are kept per whole second, so a measured interval is the whole
seconds inside [measure_s, end_s). Everything else (counters, CPU) is taken over exactly these seconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding


@dataclass(frozen=True)
class Cycles:
    """The checkpoint cycles of one measured interval. Seconds are of the run."""

    count: int  # whole ones
    begin_s: int  # of the first whole one, and the end of the last
    end_s: int
    measured_s: int  # how long was measured
    whole: bool  # the figures are over these cycles and nothing else
    mean_s: float | None  # of one cycle
    shown_by: str
    resolution_s: float
    finding: Finding


@dataclass(frozen=True)
class Interval:
    """Seconds begin ≤ s < end of step number `index` in the manifest; `cut` when fewer than planned."""

    index: int
    begin: int
    end: int
    planned_s: float | None
    cut: bool
    cycles: Cycles | None = None  # None where the server's checkpoints are not known

    @property
    def seconds(self) -> int:
        return self.end - self.begin

    def of(self, per_second: np.ndarray) -> np.ndarray:
        return per_second[self.begin : self.end]


def measured_intervals(manifest: Mapping[str, Any], recorded: int, cut: bool) -> list[Interval]:
    """The intervals of the steps that were reached. A step without one whole measured second is left out.

    `recorded` is the number of whole seconds there are, `cut` whether the run ended early.
    """
    intervals = []
    for index, step in enumerate(manifest.get("steps") or []):
        if step.get("measure_s") is None:
            continue
        begin = math.ceil(step["measure_s"])
        planned = step.get("end_s")
        whole = math.floor(planned) if planned is not None else recorded
        # A complete run in which nothing happened at the end still lasted: silence is a measurement.
        end = min(whole, recorded) if cut else whole
        if end > begin:
            planned_s = None if planned is None else planned - step["measure_s"]
            intervals.append(Interval(index, begin, end, planned_s, cut and (planned is None or end < whole)))
    return intervals
