"""The evidence of a cause: figures of both sides, and the split of I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.metrics import complete_mean, sampling_uncertainty
from stallmark.analysis.prediction import ModelTest
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.step_summary import STORAGE, Source, StepSummary
from stallmark.stats import inference as statistics
from stallmark.stats.thresholds import RARE

# The cause of a difference, as the report, the terminal and `--json` show it: why B differs from A.


class Storage(StrEnum):
    """The part of storage in the difference of two sides."""

    CAUSE = "is_the_cause"
    NOT_THE_CAUSE = "is_not_the_cause"
    ONE_OF_SEVERAL = "one_of_several"
    NOT_KNOWN = "not_known"


class CauseKind(Kind):
    """Causes of a difference, and what to be careful about."""

    NOT_LOOKED_AT = "cause_not_known"
    UNCHANGED = "response_time_unchanged"
    LITTLE_IO = "response_time_unchanged_with_little_io"
    NOT_SPLIT = "cause_not_split"
    NOT_DIVIDED = "cause_not_divided"
    """The change is in I/O above the device, or in waiting for a CPU."""
    STORAGE = "storage_is_the_cause"
    NOT_STORAGE = "storage_is_not_the_cause"
    ONE_OF_SEVERAL = "storage_is_one_cause"
    UNCERTAIN = "no_single_part_shown"
    NO_DEVICE = "device_counters_unknown"
    LAW_FAILED = "law_does_not_close"
    LOCKS = "locks_in_the_change"
    CPUS_BUSY = "cpus_busy_otherwise_in_a_side"
    """Because of that the side's device was not judged, and an I/O may have waited for a CPU."""


class ChangeKind(Kind):
    """Changes between two sides; facts are of A and B."""

    READ_TIME = "read_time_changed"
    ABOVE = "io_above_device_changed"
    PART = "part_changed"
    CPU_TIME = "cpu_time_changed"
    NUMBER = "number_changed"
    WAITED_FOR = "number_waited_for_changed"
    LITTLE_IO = "io_hardly_changed"


class ComparedFigure(StrEnum):
    """Metrics of two sides that are compared to find a cause."""

    RESPONSE = "response_time"
    PART = "part_of_the_response_time"
    ABOVE = "part_above_the_device"
    READ_TIME = "read_time"
    WRITE_TIME = "write_time"
    SYNC_TIME = "log_sync_time"
    READS = "physical_reads_per_transaction"
    WRITES = "writes_of_data_files_per_transaction"
    SYNCS = "syncs_of_the_log_per_transaction"
    CPU_BUSY = "CPU"
    CPU_TIME = "CPU_time_per_transaction"
    DEVICE_BUSY = "device_busy"


