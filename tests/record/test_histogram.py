"""Latency histograms of a day are added in one go, and to the same counters as one by one."""

import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.record import histogram as hdr

FAR = b"\xff\xff\xff\x7f\x02"
"""134 million empty counters, and one in use."""

latencies = st.lists(st.integers(1, hdr.HIGHEST_US) | st.integers(1, 3000), max_size=40)


def encoded(values: list[int], times: int = 1) -> bytes:
    return hdr.encode(np.repeat(np.array(values, np.int64), times))


@settings(max_examples=25)
@given(st.lists(st.tuples(latencies, st.sampled_from([1, 2, 70, 20_000])), max_size=6))
def test_many_at_once_are_the_same_as_one_after_another(drawn):
    blobs = [encoded(values, times) for values, times in drawn]
    together = np.zeros(hdr.LAYOUT.counts_len, np.int64)
    hdr.add_all(together, blobs)
    assert (together == hdr.counts(*blobs)).all()


def test_more_than_fit_at_once_are_all_added():
    blobs = [encoded([number + 1, 5_000_000]) for number in range(1100)]
    together = np.ones(hdr.LAYOUT.counts_len, np.int64)
    hdr.add_all(together, blobs)
    assert (together - 1 == hdr.counts(*blobs)).all() and together.sum() == 2200 + hdr.LAYOUT.counts_len


def test_one_of_another_layout_or_a_damaged_one_is_refused():
    good = encoded([100, 2000])
    total = np.zeros(hdr.LAYOUT.counts_len, np.int64)
    raw = zlib.decompress(good)
    other = HdrHistogram(1, 1000, 2, word_size=8, b64_wrap=False)
    other.record_value(5)
    for bad, words in (
        (other.encode(), "another range or precision"),
        (good[:-6], "damaged"),
        (zlib.compress(raw[:-1]), "damaged"),
        (zlib.compress(raw[:20]), "too short"),
        (zlib.compress(raw[:4] + (5).to_bytes(4, "big") + raw[8:40] + FAR), "too many"),
    ):
        with pytest.raises(ValueError, match=words):
            hdr.add_all(total, [good, bad])
