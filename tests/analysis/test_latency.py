import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from support.synthetic import histogram

from stallmark.analysis.read.latency import PERCENTILES, Latencies

MICROSECONDS = st.integers(1, 3_600_000_000)
THREE_DIGITS = 1e-3


def merged(*parts) -> Latencies:
    latencies = Latencies.empty()
    for part in parts:
        latencies.merge(histogram(part))
    return latencies


@settings(deadline=None)
@given(st.lists(st.lists(MICROSECONDS, max_size=60), min_size=1, max_size=5))
def test_merging_is_the_histogram_of_all_values(parts):
    values = [value for part in parts for value in part]
    latencies = merged(*parts)
    assert np.array_equal(latencies.counts, merged(values).counts)
    assert latencies.size == len(values)
    if values:
        assert latencies.max_ms() == pytest.approx(max(values) / 1000, rel=THREE_DIGITS, abs=1e-3)


@settings(deadline=None)
@given(st.lists(MICROSECONDS, min_size=20, max_size=400), st.sampled_from(list(PERCENTILES)))
def test_percentiles_are_those_of_the_values_to_three_digits(values, name):
    share = PERCENTILES[name]
    found = merged(values).percentile_ms(share)
    if len(values) < round(10 / (1 - share), 6):
        assert found is None
        return
    exact = float(np.quantile(values, share, method="inverted_cdf")) / 1000
    assert found == pytest.approx(exact, rel=THREE_DIGITS, abs=1e-3)


def test_agrees_with_the_package_on_a_large_sample():
    values = np.random.default_rng(7).lognormal(9, 1, 50_000).astype(int)
    reference = HdrHistogram.decode(histogram(values), b64_wrap=False)
    latencies = merged(*np.array_split(values, 9))
    for share in PERCENTILES.values():
        expected = reference.get_value_at_percentile(share * 100) / 1000
        assert latencies.percentile_ms(share) == pytest.approx(expected, rel=2 * THREE_DIGITS)


@pytest.mark.parametrize(("name", "enough"), [("p50", 20), ("p90", 100), ("p95", 200), ("p99", 1000)])
def test_a_percentile_needs_ten_samples_beyond_it(name, enough):
    assert merged([500] * enough).summary()[name] is not None
    assert merged([500] * (enough - 1)).summary()[name] is None


def test_nothing_recorded_has_no_percentiles():
    latencies = merged([])
    latencies.merge(None)
    assert set(latencies.summary().values()) == {None}


def test_refuses_a_histogram_of_another_precision():
    other = HdrHistogram(1, 3_600_000_000, 2, b64_wrap=False)
    other.record_value(5)
    with pytest.raises(ValueError, match="3 digits"):
        Latencies.empty().merge(other.encode())
