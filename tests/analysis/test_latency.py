import math

import numpy as np
import pyarrow as pa
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import histogram

from stallmark.analysis.read.throughput import Latencies
from stallmark.stats.thresholds import PERCENTILES

MICROSECONDS = st.integers(1, 3_600_000_000)
THREE_DIGITS = 1e-3


def columns(values) -> list[pa.Array]:
    """One row of a record."""
    lists = {"gaps": pa.list_(pa.int16()), "counts": pa.list_(pa.int32())}
    return [pa.array([histogram("latency", values)[f"latency_{part}"]], kind) for part, kind in lists.items()]


def merged(*parts) -> Latencies:
    latencies = Latencies.empty()
    for part in parts:
        latencies.merge(*columns(part))
    return latencies


@given(st.lists(st.lists(MICROSECONDS, max_size=60), min_size=1, max_size=5))
def test_merging_is_the_histogram_of_all_values(parts):
    values = [value for part in parts for value in part]
    latencies = merged(*parts)
    assert np.array_equal(latencies.counts, merged(values).counts)
    assert latencies.size == len(values)
    if values:
        assert latencies.max_ms() == pytest.approx(max(values) / 1000, rel=THREE_DIGITS, abs=1e-3)


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
    reference = HdrHistogram(1, 3_600_000_000, 3)
    for value in values:
        reference.record_value(int(value))
    latencies = merged(*np.array_split(values, 9))
    for share in PERCENTILES.values():
        expected = reference.get_value_at_percentile(share * 100) / 1000
        assert latencies.percentile_ms(share) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "enough"), [("p50", 20), ("p90", 100), ("p95", 200), ("p99", 1000)])
def test_a_percentile_needs_ten_samples_beyond_it(name, enough):
    assert merged([500] * enough).summary()[name] is not None
    assert merged([500] * (enough - 1)).summary()[name] is None


def test_nothing_recorded_has_no_percentiles():
    assert set(merged([]).summary().values()) == {None}


@given(st.lists(st.integers(1, 10**6), max_size=3000), st.integers(0, 99), st.sampled_from(list(PERCENTILES.values())))
def test_what_never_ended_took_longer_than_any(values, never, share):
    with_never, as_an_hour = merged(values), merged([*values, *[3_600_000_000] * never])
    found, expected = with_never.percentile_ms(share, never), as_an_hour.percentile_ms(share)
    if expected is not None and expected > 10_000:
        assert found == math.inf
    else:
        assert found == expected
    assert with_never.share_over(1000, never) == as_an_hour.share_over(1000)
    assert with_never.summary(never)["max"] == (math.inf if never else with_never.max_ms())