@dataclass(frozen=True)
class Evidence:
    """One metric for A and for B: means over runs."""

    figure: ComparedFigure
    part: str | None  # one of PARTS
    source: Source | None  # None if the metric is not on I/O
    a: float
    b: float
    low: float | None  # 95 % interval of B − A, over runs; None with fewer than two runs on a side
    high: float | None
    runs_a: int
    runs_b: int
    share: float | None = None  # part of the change in response time

    @property
    def change(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Cause:
    """The reason why B differs from A."""

    storage: Storage
    finding: Finding
    parts: list[Evidence] = field(default_factory=list)  # parts of the response time, ms per transaction
    evidence: list[Evidence] = field(default_factory=list)  # I/O, CPU and further metrics
    predictions: list["ModelTest"] = field(default_factory=list)
    cautions: list[Finding] = field(default_factory=list)


# The figures by which a cause is judged: means over runs of A and of B, with the interval of the difference.

Value = Callable[[StepSummary], float | None]

_FROM_COUNTS = (ComparedFigure.READS, ComparedFigure.WRITES, ComparedFigure.SYNCS)
"""Metrics computed from counts, which few samples make uncertain."""


def compare_figure(
    figure: ComparedFigure,
    value: Value,
    a: Sequence[StepSummary],
    b: Sequence[StepSummary],
    paired: bool,
    part: str | None = None,
    source: Source | None = None,
) -> Evidence | None:
    """Compare a metric; return None if a run does not have it.

    Student's t is on the runs themselves, not on their logarithms, because parts of a response time add up and may be
    0. Welch's test is used if the runs are not pairs.
    """
    values_a, values_b = ([value(step) for step in steps] for steps in (a, b))
    known_a, known_b = ([value for value in values if value is not None] for values in (values_a, values_b))
    if not known_a or not known_b or len(known_a) < len(values_a) or len(known_b) < len(values_b):
        return None
    low = high = None
    if min(len(known_a), len(known_b)) >= 2:
        paired = paired and len(known_a) == len(known_b)
        both = np.array(known_a), np.array(known_b)
        if np.ptp(both[0]) or np.ptp(both[1]):
            student = (statistics.paired if paired else statistics.welch)(*both)
            low, high = (float(end) for end in student.interval())
        else:
            # Equal runs on both sides have no variance to test by.
            low = high = known_b[0] - known_a[0]
        if figure in _FROM_COUNTS:
            uncertainty = max(step.storage.uncertainty for step in (*a, *b)) * (max(known_a) + max(known_b))
            low, high = low - uncertainty, high + uncertainty
    return Evidence(
        figure,
        part,
        source,
        sum(known_a) / len(known_a),
        sum(known_b) / len(known_b),
        low,
        high,
        len(known_a),
        len(known_b),
    )


def gather_evidence(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Evidence]:
    """Compare I/O times of the device if it counts them and as the server saw them, and other metrics that may
    differ."""
    figures: list[tuple[ComparedFigure, Source | None, Value]] = []
    for place, source in (("data_device", Source.DEVICE), ("data", Source.SERVER)):
        figures.append((ComparedFigure.READ_TIME, source, _io_metric(place, "read_ms")))
        figures.append((ComparedFigure.WRITE_TIME, source, _io_metric(place, "write_ms")))
    figures += [
        (ComparedFigure.SYNC_TIME, Source.SERVER, _io_metric("wal", "sync_ms")),
        (ComparedFigure.SYNC_TIME, Source.DEVICE, _io_metric("wal_device", "sync_ms")),
        (ComparedFigure.READS, None, lambda step: step.storage.reads_per_transaction),
        (ComparedFigure.WRITES, None, _per_commit("data", "writes")),
        (ComparedFigure.SYNCS, None, _per_commit("wal", "syncs")),
        (ComparedFigure.CPU_BUSY, None, lambda step: step.server.cpu_busy_share),
        (ComparedFigure.CPU_TIME, None, lambda step: step.demands.cpu_ms if step.demands else None),
        (ComparedFigure.DEVICE_BUSY, None, lambda step: step.storage.busy_share),
    ]
    compared = [compare_figure(figure, value, a, b, paired, source=source) for figure, source, value in figures]
    return [figure for figure in compared if figure]


def _io_metric(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step.storage, place)
        metric: float | None = getattr(counted, name) if counted else None
        return metric

    return value


def _per_commit(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step.storage, place)
        count: int | None = getattr(counted, name) if counted else None
        tps = step.throughput.tps
        return count / counted.seconds / tps if counted and count is not None and tps else None

    return value


# The split of I/O in a change: the part from slower single I/Os, and the part from another number of I/Os.
#
# A part is number · time, and Δ(number · time) = Δnumber · mean time + Δtime · mean number. Only the second comes from
# the device: a larger pool needs fewer reads and evicts fewer dirty pages, another load commits more or less often.


@dataclass(frozen=True)
class Split:
    """Shares of the change in response time, by part of STORAGE."""

    device: Mapping[str, float]  # share from slower or faster single I/Os
    number: Mapping[str, float]  # share from more or fewer I/Os
    unknown: float = 0.0  # share of parts whose I/Os were not counted or timed
    undivided: float = 0.0  # above the device or waiting for a CPU

    @property
    def by_device(self) -> float:
        return sum(self.device.values())

    @property
    def by_number(self) -> float:
        return sum(self.number.values())


def split_change(a: Sequence[StepSummary], b: Sequence[StepSummary], parts: Sequence[Evidence], change: float) -> Split:
    """Split a `change` in response time that is not 0."""
    by_name = {part.part: part for part in parts}
    device, number, unknown = dict.fromkeys(STORAGE, 0.0), dict.fromkeys(STORAGE, 0.0), 0.0
    for name in STORAGE:
        part = by_name.get(name)
        # No session was seen in this part on either side.
        if part is None:
            continue
        device_ms = _device_ms_of_reads(a, b, part) if name == "read" else _device_ms_by_single_ios(name, a, b, part)
        if device_ms is None:
            unknown += part.change / change
        else:
            device[name], number[name] = device_ms / change, (part.change - device_ms) / change
    undivided = by_name["unknown"].change / change if "unknown" in by_name else 0.0
    return Split(device, number, unknown, undivided)


def _device_ms_of_reads(a: Sequence[StepSummary], b: Sequence[StepSummary], part: Evidence) -> float | None:
    """Return the device's part in ms, from the number of reads per transaction, all of which a session waits for, or
    None if that number is unknown.

    If one side barely reads, samples of its sessions do not show how long a read takes. Then the server's time of
    single reads is used.
    """
    before, after = (complete_mean([step.storage.reads_per_transaction for step in side]) for side in (a, b))
    if before is None or after is None:
        return None
    if min(before, after) < RARE * max(before, after) or not before:
        return _device_ms_by_single_ios("read", a, b, part)
    if abs(after - before) <= before * sampling_uncertainty(
        a, b
    ):  # the counts may be equal, so all of the change is time
        return part.change
    return part.change - (after - before) * (part.a / before + part.b / after) / 2


def _device_ms_by_single_ios(
    name: str, a: Sequence[StepSummary], b: Sequence[StepSummary], part: Evidence
) -> float | None:
    """Return the device's part in ms, by the time of single I/Os, or None if they were not timed.

    The number of I/Os is the time waited ÷ the time of one. The server's counts include more: a checkpoint writes pages
    that evictions did not, and one sync of the log ends the waiting of many sessions. The result is never more than the
    change of the part. It is 0 if the time of I/Os changed in the other direction, or one side has no such I/O.
    """
    separate = all(step.storage.data_device and step.storage.wal_device for step in (*a, *b))
    separate = separate and not any(step.budget and step.budget.is_above(name) for step in (*a, *b))
    sides = [[_single_io_ms(name, step, separate) for step in side] for side in (a, b)]
    # A side without such I/Os has no time per I/O: the change is their number.
    if not all(any(counted for counted, _ in side) for side in sides):
        return 0.0
    before, after = (complete_mean([ms for counted, ms in side if counted]) for side in sides)
    if before is None or after is None or not (before or after):
        return None
    numbers = [ms / single for ms, single in ((part.a, before), (part.b, after)) if single]
    rare = min(numbers) < RARE * max(numbers)
    device_ms = (after - before) * (min(numbers) if rare else sum(numbers) / len(numbers))
    return max(0.0, min(device_ms, part.change)) if part.change > 0 else min(0.0, max(device_ms, part.change))


def _single_io_ms(name: str, step: StepSummary, separate: bool) -> tuple[bool, float | None]:
    """Return True if any such I/O happened, and the ms of a single I/O.

    I/O that was not counted is assumed to exist. A log I/O is one sync with its writes, or one write without syncs.
    Writes are timed by their device if data files and log are counted `separate`, as the part is the device's; else by
    the server, which also times the layers above the device.
    """
    if name == "log":
        log = step.storage.wal_device if separate else step.storage.wal
        return (bool(log.syncs or log.writes), _flush_ms(log)) if log else (True, None)
    if name == "read":
        return (bool(step.storage.data.reads), step.storage.data.read_ms) if step.storage.data else (True, None)
    data = step.storage.data_device if separate else step.storage.data
    return (bool(data.writes), data.write_ms) if data else (True, None)


def _flush_ms(log: IoSummary) -> float | None:
    if (log.write_ms is None and log.sync_ms is None) or not (log.syncs or log.writes):
        return None
    total_ms = log.writes * (log.write_ms or 0.0) + (log.syncs or 0) * (log.sync_ms or 0.0)
    return total_ms / (log.syncs or log.writes)
