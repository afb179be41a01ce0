"""A database's share of its storage, at as many outstanding reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest
from support.probes import READ, STREAM, of_disks, probe, step

from stallmark.analysis.probe_comparison import Achieved, ProbeKind, achieved_reads, compare_with_probe
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import Pattern, ProbeStep, coarser


def reads(per_s: float, ms: float, size: float = 8192) -> Achieved:
    return Achieved(per_s, per_s * size / 1e6, ms, size)


def test_between_two_steps_it_is_interpolated():
    raw = probe(step(1, 200), step(8, 1200), step(32, 1400))
    found = compare_with_probe(raw, reads(1000, 8), emulated=False)
    assert (found.outstanding, found.raw_iops, found.raw_ms) == pytest.approx((8, 1200, 6.667), rel=1e-3)
    assert found.share == pytest.approx(1000 / 1200)
    assert found.finding.kind == ProbeKind.ACHIEVED


@given(st.floats(0.01, 31))
def test_a_database_that_has_what_the_device_gives_achieved_all(outstanding):
    raw = probe(*of_disks(8, 5))
    first = compare_with_probe(raw, reads(1000, outstanding), emulated=False)  # at 1,000 per s
    achieved = reads(first.raw_iops, outstanding / first.raw_iops * 1000)
    again = compare_with_probe(raw, achieved, emulated=False)
    assert again.share == pytest.approx(1)
    assert again.raw_ms >= 5 * (1 - 1e-9)


def test_with_less_than_one_outstanding_a_read_takes_as_long_as_one_alone():
    found = compare_with_probe(probe(step(1, 200)), reads(50, 4), emulated=False)
    assert (found.raw_ms, found.raw_iops) == pytest.approx((5, 40))


def test_beyond_the_probe_nothing_is_guessed():
    found = compare_with_probe(probe(step(1, 200), step(8, 1000)), reads(2000, 20), emulated=False)
    assert (found.raw_iops, found.raw_ms, found.share) == (None, None, None)
    assert (found.finding.facts["most_outstanding"], found.finding.facts["raw_reads_per_s"]) == (8, 1000)
    below = compare_with_probe(probe(step(4, 200)), reads(50, 4), emulated=False)
    assert below.raw_iops is None


def test_the_block_size_nearest_to_its_own_is_taken():
    large = Pattern("64k-random-read", "read", "random", 65536)
    raw = probe(step(1, 200), step(1, 100, pattern=large), step(1, 900, pattern=STREAM))
    assert compare_with_probe(raw, reads(50, 5, 60_000), emulated=False).pattern == large
    assert compare_with_probe(raw, reads(50, 5, 8192), emulated=False).pattern == READ


@pytest.mark.parametrize("emulated", [True, False])
def test_emulated_and_real_are_not_set_beside_each_other(emulated):
    found = compare_with_probe(probe(step(1, 200), emulated=not emulated), reads(100, 5), emulated=emulated)
    assert found.raw_iops is None and found.finding.kind == ProbeKind.OTHER_DEVICE


def test_a_probe_that_the_arrays_memory_could_hold_is_no_measure_of_its_disks():
    """On a file of 1 GiB."""
    raw = probe(step(1, 200), step(8, 1200))
    cautioned = compare_with_probe(raw, reads(100, 10), emulated=False, dram_bytes=8 << 30)
    assert cautioned.share and cautioned.caution.facts["why"].kind == ProbeKind.FITS_DRAM
    assert compare_with_probe(raw, reads(100, 10), emulated=False, dram_bytes=1 << 29).caution is None
    assert compare_with_probe(raw, reads(100, 10), emulated=True, dram_bytes=8 << 30).caution is None, (
        "nothing to doubt"
    )


def test_a_probe_without_random_reads_says_so():
    found = compare_with_probe(probe(step(1, 900, pattern=STREAM)), reads(100, 5), emulated=False)
    assert found.pattern is None and found.finding.kind == ProbeKind.NO_RANDOM_READS


def test_a_step_without_reads_achieved_nothing_to_compare():
    assert achieved_reads(None) is None


# Figures of a probe: percentiles as far as the sample goes, and records that are read as they were written.


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
