"""The tests for trend, change and warm-up on series of known truth."""

import numpy as np
import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from support.synthetic_series import autoregressive

from stallmark.stats import steady_state

FALSE_ALARMS = 0.10  # of each test at 5 % both together; a sample of 200 varies by ± 0.03
SERIES = arrays(float, some.integers(20, 400), elements=some.floats(1, 1e6, width=32))


@pytest.mark.parametrize("seconds", [120, 900])
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_a_steady_series_rarely_shows_a_trend_or_a_change(seconds, phi):
    alarms = 0
    for seed in range(100):
        batched = steady_state.batches(autoregressive(seconds, phi, seed=seed))
        alarms += min(steady_state.trend(batched).p, steady_state.change(batched).p) < 0.025
    assert alarms <= FALSE_ALARMS * 100


def test_taken_for_independent_the_same_seconds_would_show_one_in_every_third_series():
    """The correction shows: were it lost, the test before could not tell by itself."""
    alarms = 0
    for seed in range(60):
        means = autoregressive(120, 0.9, seed=seed)
        alarms += steady_state.trend(steady_state.Batches(means, 1, alike=0.0)).p < 0.05
    assert alarms > 20


def test_a_trend_is_found_with_its_slope():
    found = []
    for seed in range(60):
        series = autoregressive(600, 0.5, seed=seed) * np.linspace(1, 1.1, 600)
        found.append(steady_state.trend(steady_state.batches(series)))
    assert np.mean([one.p < 0.025 for one in found]) > 0.95
    truth = 100 * 0.1 / 599
    assert np.median([one.slope for one in found]) == pytest.approx(truth, rel=0.1)
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.85


def test_a_change_is_found_where_it_is():
    found = []
    for seed in range(60):
        series = autoregressive(600, 0.5, seed=seed) * np.where(np.arange(600) < 240, 1, 0.9)
        found.append(steady_state.change(steady_state.batches(series)))
    assert np.mean([one.p < 0.025 for one in found]) > 0.9
    assert np.median([one.at for one in found]) == pytest.approx(240, abs=20)
    assert np.median([one.after / one.before for one in found]) == pytest.approx(0.9, abs=0.02)


def test_the_truncation_is_the_warm_up():
    cuts = []
    for seed in range(40):
        series = autoregressive(600, 0.5, seed=seed)
        series[:90] *= 0.6
        cuts.append(steady_state.truncation(series))
    assert np.quantile(cuts, 0.1) >= 85 and np.median(cuts) == pytest.approx(90, abs=10)


def test_the_truncation_has_the_smallest_standard_error_of_all():
    """Against the definition, written as a loop."""
    for seed in range(10):
        series = autoregressive(103, 0.8, seed=seed) * np.linspace(0.8, 1, 103)
        means = steady_state.batch_means(series, 5)
        errors = [means[cut:].var() / len(means[cut:]) for cut in range(len(means) // 2 + 1)]
        best = int(np.argmin(errors))
        assert steady_state.truncation(series) == (best * 5 + 3 if best else 0)


@pytest.mark.parametrize("level", [400.0, 1 / 3, 48113.7])
def test_the_truncation_of_a_constant_rest_is_its_beginning_and_not_what_rounding_makes_of_it(level):
    assert steady_state.truncation(np.r_[np.zeros(40), np.full(200, level)]) == 40
    assert steady_state.truncation(np.full(2000, level)) == 0


@pytest.mark.parametrize("shape", [np.linspace(1, 3, 200), np.where(np.arange(200) < 80, 1, 1.5)])
@pytest.mark.parametrize("phi", [0.0, 0.4, 0.7])
def test_resemblance_is_the_correlation_of_neighbours_whatever_the_trend(phi, shape):
    found = []
    for seed in range(60):
        series = autoregressive(200, phi, counting=0.0, seed=seed)
        found.append([*steady_state.resemblance(series), *steady_state.resemblance(series + 100 * shape)])
    assert np.mean(found, axis=0) == pytest.approx([phi, phi**2] * 2, abs=0.09)


@given(SERIES)
@settings(max_examples=40)
def test_probabilities_and_intervals_are_such(series):
    batched = steady_state.batches(series)
    trend, change = steady_state.trend(batched), steady_state.change(batched)
    assert 0 <= trend.p <= 1 and 0 <= change.p <= 1
    assert trend.low <= trend.slope <= trend.high
    assert batched.inflation >= 1 and batched.independent <= len(batched.means)
    assert 0 < change.at < len(series)
    assert 0 <= steady_state.truncation(series) <= len(series) / 2 + 5


@given(SERIES, some.floats(0.01, 100))
@settings(max_examples=25)
def test_the_unit_does_not_matter_and_time_backwards_turns_the_trend(series, factor):
    """Without the hair's breadth by which a factor turns equal values into different ones."""
    series = np.round(series)
    one = steady_state.trend(steady_state.Batches(series, 1, 0.0))
    scaled = steady_state.trend(steady_state.Batches(series * factor, 1, 0.0))
    back = steady_state.trend(steady_state.Batches(series[::-1], 1, 0.0))
    assert scaled.p == pytest.approx(one.p) and back.p == pytest.approx(one.p)
    assert scaled.slope == pytest.approx(one.slope * factor, rel=1e-6, abs=1e-9)
    assert back.slope == pytest.approx(-one.slope, rel=1e-9, abs=1e-9)


@given(SERIES)
@settings(max_examples=25)
def test_the_slope_is_theil_and_sen_s(series):
    ours = steady_state.trend(steady_state.Batches(series, 1, 0.0))
    assert ours.slope == pytest.approx(scipy.stats.theilslopes(series).slope, rel=1e-9, abs=1e-9)


def test_a_constant_series_has_neither():
    batched = steady_state.batches(np.full(60, 400.0))
    assert steady_state.trend(batched).p == 1 and steady_state.change(batched).p == 1
    assert steady_state.truncation(np.full(60, 400.0)) == 0


def test_too_short_a_series_is_refused():
    with pytest.raises(ValueError, match="at least 20"):
        steady_state.batches(np.ones(19))
