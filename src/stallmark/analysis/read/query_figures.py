"""The figures of a power and a throughput run, by the formulas of TPC-H 2.17.3 (clause 5.4). They are derived: the
data, the refresh sets and the rules of a run are not audited, so they are not TPC results and must not be called
QphH."""

import math
from collections.abc import Sequence
from statistics import geometric_mean

SHORTEST_S = 0.1
WIDEST = 1000.0
QUERY_COUNT = 22


def power_metric(factor: float, queries_s: Sequence[float], refreshes_s: Sequence[float] = ()) -> float:
    """Return queries per hour, by the geometric mean of 22 queries and the refresh functions (none: of the queries
    alone), times the scale factor. Raise ValueError for other than 22 queries."""
    if len(queries_s) != QUERY_COUNT:
        raise ValueError(f"{len(queries_s)} queries, not {QUERY_COUNT}")
    counted = counted_s(queries_s)
    return 3600 * factor / geometric_mean([*counted, *map(rounded, refreshes_s)])


def throughput_metric(factor: float, streams: int, elapsed_s: float) -> float:
    """Return queries per hour of all streams together, times the scale factor. `elapsed_s`: from the start of the first
    stream to the end of the last, that of the refreshes among them."""
    return streams * QUERY_COUNT * 3600 / rounded(elapsed_s) * factor


def composite_metric(power: float, throughput: float) -> float:
    return math.sqrt(power * throughput)


def counted_s(queries_s: Sequence[float]) -> list[float]:
    """Return run times as a power run counts them: one more than a thousand times faster than the slowest counts as
    a thousandth."""
    least = max(map(rounded, queries_s)) / WIDEST
    return [max(rounded(seconds), least) for seconds in queries_s]


def rounded(seconds: float) -> float:
    """Round to tenths of a second, and never less than one."""
    return max(SHORTEST_S, round(seconds, 1))
