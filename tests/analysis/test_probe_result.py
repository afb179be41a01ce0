"""Figures of a probe: percentiles as far as the sample goes, and records that are read as they were written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.probes import READ, of_disks, probe, step

from stallmark.errors import StallmarkError
from stallmark.record.probe import ProbeResult, ProbeStep, coarser

histograms = st.lists(
    st.tuples(st.floats(0.001, 1e5, allow_subnormal=False), st.integers(1, 10_000)), min_size=1, max_size=12
)


@settings(max_examples=30)
@given(histograms)
def test_coarser_bins_lose_no_io(bins):
    found = coarser(bins)
    assert sum(count for _, count in found) == sum(count for _, count in bins)
    assert [ms for ms, _ in found] == sorted({ms for ms, _ in found})
    assert abs(found[0][0] / min(ms for ms, _ in bins) - 1) <= 0.05


@settings(max_examples=30)
@given(histograms, st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_so_many_do_not_exceed_a_percentile(bins, share):
    bins = coarser(bins)
    size = sum(count for _, count in bins)
    found = ProbeStep(READ, 1, 1.0, size, size, 1.0, bins).percentile_ms(share)
    if size < 9.99 / (1 - share):
        assert found is None
    else:
        assert sum(count for ms, count in bins if ms <= found) >= share * size - 1e-6
        assert sum(count for ms, count in bins if ms < found) < share * size


def test_json_keeps_everything():
    made = probe(*of_disks(4, 5))
    assert ProbeResult.from_json(json.loads(json.dumps(made.as_json()))) == made


@pytest.mark.parametrize("damage", [{"steps": None}, {"steps": [{}]}, {"unheard": 1}])
def test_a_damaged_one_is_refused_in_a_sentence(damage):
    with pytest.raises(StallmarkError, match="damaged"):
        ProbeResult.from_json(probe(step(1, 100)).as_json() | damage)
