"""The figures by which a cause is judged: means over runs of A and of B, with the interval of the difference."""

from collections.abc import Callable, Sequence

import numpy as np

from stallmark.analysis.bottleneck.summary import Source
from stallmark.analysis.cause.summary import ComparedFigure, Evidence
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.stats import student as statistics

Value = Callable[[StepSummary], float | None]

_COUNTED = (ComparedFigure.READS, ComparedFigure.WRITES, ComparedFigure.SYNCS)
"""Figures that rest on counts, which few samples make uncertain."""


def between(
    figure: ComparedFigure,
    value: Value,
    a: Sequence[StepSummary],
    b: Sequence[StepSummary],
    paired: bool,
    part: str | None = None,
    source: Source | None = None,
) -> Evidence | None:
    """Compare a figure; None where a run does not have it. Student's t is on the runs themselves, not their logarithms,
    because parts of a response time add up and may be 0. It is Welch's where they are no pairs."""
    values_a, values_b = ([value(step) for step in steps] for steps in (a, b))
    known_a, known_b = ([one for one in values if one is not None] for values in (values_a, values_b))
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
            low = high = known_b[0] - known_a[0]
        if figure in _COUNTED:
            off = max(step.storage.uncertainty for step in (*a, *b)) * (max(known_a) + max(known_b))
            low, high = low - off, high + off
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


def evidence(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Evidence]:
    """Compare I/O times of the device where it counts and as the server saw them, and what else may differ."""
    some: list[tuple[ComparedFigure, Source | None, Value]] = []
    for place, source in (("data_device", Source.DEVICE), ("data", Source.SERVER)):
        some.append((ComparedFigure.READ_TIME, source, _io(place, "read_ms")))
        some.append((ComparedFigure.WRITE_TIME, source, _io(place, "write_ms")))
    some += [
        (ComparedFigure.SYNC_TIME, Source.SERVER, _io("wal", "sync_ms")),
        (ComparedFigure.SYNC_TIME, Source.DEVICE, _io("wal_device", "sync_ms")),
        (ComparedFigure.READS, None, lambda step: step.storage.reads_per_transaction),
        (ComparedFigure.WRITES, None, _per_commit("data", "writes")),
        (ComparedFigure.SYNCS, None, _per_commit("wal", "syncs")),
        (ComparedFigure.CPU_BUSY, None, lambda step: step.server.cpu_busy_share),
        (ComparedFigure.CPU_TIME, None, _cpu_ms),
        (ComparedFigure.DEVICE_BUSY, None, lambda step: step.storage.busy_share),
    ]
    found = [between(figure, value, a, b, paired, source=source) for figure, source, value in some]
    return [one for one in found if one]


def _cpu_ms(step: StepSummary) -> float | None:
    cause = step.cause
    return cause.demands.cpu_ms if cause and cause.demands else None


def _io(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step.storage, place)
        found: float | None = getattr(counted, name) if counted else None
        return found

    return value


def _per_commit(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step.storage, place)
        found: int | None = getattr(counted, name) if counted else None
        tps = step.throughput.tps
        return found / counted.seconds / tps if counted and found is not None and tps else None

    return value
