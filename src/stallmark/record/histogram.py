"""Latency histograms: the number of values in each bucket, from 1 µs to 1 h, with 3 significant digits.

The buckets are those of an HDR histogram. A histogram holds only the buckets in use, each with its distance from the
one before (the first: from bucket 0), and its count. In a record these are two columns of lists, which Parquet
compresses to 0.4 to 0.9 of the HDR codec's size. Encoding takes 0.1 to 0.5 of its CPU.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stallmark.record import Histogram

if TYPE_CHECKING:
    import pyarrow as pa

LOWEST_US, HIGHEST_US = 1, 3_600_000_000
_EXACT = 2048  # values below it have a bucket each; from there on every doubling has half as many: three digits
_DOUBLINGS = 21

VALUES_US = np.concatenate(
    [np.arange(_EXACT), *(np.arange(_EXACT // 2, _EXACT) << shift for shift in range(1, _DOUBLINGS + 1))]
).astype(np.int64)
"""The lowest value of every bucket."""
TOPS_US = np.append(VALUES_US[1:], _EXACT << _DOUBLINGS) - 1
"""The highest value of every bucket."""
BUCKETS = len(VALUES_US)

GAP, COUNT = np.dtype("<i2"), np.dtype("<i4")
_ROWS_AT_ONCE = 512
_FEW = 400  # values, up to which sorting them is quicker than counting all buckets


def encode(values_us: np.ndarray) -> Histogram:
    """Return the histogram of values in µs; those beyond the range count at its ends."""
    places = _places(values_us)
    if len(places) <= _FEW:
        return _encode(*np.unique(places, return_counts=True))
    return from_counts(np.bincount(places))


def count(values_us: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the counts of all BUCKETS for values in µs with their `counts`."""
    return np.bincount(_places(values_us), counts, minlength=BUCKETS).astype(np.int64)


def from_counts(counted: np.ndarray) -> Histogram:
    """Return the histogram with these counts of all BUCKETS."""
    used = np.flatnonzero(counted)
    return _encode(used, counted[used])


def _places(values_us: np.ndarray) -> np.ndarray:
    return np.searchsorted(VALUES_US, np.clip(values_us, LOWEST_US, HIGHEST_US), side="right") - 1


def _encode(places: np.ndarray, counts: np.ndarray) -> Histogram:
    gaps = places.astype(GAP)
    gaps[1:] -= gaps[:-1].copy()
    return Histogram(gaps.tobytes(), counts.astype(COUNT).tobytes())


def used(histogram: Histogram) -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets in use, as indices of VALUES_US, and the count of each."""
    return np.cumsum(np.frombuffer(histogram.gaps, GAP), dtype=np.int64), np.frombuffer(histogram.counts, COUNT)


def merge(parts: Sequence[Histogram]) -> Histogram:
    """Return the sum of several histograms."""
    if len(parts) == 1:
        return parts[0]
    places, counts = map(np.concatenate, zip(*map(used, parts), strict=True))
    # A load machine's report may hold anything: a negative bucket is refused where it is read.
    if len(places) > _FEW and places.min() >= 0:
        return from_counts(np.bincount(places, counts))
    together, which = np.unique(places, return_inverse=True)
    return _encode(together, np.bincount(which, counts, minlength=len(together)))


def columns(name: str, histogram: Histogram) -> dict[str, Any]:
    """Return a histogram as the two columns that a record's row has for it."""
    return {
        f"{name}_gaps": np.frombuffer(histogram.gaps, GAP),
        f"{name}_counts": np.frombuffer(histogram.counts, COUNT),
    }


