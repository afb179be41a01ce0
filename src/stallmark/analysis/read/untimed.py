"""Samples of PostgreSQL's I/O that were taken while it did not time its I/O, in a run that was timed otherwise.

`track_io_timing` can be turned off at any time. The counts go on then, and the times stand still.
"""

from collections.abc import Sequence

import numpy as np

from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.counters import Counters, lasting
from stallmark.analysis.read.sample_times import dated, numbers_of, sample_times
from stallmark.record.manifest.server import POSTGRESQL
from stallmark.record.reader import Record

TIMES = (("reads", "read_stall_ms"), ("writes", "write_stall_ms"))
"""Of Server I/O: each count with the time of what it counts."""
LOG_TIMES = (("writes", "write_ms"),)
"""Of the log's own view."""


def read_untimed(record: Record, table: str, times: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Return when samples without times were taken, by kind of file ("" without kinds), if others have them."""
    at = sample_times(record, table)
    if record.manifest.server.product != POSTGRESQL or at is None:
        return {}
    kinds = Codes()
    timed: set[int] = set()
    untimed: set[int] = set()  # kind × number of samples + index of the sample
    for t, batch in dated(record, table, ["kind", *(name for pair in times for name in pair)]):
        kind = kinds.of(batch, "kind")
        for count, time in times:
            counted, took = numbers_of(batch, count), numbers_of(batch, time)
            if counted is None or took is None:
                continue
            timed.update(np.unique(kind[~np.isnan(took)]).tolist())
            without = np.flatnonzero(~np.isnan(counted) & np.isnan(took))
            untimed.update(np.unique(kind[without] * len(at) + np.searchsorted(at, t[without])).tolist())
    names = kinds.names or [""]
    found = np.array(sorted(untimed), dtype=np.int64)
    return {names[kind]: at[found[found // len(at) == kind] % len(at)] for kind in timed & set(found // len(at))}


def untimed_spans(counters: Counters, untimed: np.ndarray, delay_s: float) -> np.ndarray:
    """Return which times between the samples of counters touch one without times."""
    i = np.flatnonzero(np.isin(counters.t, untimed - delay_s))
    found = np.zeros_like(counters.breaks)
    found[i[i > 0] - 1] = found[i[i < len(found)]] = True
    return lasting(found, counters.t + delay_s, delay_s)
