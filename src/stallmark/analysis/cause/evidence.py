"""The figures by which a cause is judged, of A and of B: means over runs and the interval of their difference."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stallmark.analysis.cause.summary import Evidence
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.summary import StepSummary
from stallmark.stats import student as statistics

Value = Callable[[StepSummary], float | None]

READ_TIME = "read time"
READS = "physical reads per transaction"
WRITES = "writes of data files per transaction"
SYNCS = "syncs of the log per transaction"
CPU_TIME = "CPU time per transaction"
CPU_BUSY = "CPU"

_WEIGHTED = "stall ÷ number of I/Os over the measured interval"
_NUMBER = "the server’s count, checkpoints included, ÷ commits per second of the measured interval"


def between(
    name: str, unit: str, value: Value, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool, method: str
) -> Evidence | None:
    """None where a run does not have the figure. Student's t on the runs themselves, not their logarithms, because
    parts of a response time add up and may be 0; Welch's where they are no pairs."""
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
    return Evidence(
        name,
        unit,
        sum(known_a) / len(known_a),
        sum(known_b) / len(known_b),
        low,
        high,
        len(known_a),
        len(known_b),
        method,
    )


def io_evidence(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Evidence]:
    """I/O times of the device where it counts, and as the server saw them."""
    found = []
    for place, title in (("device_io", "device"), ("data_io", "server")):
        found += [
            between(f"{READ_TIME} ({title})", "ms per read", _io(place, "read_ms"), a, b, paired, _WEIGHTED),
            between(f"write time ({title})", "ms per write", _io(place, "write_ms"), a, b, paired, _WEIGHTED),
        ]
    found += [
        between("log sync time (server)", "ms per sync", _io("wal_io", "sync_ms"), a, b, paired, _WEIGHTED),
        between("log sync time (device)", "ms per sync", _io("wal_device_io", "sync_ms"), a, b, paired, _WEIGHTED),
        between(
            READS,
            "reads per commit",
            lambda step: step.reads_per_transaction,
            a,
            b,
            paired,
            "reads of data files ÷ commits over the same time",
        ),
        between(WRITES, "writes per commit", _per_commit("data_io", "writes"), a, b, paired, _NUMBER),
        between(SYNCS, "syncs per commit", _per_commit("wal_io", "syncs"), a, b, paired, _NUMBER),
    ]
    return [one for one in found if one]


def other_evidence(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Evidence]:
    """What else may differ."""
    return list(_others(a, b, paired))


def _others(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> Iterator[Evidence]:
    for found in (
        between(
            CPU_BUSY,
            "share busy",
            lambda step: step.cpu_busy_share,
            a,
            b,
            paired,
            "neither idle nor waiting for I/O, of all cores",
        ),
        between(
            CPU_TIME,
            "ms per transaction",
            lambda step: step.cause.demands.cpu_ms if step.cause and step.cause.demands else None,
            a,
            b,
            paired,
            "utilisation law: busy cores ÷ transactions per second, everything that runs on the machine",
        ),
        between(
            "device busy",
            "share of the time",
            lambda step: step.device_busy_share,
            a,
            b,
            paired,
            "as the device counted",
        ),
    ):
        if found:
            yield found


def _io(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step, place)
        found: float | None = getattr(counted, name) if counted else None
        return found

    return value


def _per_commit(place: str, name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        counted: IoSummary | None = getattr(step, place)
        found: int | None = getattr(counted, name) if counted else None
        return found / counted.seconds / step.tps if counted and found is not None and step.tps else None

    return value
