"""The tests for trend, change and warm-up on series of known truth."""

import numpy as np
import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.synthetic_series import autoregressive
from support.synthetic_shapes import Shape

from stallmark.stats import steady_state
from stallmark.stats.inference import binned, correlate_changes, effective_size, elasticity, lag
from stallmark.stats.steady_state import steady_rounds
from stallmark.stats.thresholds import STEADY_ROUNDS

pytestmark = pytest.mark.thorough

FALSE_ALARMS = 0.10  # of each test at 5 % both together; a sample of 200 varies by ± 0.03
SERIES = arrays(float, st.integers(20, 400), elements=st.floats(1, 1e6, width=32))


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
        alarms += steady_state.trend(steady_state.Batches(means, 1, correlation=0.0)).p < 0.05
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
    assert np.median([one.index for one in found]) == pytest.approx(240, abs=20)
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
        found.append([*steady_state.lag_correlations(series), *steady_state.lag_correlations(series + 100 * shape)])
    assert np.mean(found, axis=0) == pytest.approx([phi, phi**2] * 2, abs=0.09)


@given(SERIES)
def test_probabilities_and_intervals_are_such(series):
    batched = steady_state.batches(series)
    trend, change = steady_state.trend(batched), steady_state.change(batched)
    assert 0 <= trend.p <= 1 and 0 <= change.p <= 1
    assert trend.low <= trend.slope <= trend.high
    assert batched.inflation >= 1 and batched.independent <= len(batched.means)
    assert 0 < change.index < len(series)
    assert 0 <= steady_state.truncation(series) <= len(series) / 2 + 5


@given(SERIES, st.floats(0.01, 100))
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


# When writes are steady, by the rule of the Solid State Storage Performance Test Specification


latencies = st.floats(0.01, 1000)


@given(st.lists(latencies, max_size=STEADY_ROUNDS - 1))
def test_few_rounds_tell_nothing(rounds):
    assert not steady_rounds(rounds)


@given(st.lists(latencies, max_size=10), latencies)
def test_rounds_alike_are_steady_whatever_came_before(before, level):
    assert steady_rounds([*before, *[level] * STEADY_ROUNDS])


@given(st.lists(latencies, max_size=10), latencies, st.floats(0.3, 5))
def test_rounds_that_rise_or_scatter_are_not(before, level, by):
    assert not steady_rounds([*before, *(level * (1 + by * n / (STEADY_ROUNDS - 1)) for n in range(STEADY_ROUNDS))])
    assert not steady_rounds([*before, *(level * (1 + by * (n % 2)) for n in range(STEADY_ROUNDS))])


@given(st.lists(latencies, min_size=STEADY_ROUNDS, max_size=STEADY_ROUNDS), st.floats(0.1, 10))
def test_it_is_the_same_in_any_unit(rounds, factor):
    scaled = [one * factor for one in rounds]
    if abs(max(rounds) - min(rounds) - 0.2 * sum(rounds) / STEADY_ROUNDS) > 1e-6:  # not on the very edge of the rule
        assert steady_rounds(rounds) == steady_rounds(scaled) or _near_the_slope(rounds)


def _near_the_slope(rounds):
    import numpy as np

    slope = abs(np.polyfit(np.arange(STEADY_ROUNDS), rounds, 1)[0]) * (STEADY_ROUNDS - 1)
    return abs(slope - 0.1 * np.mean(rounds)) < 1e-6


# test_correlation


def correlate(left, right):
    return correlate_changes(np.asarray(left, float), np.asarray(right, float), "a", "b", "ms per I/O")


@pytest.mark.parametrize("walk", [False, True], ids=["noise", "random walk"])
def test_independent_series_have_zero_in_their_interval_nineteen_times_in_twenty(walk):
    """Independent noise, whose changes depend on their neighbours, and independent walks, whose levels drift."""
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(600):
        x, y = rng.normal(size=(2, 60))
        found = correlate(np.cumsum(x), np.cumsum(y)) if walk else correlate(x, y)
        covered.append(found.low <= 0 <= found.high)
    assert 0.925 <= np.mean(covered) <= 0.99


def test_a_plain_interval_would_be_too_narrow():
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(2, 4000))
    n = effective_size(np.diff(x), np.diff(y))
    assert n / 3999 == pytest.approx(1 / 1.5, abs=0.1)


def test_finds_a_known_dependence():
    rng = np.random.default_rng(13)
    stall = rng.normal(10, 2, 300)
    found = correlate(400 - 20 * stall + rng.normal(0, 10, 300), stall)
    assert found.n == 299
    assert found.low < found.r < found.high < -0.9


def test_common_drift_alone_is_no_correlation():
    rng = np.random.default_rng(14)
    drift = np.linspace(0, 1000, 200)
    found = correlate(drift + rng.normal(size=200), drift + rng.normal(size=200))
    assert found.low < 0 < found.high
    assert abs(found.r) < 0.3


def test_unknown_seconds_are_left_out_on_both_sides():
    rng = np.random.default_rng(15)
    x, y = rng.normal(size=(2, 50))
    x[10], y[20] = np.nan, np.nan
    assert correlate(x, y).n == 49 - 4


@pytest.mark.parametrize(
    "right", [np.full(40, 3.0), np.full(40, np.nan), [*range(8), *[np.nan] * 32]], ids=["flat", "none", "few"]
)
def test_says_nothing_without_enough_changes(right):
    assert correlate(np.random.default_rng(16).normal(size=40), right) is None
    assert correlate(right, np.random.default_rng(16).normal(size=40)) is None


def test_perfect_correlation_stays_finite():
    line = np.random.default_rng(17).normal(size=40)
    found = correlate(line, -line)
    assert found.r == pytest.approx(-1)
    assert -1 <= found.low <= found.r <= found.high <= 1


# Elasticity and lag of series whose truth is known


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
