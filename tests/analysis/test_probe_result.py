"""Figures of a probe: percentiles as far as the sample goes, and records that are read as they were written."""

from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest
from support.probes import READ, of_disks, probe

from stallmark.record.manifest import Manifest
from stallmark.record.probe import ProbeStep, coarser

histograms = st.lists(
    st.tuples(st.floats(0.001, 1e5, allow_subnormal=False), st.integers(1, 10_000)), min_size=1, max_size=12
)


@given(histograms)
def test_coarser_bins_lose_no_io(bins):
    found = coarser(bins)
    assert sum(count for _, count in found) == sum(count for _, count in bins)
    assert [ms for ms, _ in found] == sorted({ms for ms, _ in found})
    assert abs(found[0][0] / min(ms for ms, _ in bins) - 1) <= 0.05


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


def test_a_manifest_keeps_everything():
    made = a_manifest(probes={"before": probe(*of_disks(4, 5))})
    assert Manifest.model_validate_json(made.model_dump_json()) == made
