"""Latency histograms: the buckets are the HDR histogram's, and nothing is lost from values to a record and back."""

import numpy as np
import pyarrow as pa
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest

from stallmark.record import histogram as hdr
from stallmark.record.reader import Record
from stallmark.record.schema import TRANSACTIONS
from stallmark.record.writer import RecordWriter

LATENCIES = st.lists(st.integers(0, hdr.HIGHEST_US) | st.integers(1, 3000), max_size=40)
LISTS = {"gaps": pa.list_(pa.int16()), "counts": pa.list_(pa.int32())}


def encoded(values: list[int], times: int = 1) -> hdr.Histogram:
    return hdr.encode(np.repeat(np.array(values, np.int64), times))


def read(*histograms: hdr.Histogram) -> np.ndarray:
    """Add them up by way of a record's columns."""
    rows = [hdr.columns("latency", histogram) for histogram in histograms]
    return hdr.total(*(pa.array([row[f"latency_{part}"] for row in rows], LISTS[part]) for part in LISTS))


def test_the_buckets_are_those_of_the_hdr_histogram():
    theirs = HdrHistogram(hdr.LOWEST_US, hdr.HIGHEST_US, 3)
    values = [theirs.get_value_from_index(index) for index in range(theirs.counts_len)]
    assert hdr.VALUES_US.tolist() == values
    assert hdr.TOPS_US.tolist() == [theirs.get_highest_equivalent_value(value) for value in values]


@given(values=LATENCIES, times=st.sampled_from([1, 2, 70, 20_000]))
def test_counts_are_those_of_the_hdr_histogram(values, times):
    theirs = HdrHistogram(hdr.LOWEST_US, hdr.HIGHEST_US, 3)
    for value in values:
        theirs.record_value(max(value, 1), times)
    found = read(encoded(values, times))
    assert found.sum() == len(values) * times
    assert found.tolist() == list(theirs.counts)


@given(st.lists(st.tuples(LATENCIES, st.sampled_from([1, 2, 500])), min_size=1, max_size=6))
def test_parts_add_up_to_the_whole(parts):
    histograms = [encoded(values, times) for values, times in parts]
    whole = hdr.encode(np.concatenate([np.repeat(np.array(v, np.int64), times) for v, times in parts]))
    assert hdr.merge(histograms) == whole
    assert np.array_equal(read(*histograms), read(whole))


def test_parts_of_many_buckets_add_up_too():
    parts = [np.arange(first, 2_000_000, 997) for first in (1, 5, 1)]
    assert hdr.merge(list(map(hdr.encode, parts))) == hdr.encode(np.concatenate(parts))


def test_what_is_out_of_range_is_counted_at_its_ends():
    found = read(hdr.encode(np.array([-5, 0, 2 * hdr.HIGHEST_US])))
    assert (found[1], found[hdr.VALUES_US.searchsorted(hdr.HIGHEST_US, "right") - 1], found.sum()) == (2, 1, 3)


def test_a_slice_and_a_null_are_read_as_they_are():
    gaps = pa.array([[5], None, [], [1, 2]], LISTS["gaps"])[1:]
    counts = pa.array([[9], None, [], [7, 8]], LISTS["counts"])[1:]
    found = hdr.total(gaps, counts)
    assert (found[1], found[3], found.sum()) == (7, 8, 15)


@pytest.mark.parametrize(("gaps", "counts"), [([1, 2], [5]), ([30_000], [5]), ([-1], [5])])
def test_a_damaged_one_is_refused(gaps, counts):
    with pytest.raises(ValueError, match="damaged"):
        hdr.total(pa.array([[1], gaps], LISTS["gaps"]), pa.array([[1], counts], LISTS["counts"]))


def test_a_record_keeps_them_split_in_bytes_and_in_pieces_that_fit_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("stallmark.record.table_file.BYTES_AT_ONCE", 4000)
    writer = RecordWriter(tmp_path / "run", a_manifest())
    rng = np.random.default_rng(1)
    kept = [hdr.encode(rng.lognormal(9, 1, 50).astype(int)) for _ in range(40)]
    empty = dict.fromkeys(TRANSACTIONS.names, 0) | {"load": "bank", "transaction": "a"}
    for second, histogram in enumerate(kept):
        both = hdr.columns("latency", histogram) | hdr.columns("service", histogram)
        writer.append("transactions", [empty | {"second": second} | both])
    writer.close()
    names = ["latency_gaps", "latency_counts"]
    parts = list(Record(tmp_path / "run").batches("transactions", names))
    assert len(parts) > 3
    assert np.array_equal(sum(hdr.total(*part.columns) for part in parts), read(*kept))


def of_service(service: hdr.Histogram) -> pa.Table:
    latency = hdr.encode(np.array([1, 5000, 5004, 5004, 90_000]))
    row = hdr.columns("latency", latency) | hdr.columns("service", service)
    schema = pa.schema([TRANSACTIONS.field(name) for name in row])
    return pa.Table.from_pylist([row, row], schema=schema)


def test_service_times_are_kept_as_distances_from_latencies_and_read_as_they_were():
    rows = of_service(hdr.encode(np.array([1, 4990, 4990, 5001, 80_000])))
    kept = hdr.without_service(rows)
    assert kept["service_gaps"].to_pylist() == [[0, 3, 4, 1, 156]] * 2
    assert kept["service_counts"].to_pylist() == [None, None]
    for some in (kept, kept.slice(1)):
        assert [hdr.with_service(batch) for batch in some.to_batches()] == rows.slice(0, len(some)).to_batches()


@pytest.mark.parametrize(
    "service",
    [
        hdr.encode(np.array([1, 2])),  # fewer than there are latencies
        hdr.encode(np.full(5, 3)),  # many in one bucket
        hdr.Histogram(b"\1\0\0\0", b"\1\0\0\0\4\0\0\0"),  # one bucket twice
        hdr.Histogram(b"\1\0\2\0", b"\6\0\0\0\xff\xff\xff\xff"),  # a count below zero
    ],
)
def test_service_times_that_do_not_fit_latencies_are_kept_as_they_are(service):
    rows = of_service(service)
    assert hdr.without_service(rows).equals(rows)
    assert [hdr.with_service(batch) for batch in rows.to_batches()] == rows.to_batches()


def test_unknown_service_times_do_not_come_back_as_none():
    rows = of_service(hdr.encode(np.array([1, 4990, 4990, 5001, 80_000])))
    column = rows["service_gaps"].combine_chunks()
    unknown = rows.set_column(
        rows.schema.get_field_index("service_gaps"), rows.schema.field("service_gaps"),
        pa.array([None, column[1].as_py()], column.type),
    )  # fmt: skip
    assert hdr.without_service(unknown).equals(unknown)
