"""A check of the server's clock: did it run evenly with ours while a step was measured?"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stallmark.analysis.finding import Finding, invalid
from stallmark.analysis.read.interval import Interval, Span
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.sample_times import numbers_of
from stallmark.record.reader import Record
from stallmark.stats.thresholds import CLOCK_JUMP_S

_TABLES = ("wal", "checkpoints", "server_counters", "database", "server_io")
"""Any that holds the server's time will do; those with few rows for a sample first."""

SAMPLES = 5


def clock_findings(record: Record, intervals: Sequence[Interval]) -> dict[Span, Finding]:
    """Return what is wrong with the clock, by the interval; nothing where there is no server time.

    Samples carry the driver's monotonic time and the server's time of day, and both must advance alike. A jump by more
    than CLOCK_JUMP_S means that a machine stood still or was moved. Then the rates of these seconds are no rates. One
    late sample is no jump: medians of SAMPLES are compared.
    """
    if (found := _clocks(record)) is None:
        return {}
    return dict(_jumps(*found, intervals))


def _jumps(t: np.ndarray, server: np.ndarray, intervals: Sequence[Interval]) -> Iterator[tuple[Span, Finding]]:
    for interval in intervals:
        offset = (server - t)[(t >= interval.begin) & (t <= interval.end)]
        if len(offset) < 2 * SAMPLES:
            continue
        medians = np.median(sliding_window_view(offset, SAMPLES), axis=1)
        jumps = medians[SAMPLES:] - medians[:-SAMPLES]
        worst = float(jumps[np.argmax(np.abs(jumps))])
        if abs(worst) > CLOCK_JUMP_S:
            yield interval.span, invalid(ReadKind.CLOCK_JUMPED, jump_s=worst)


def _clocks(record: Record) -> tuple[np.ndarray, np.ndarray] | None:
    for name in _TABLES:
        samples, rows, last = [], 0, -np.inf
        for batch in record.batches(name, ["t", "server_time"]):
            t, server = (numbers_of(batch, column) for column in ("t", "server_time"))
            if t is not None and server is not None and len(t):
                first = np.isfinite(server) & (np.diff(t, prepend=last) > 0)
                samples.append((t[first], server[first]))
                rows, last = rows + len(t), t[-1]
        if rows > 1:
            t, server = (np.concatenate(column) for column in zip(*samples, strict=True))
            return t, server
    return None
