"""The formulas of the figures, against numbers worked out by hand and what must hold for any times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.read.query_figures import composite, counted_s, power, rounded, throughput

TIMES = st.lists(st.floats(0.001, 10_000), min_size=22, max_size=22)


def test_power_is_by_the_geometric_mean_of_queries_and_refreshes():
    assert power(1, [2.0] * 22, [2.0, 2.0]) == pytest.approx(1800)
    assert power(10, [2.0] * 22) == pytest.approx(18_000)
    assert power(1, [1.0] * 21 + [8.0], [1.0, 8.0]) == pytest.approx(3600 / 8 ** (2 / 24))


def test_a_query_is_never_counted_as_more_than_a_thousand_times_faster_than_the_slowest():
    assert counted_s([500.0] + [0.1] * 21) == [500.0] + [0.5] * 21
    assert counted_s([100.0] + [0.1] * 21) == [100.0] + [0.1] * 21
    assert power(1, [500.0] + [0.1] * 21) == pytest.approx(3600 / (500 * 0.5**21) ** (1 / 22))
    assert power(1, [500.0] + [1.0] * 21, [0.1, 0.1]) == pytest.approx(3600 / (500 * 0.01) ** (1 / 24)), "queries alone"


@pytest.mark.parametrize(("seconds", "counts"), [(0.0, 0.1), (0.04, 0.1), (0.14, 0.1), (0.16, 0.2), (23.74, 23.7)])
def test_times_count_in_tenths_and_never_as_nothing(seconds, counts):
    assert rounded(seconds) == pytest.approx(counts)


def test_a_power_run_has_22_queries():
    with pytest.raises(ValueError, match="21 queries, not 22"):
        power(1, [1.0] * 21)


def test_throughput_is_queries_per_hour():
    assert throughput(1, streams=2, elapsed_s=158.4) == pytest.approx(1000)
    assert throughput(10, streams=2, elapsed_s=158.4) == pytest.approx(10_000)
    assert composite(400, 900) == pytest.approx(600)


@given(TIMES, st.floats(1.01, 5))
def test_whoever_is_slower_everywhere_has_no_more_power(times, times_slower):
    assert power(1, [one * times_slower for one in times]) <= power(1, times) * (1 + 1e-9)


@given(TIMES)
def test_power_lies_between_that_of_the_fastest_and_of_the_slowest(times):
    found = power(1, times)
    assert 3600 / rounded(max(times)) * (1 - 1e-9) <= found <= 3600 / min(counted_s(times)) * (1 + 1e-9)