def expand(gaps: "pa.ListArray", counts: "pa.ListArray") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the buckets in use of all histograms in two columns of a record: row, bucket and count of each.

    Raise ValueError when one is damaged.
    """
    lengths, places, counted = _flat(gaps, counts)
    return np.repeat(np.arange(len(lengths)), lengths), places, counted


def total(gaps: "pa.ListArray", counts: "pa.ListArray") -> np.ndarray:
    """Return the counts of all BUCKETS, summed over the histograms in two columns of a record.

    Raise ValueError when one is damaged.
    """
    buckets = np.zeros((1, BUCKETS), dtype=np.int64)
    add_to(buckets, np.zeros(len(gaps), dtype=np.int64), gaps, counts)
    return buckets[0]


def add_to(totals: np.ndarray, row: np.ndarray, gaps: "pa.ListArray", counts: "pa.ListArray") -> None:
    """Add the histograms in two columns of a record to the counts of all BUCKETS in `totals`, each to a `row` of
    `totals`. Raise ValueError if one is damaged."""
    lengths, places, counted = _flat(gaps, counts)
    places += np.repeat(row * BUCKETS, lengths)
    # Cast first, because this is ten times as slow where types differ.
    np.add.at(totals.reshape(-1), places, counted.astype(totals.dtype))


def without_service(rows: "pa.Table") -> "pa.Table":
    """Return transactions with `service_gaps` as the distance of each service time from the latency of its rank, in
    buckets, and no `service_counts`. Both differ little, so it takes half the space. Rows stay as they are if many
    times share a bucket, or if histograms do not fit together.
    """
    import pyarrow as pa

    pieces = []
    # Chunks of this size fit into a processor's cache.
    for piece in rows.combine_chunks().to_batches(_ROWS_AT_ONCE):
        if (distances := _distances(piece)) is None:
            return rows
        pieces.append(_replaced(piece, distances, pa.nulls(len(piece), piece.schema.field("service_counts").type)))
    return pa.Table.from_batches(pieces, rows.schema)


def _distances(rows: "pa.RecordBatch") -> "pa.ListArray | None":
    """Return the distances of the service times from the latencies; None if rows are to stay as they are."""
    histograms = [rows.column(f"{name}_{part}") for name in ("latency", "service") for part in ("gaps", "counts")]
    # Unknown times must not come back as none.
    if any(part.null_count for part in histograms):
        return None
    try:
        lengths, latency, times = _flat(*histograms[:2])
        own_lengths, service, own_times = _flat(*histograms[2:])
    except ValueError:
        return None
    rising = np.diff(service, prepend=-1) > 0
    rising[(np.cumsum(own_lengths) - own_lengths)[own_lengths > 0]] = True
    if not rising.all() or min(times.min(initial=1), own_times.min(initial=1)) < 1:
        return None
    totals = _sums(own_times, own_lengths)
    if totals.sum() > 2 * len(service) or not np.array_equal(totals, _sums(times, lengths)):
        return None
    below = np.repeat(latency.astype(GAP), times) - np.repeat(service.astype(GAP), own_times)
    return _lists(below, totals, histograms[2].type)


def with_service(rows: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return transactions with the histograms of service time that `without_service` left out. Damaged rows stay as
    they are: a reader refuses them for the counts that they lack."""
    distances, none = rows.column("service_gaps"), rows.column("service_counts")
    if not none.null_count:
        return rows
    try:
        lengths, latency, times = _flat(rows.column("latency_gaps"), rows.column("latency_counts"))
    except ValueError:
        return rows
    totals, below = distances.value_lengths().fill_null(0).to_numpy(), distances.flatten()
    fit = times.min(initial=1) > 0 and np.array_equal(totals, _sums(times, lengths))
    if none.null_count < len(rows) or below.null_count or not fit:
        return rows
    service = np.repeat(latency, times) - below.to_numpy()
    row = np.repeat(np.arange(len(totals)), totals)
    begins = np.diff(row, prepend=-1) > 0
    used = np.flatnonzero(begins | (np.diff(service, prepend=0) != 0))
    gaps = np.diff(service[used], prepend=0)
    gaps[begins[used]] = service[begins]
    lengths = np.bincount(row[used], minlength=len(totals))
    counts = _lists(np.diff(used, append=len(service)).astype(COUNT), lengths, none.type)
    return _replaced(rows, _lists(gaps.astype(GAP), lengths, distances.type), counts)


def _replaced(rows: "pa.RecordBatch", gaps: "pa.ListArray", counts: "pa.Array") -> "pa.RecordBatch":
    for name, values in (("service_gaps", gaps), ("service_counts", counts)):
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
    return rows


def _lists(values: np.ndarray, lengths: np.ndarray, kind: "pa.DataType") -> "pa.ListArray":
    import pyarrow as pa

    return pa.ListArray.from_arrays(np.append(0, np.cumsum(lengths)).astype(np.int32), pa.array(values), kind)


def _sums(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the sum of each list of values."""
    ends = np.cumsum(lengths)
    upto = np.append(0, np.cumsum(values, dtype=np.int64))
    return upto[ends] - upto[ends - lengths]


def _flat(gaps: "pa.ListArray", counts: "pa.ListArray") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of buckets that each histogram uses, and the bucket and count of each used one."""
    lengths = gaps.value_lengths().fill_null(0).to_numpy()
    if gaps.flatten().null_count or counts.flatten().null_count:
        raise ValueError("a latency histogram is damaged: it has buckets without a value")
    if not np.array_equal(lengths, counts.value_lengths().fill_null(0).to_numpy()):
        raise ValueError("a latency histogram is damaged: it has more buckets than counts, or fewer")
    places = np.cumsum(gaps.flatten().to_numpy(), dtype=np.int64)
    ends = np.cumsum(lengths)
    before = np.append(0, places)[ends - lengths]
    places -= np.repeat(before, lengths)
    if len(places) and not 0 <= places.min() <= places.max() < BUCKETS:
        raise ValueError("a latency histogram is damaged: it has a bucket beyond 1 hour")
    return lengths, places, counts.flatten().to_numpy()
