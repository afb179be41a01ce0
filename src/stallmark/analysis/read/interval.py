"""The seconds of a run that are measured.

Counts of the driver and of the wait sampler are kept per whole second. So a measured interval is the whole seconds
inside [measure_s, end_s). Everything else (counters, CPU) is taken over exactly these seconds.

The kinds of findings made while a record is read.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stallmark.analysis.finding import Finding, Kind
from stallmark.record.manifest import Manifest


class ReadKind(Kind):
    """Faults of the record, and findings that follow from it directly."""

    HISTOGRAM_FULL = "histogram_full"
    HISTOGRAM_LOST_EVENTS = "histogram_lost_events"
    HISTOGRAM_UNIT_UNKNOWN = "histogram_unit_unknown"
    CLOCK_JUMPED = "clock_jumped"
    ERROR_BURST = "error_burst"
    ACTIVE_FITS_DRAM = "active_set_fits_dram"
    ACTIVE_FITS_FLASH = "active_set_fits_flash"
    DATED_ROUGHLY = "dated_roughly"
    FEW_SAMPLES = "few_samples"
    NOT_READ = "not_read_for_a_while"
    QUERY_STORE_STOPPED = "query_store_stopped"
    QUERY_STORE_CHANGED = "query_store_capture_changed"
    QUERY_STORE_DROPPED = "query_store_dropped_counts"
    PLANS_LEFT = "plans_left_the_cache"
    COUNTERS_RESTARTED = "counters_restarted"
    QUERY_FAILED = "query_failed"
    PHASE_CUT = "query_phase_cut"


class CyclesBy(StrEnum):
    """The counts by which checkpoints are recognised."""

    COUNT = "count_of_checkpoints"
    BURSTS = "bursts_of_pages_written"


@dataclass(frozen=True)
class Cycles:
    """The checkpoint cycles of one measured interval. Seconds are of the run."""

    count: int  # whole ones
    checkpoints: int  # number counted in the measured interval, at their ends or beginnings
    begin_s: int  # begin of the first complete cycle, and end of the last
    end_s: int
    measured_s: int  # how long was measured
    whole: bool  # the figures are over these cycles and nothing else
    mean_s: float | None  # mean length of a cycle
    shown_by: CyclesBy
    resolution_s: float
    finding: Finding


Span = tuple[int, int]
"""The first second of an interval, and the one after its last: the same interval may have one number in a run, and
another in the record of a load that rested in some steps."""


@dataclass(frozen=True)
class Interval:
    """The measured seconds begin ≤ s < end of a step."""

    index: int  # number of the step in the manifest
    begin: int
    end: int
    planned_s: float
    cut: bool  # fewer seconds than planned
    cycles: Cycles | None = None  # None if the server's checkpoints are unknown

    @property
    def seconds(self) -> int:
        return self.end - self.begin

    @property
    def span(self) -> Span:
        return self.begin, self.end

    def select(self, per_second: np.ndarray) -> np.ndarray:
        return per_second[self.begin : self.end]


def measured_intervals(manifest: Manifest, recorded: int, cut: bool) -> list[Interval]:
    """Return the intervals of the steps that were reached. A step without one whole measured second is left out.

    `recorded` is the number of whole seconds there are, `cut` whether the run ended early.
    """
    intervals = []
    for index, step in enumerate(manifest.steps):
        begin, whole = math.ceil(step.measure_s), math.floor(step.end_s)
        # A complete run in which nothing happened at the end still lasted: silence is a measurement.
        end = min(whole, recorded) if cut else whole
        if end > begin:
            intervals.append(Interval(index, begin, end, step.end_s - step.measure_s, cut and end < whole))
    return intervals
