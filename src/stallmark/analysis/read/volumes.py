"""Windows' counters of the volumes under the server's files."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

from stallmark.analysis.read.interval import Interval
from stallmark.record.reader import Record

_COLUMNS = ("queue", "read_ms", "write_ms", "reads_per_s", "writes_per_s")


@dataclass(frozen=True)
class VolumeSummary:
    """One volume over the measured interval; times are weighted by the I/Os of each second, None where there
    were none."""

    volume: str
    queue: float
    read_ms: float | None
    write_ms: float | None
    reads_per_s: float
    writes_per_s: float


def volume_summaries(record: Record, interval: Interval) -> list[VolumeSummary]:
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for batch in record.batches("volumes", ["t", "volume", *_COLUMNS]):
        for row in batch.to_pylist():
            if interval.begin <= row["t"] < interval.end and all(row[name] is not None for name in _COLUMNS):
                rows[row["volume"]].append(row)
    return [_summary(volume, rows[volume]) for volume in sorted(rows)]


def _summary(volume: str, rows: list[dict[str, float]]) -> VolumeSummary:
    return VolumeSummary(
        volume,
        fmean(row["queue"] for row in rows),
        _weighted(rows, "read_ms", "reads_per_s"),
        _weighted(rows, "write_ms", "writes_per_s"),
        fmean(row["reads_per_s"] for row in rows),
        fmean(row["writes_per_s"] for row in rows),
    )


def _weighted(rows: list[dict[str, float]], time: str, rate: str) -> float | None:
    ios = sum(row[rate] for row in rows)
    return sum(row[time] * row[rate] for row in rows) / ios if ios else None
