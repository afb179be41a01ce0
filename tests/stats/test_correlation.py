import numpy as np
import pytest

from stallmark.stats.dependence import correlate_changes, effective_size


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
