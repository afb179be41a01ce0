"""The values that the analysis returns for an experiment and its runs, with their units; `None` where nothing was
measured. Those of a step are in step_summary.py.

The report, the terminal table and `--json` all show these values and compute none of their own.
"""

from dataclasses import dataclass, field

import numpy as np

from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.finding import Finding
from stallmark.analysis.probe.drift import Drift
from stallmark.analysis.queries.summary import QueryComparison, QueryRunSummary
from stallmark.analysis.read.blocking import DeadlockShape
from stallmark.analysis.read.sample_times import ServerClock
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition
from stallmark.stats.correlation import Correlation


@dataclass(frozen=True)
class Series:
    """Per-second lines of one run for the charts; NaN where nothing is known. All arrays have equal length."""

    second: np.ndarray
    tps: np.ndarray
    read_ms: np.ndarray
    write_ms: np.ndarray
    read_stall_ms_per_s: np.ndarray
    users: np.ndarray
    latency_mean_ms: np.ndarray
    data_iops: np.ndarray
    data_mb_per_s: np.ndarray
    primary_tps: np.ndarray | None = None  # of the transaction whose rate is the result
    checkpoint_pages: np.ndarray | None = None  # written by checkpoints, of all databases; None where not counted
    background_pages: np.ndarray | None = None  # written by the background writer, for indirect checkpoints
    flash_share: np.ndarray | None = None  # of the data device's reads, answered by its flash; None without
    active_bytes: np.ndarray | None = None  # different extents touched since the run began; a bound where not counted
    active_minute_bytes: np.ndarray | None = None  # in the last full minute; None where it is not counted

    def line(self, name: str) -> np.ndarray:
        """Return a line by its name; NaN throughout where the run has no such line."""
        found = getattr(self, name)
        return np.full(len(self.second), np.nan) if found is None else found


@dataclass(frozen=True)
class ExternalCounter:
    """A counter measured by another tool. `t` and `values` hold its samples, seconds since the run started."""

    kind: str  # what it says of storage: "read_latency", "write_latency", "IOPS", "throughput", "queue", "cache_hits"
    name: str  # as its tool calls it
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    mean: float | None  # of the samples within measured intervals
    correlation: Correlation | None  # of its changes with those of TPS over the same intervals


@dataclass(frozen=True)
class ExternalSummary:
    """External measurements: a file that was attached to a run, and the clock of its figures."""

    name: str
    file: str
    format: str
    time_zone: str
    offset_s: float  # added to its times
    span: tuple[str, str]  # UTC, ISO 8601
    samples: int
    interval_s: float
    counters: list[ExternalCounter]  # at most six
    others: list[str]  # counters that are not drawn
    notes: list[str]  # what was left out of the file
    hint: Finding | None  # where another offset would fit clearly better


@dataclass(frozen=True)
class RunSummary:
    folder: str
    title: str  # "cap 5 %" or "cap 5 %, repeat 2"
    started: str  # UTC, ISO 8601
    manifest: Manifest
    incomplete_because: str | None
    steps: list[StepSummary]
    series: Series
    collectors_off: dict[str, str]  # collector title -> why it measured nothing
    collector_cost_share: float | None  # of one core
    growth_share: float | None  # of the database over the run
    conditions: list[Condition]
    deadlocks: list[DeadlockShape] = field(default_factory=list)  # most frequent first
    notes: list[Finding] = field(default_factory=list)  # what happened beside its figures
    clock: ServerClock | None = None  # by which its samples are dated
    external: list[ExternalSummary] = field(default_factory=list)
    queries: QueryRunSummary | None = None  # of a run of queries; its steps are its phases


@dataclass(frozen=True)
class Threshold:
    """A threshold of the scenario, as it was written, and one step: the value in the unit of the limit. `holds` is None
    where it was not measured, or the step is not to be believed."""

    text: str
    metric: str
    step: str  # its key
    value: float | None
    limit: float
    holds: bool | None


@dataclass(frozen=True)
class Question:
    """The question of one of several experiments, and its variants."""

    title: str
    answers: str
    variants: list[str]


@dataclass(frozen=True)
class ExperimentSummary:
    """The summary of an experiment, or of several together, with everything that the report shows."""

    scenario: str
    title: str
    answers: str
    emulated: bool  # any run on an emulated array
    axis: str  # what varies between the steps: "buffer_pool", "users", "device" or "variant"
    runs: list[RunSummary]
    answer: Finding | None = None  # the one finding above all others
    findings: list[Finding] = field(default_factory=list)  # most important first
    cautions: list[Finding] = field(default_factory=list)  # what the reader must not conclude
    queries: QueryComparison | None = None  # of runs of queries
    comparison: ComparisonSummary | None = None  # of variants that were repeated
    drifts: list[tuple[tuple[str, ...], Drift]] = field(default_factory=list)  # of raw storage, during or between runs
    thresholds: list[Threshold] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)  # of each, where there are several experiments

    @property
    def steps(self) -> list[StepSummary]:
        return [step for run in self.runs for step in run.steps]
