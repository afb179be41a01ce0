"""Elasticity and lag of series whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic_shapes import Shape

from stallmark.stats.dependence import binned, elasticity, lag


def levels(shape: Shape, seconds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """TPS and read time."""
    tps, read = shape.draw(seconds, np.random.default_rng(seed))
    return 400 * np.exp(tps), 8 * np.exp(read)


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_elasticity_interval_holds_the_truth_as_often_as_it_says(phi):
    shape = Shape(phi=phi, elasticity=-0.6, scatter=0.05)
    found = [elasticity(*levels(shape, 120, seed)) for seed in range(200)]
    held = sum(one is not None and one[1] <= -0.6 <= one[2] for one in found)
    assert held >= 180, "95 % of 200 are 190; less than 180 is beyond three standard deviations"
    assert np.mean([one[0] for one in found if one]) == pytest.approx(-0.6, abs=0.02)


def test_series_that_only_share_a_trend_have_no_elasticity():
    shape = Shape(elasticity=0.0, phi=0.5, trend_per_s=0.005)
    found = [elasticity(*levels(shape, 120, seed)) for seed in range(200)]
    assert sum(one is not None and not one[1] <= 0 <= one[2] for one in found) <= 20
    tps, read = levels(shape, 120, 0)
    assert abs(np.corrcoef(tps, read)[0, 1]) > 0.7, "the levels do go together"


def test_a_few_seconds_gone_wrong_do_not_hide_an_elasticity():
    """Reads that took eight times as long, says the record, and throughput did not care."""
    for seed in range(20):
        found = elasticity(*levels(Shape(phi=0.5, outliers=(30, 70)), 120, seed))
        assert found and found[1] < -0.5 and found[0] == pytest.approx(-0.7, abs=0.12)


@pytest.mark.parametrize("lag_s", [-3, 0, 2, 6])
@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_lag_is_found_and_its_sign_says_who_came_first(lag_s, phi):
    tps, read = levels(Shape(phi=phi, lag_s=abs(lag_s)), 200, 3)
    found = lag(tps, read) if lag_s >= 0 else lag(read, tps)
    assert found and found[0] == lag_s and found[1] <= lag_s <= found[2]


def test_lag_of_independent_series_is_rarely_found():
    found = [lag(*levels(Shape(elasticity=0.0, phi=0.7), 150, seed)) for seed in range(100)]
    assert sum(one is not None for one in found) <= 12


def test_a_weak_tie_leaves_the_lag_open():
    """Where the peak hardly stands out of chance, the interval holds more than one lag."""
    found = [lag(*levels(Shape(elasticity=-0.3, scatter=0.08, lag_s=2), 200, seed)) for seed in range(20)]
    known = [one for one in found if one]
    assert known and any(low < high for _, low, high in known)
    assert sum(low <= 2 <= high for _, low, high in known) >= 0.8 * len(known)


@given(st.integers(0, 1000), st.floats(0.01, 100), st.floats(0.01, 100), st.lists(st.integers(0, 79), max_size=10))
def test_elasticity_does_not_depend_on_units_nor_gaps_change_its_sign(seed, scale_y, scale_x, gaps):
    tps, read = levels(Shape(scatter=0.005), 80, seed)
    tps[gaps] = np.nan
    one, other = elasticity(tps, read), elasticity(scale_y * tps, scale_x * read)
    assert one and other and one == pytest.approx(other, rel=1e-6)
    assert one[1] <= one[0] <= one[2] and one[2] < 0


def test_what_never_changes_or_is_too_short_has_neither():
    tps, read = levels(Shape(), 80, 1)
    flat = np.full(80, 8.0)
    assert elasticity(tps, flat) is None and elasticity(tps[:8], read[:8]) is None
    assert lag(tps[:20], read[:20]) is None
    assert elasticity(tps, np.zeros(80)) is None, "a logarithm of zero is not known"


def test_stretches_are_means_and_an_unknown_second_makes_one_unknown():
    assert binned(np.array([1.0, 3.0, 5.0, np.nan, 9.0]), 2).tolist()[0] == 2.0
    assert np.isnan(binned(np.array([1.0, 3.0, 5.0, np.nan, 9.0]), 2)[1])
