"""The verdict on one interval, and the decision to begin to measure."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from support.synthetic_series import autoregressive

from stallmark.analysis.steady import Rate, SteadyKind, incomparable, judge
from stallmark.report.text import sentence
from stallmark.stats.steady_state import steady_enough

pytestmark = pytest.mark.thorough

SERIES = 50


def verdicts(shape, seconds: int = 600, **truth) -> Counter:
    share = np.arange(seconds) / seconds
    return Counter(
        judge(autoregressive(seconds, 0.5, seed=seed, **truth) * shape(share)).verdict for seed in range(SERIES)
    )


def test_a_steady_interval_is_called_so():
    found = verdicts(lambda share: 1)
    assert found["steady"] >= 0.95 * SERIES and not found["became_steady_late"]


def test_a_drift_too_small_to_matter_does_no_harm_however_sure_it_is():
    found = verdicts(lambda share: 1 + 0.02 * share, seconds=3600, noise=0.01, counting=0.0)
    assert found["steady"] == SERIES


@pytest.mark.parametrize(
    "shape",
    [
        lambda share: 1 + 0.15 * share,
        lambda share: 1 - 0.15 * share,
        lambda share: np.where(share < 0.6, 1, 0.88),
        lambda share: 1 - 0.5 * np.exp(-share / 0.5),
    ],
    ids=["rises", "falls", "steps down", "warms for longer than it is measured"],
)
def test_what_never_becomes_steady_is_called_so(shape):
    found = verdicts(shape)
    assert found["never_became_steady"] >= 0.8 * SERIES
    assert found["steady"] <= 0.05 * SERIES


def test_a_warm_up_inside_is_measured_with_what_it_does_to_the_mean():
    series = autoregressive(600, 0.5, seed=3)
    series[:90] *= 0.6
    found = judge(series)
    assert found.verdict == "became_steady_late" and found.incomparable
    assert found.warm_up_s == pytest.approx(90, abs=10)
    assert found.warm_up_shift == pytest.approx(-0.4 * 0.15, abs=0.01)
    assert found.finding.kind == SteadyKind.STEADY_LATE


def test_a_short_warm_up_is_told_of_and_does_no_harm():
    series = autoregressive(3600, 0.5, seed=3)
    series[:30] *= 0.5
    found = judge(series)
    assert found.verdict == "steady" and not found.incomparable
    assert found.warm_up_s == pytest.approx(30, abs=5)


def test_a_pause_is_neither_a_trend_nor_a_change():
    series = autoregressive(600, 0.5, seed=4)
    series[300:305] = 0
    assert judge(series).verdict == "steady"


def test_the_finding_has_the_figures():
    series = autoregressive(600, 0.0, seed=1, noise=0.0, counting=0.01) * np.linspace(1, 1.2, 600)
    found = judge(series, Rate.LATENCY)
    assert found.drift == pytest.approx(0.2, abs=0.01)
    assert found.drift_low < found.drift < found.drift_high
    assert found.slope_per_h == pytest.approx(0.2 / 1.1 * 6, abs=0.06)
    assert found.finding.kind in (SteadyKind.TREND, SteadyKind.LEVEL_CHANGED)
    assert found.finding.facts["of"] == Rate.LATENCY and found.finding.facts["p"] < 0.001


@pytest.mark.parametrize("rate", [np.linspace(2, 0.02, 60), np.r_[np.ones(30), np.full(30, 0.02)]])
def test_nothing_falls_by_more_than_all_of_it(rate):
    """A slope as a share of the mean did: TPS fell by 110 %."""
    found = judge(rate * autoregressive(60, 0.0, seed=5))
    shares = [found.drift, found.drift_low, found.drift_high, found.change]
    assert found.verdict == "never_became_steady"
    assert all(-1 <= share < 0 for share in shares)


def test_too_few_seconds_and_silence_are_not_judged():
    assert judge(np.ones(19)).finding.facts == {"seconds": 19, "needed_s": 20}
    assert judge(np.zeros(60)).verdict == "too_short_to_tell"
    assert judge(np.full(60, np.nan)).verdict == "too_short_to_tell"


def test_seconds_without_a_value_are_passed_over():
    series = autoregressive(600, 0.0, seed=2)
    holes = series.copy()
    holes[::7] = np.nan
    assert judge(holes).verdict == judge(series).verdict == "steady"


@given(arrays(float, some.integers(0, 200), elements=some.floats(0, 1e5)))
def test_every_series_gets_a_verdict_that_its_figures_bear_out(series):
    found = judge(series)
    assert sentence(found.finding).endswith(".") and found.seconds == len(series)
    if found.verdict == "never_became_steady":
        assert max(abs(found.drift), abs(found.change)) > 0.05
        assert min(found.trend_p, found.change_p) < 0.025


def began(series: np.ndarray, to_measure_s: float) -> int | None:
    """The first second at which the last half of what went before is steady enough, looked at every 5 s."""
    return next((s for s in range(20, len(series), 5) if steady_enough(series[s // 2 : s], to_measure_s)), None)


@pytest.mark.parametrize("tau", [20, 100])
def test_what_is_measured_after_waiting_is_the_steady_state(tau):
    """An exponential warm-up from half the throughput; measured for two minutes."""
    seconds, off, waited = 2000, [], []
    for seed in range(30):
        series = autoregressive(seconds, 0.3, seed=seed, noise=0.02)
        series *= 1 - 0.5 * np.exp(-np.arange(seconds) / tau)
        begin = began(series, 120)
        assert begin is not None
        waited.append(begin)
        off.append(np.exp(-np.arange(begin, begin + 120) / tau).mean() / 2)
    assert np.mean(np.array(off) < 0.025) > 0.8, sorted(off)
    assert np.median(waited) < 12 * tau + 120


def test_a_load_that_goes_on_drifting_is_never_steady_enough():
    for seed in range(10):
        series = autoregressive(1200, 0.3, seed=seed, noise=0.01) * np.linspace(1, 4, 1200)
        assert began(series, 600) is None


def test_the_longer_it_is_to_be_measured_the_longer_it_is_watched():
    series = autoregressive(4000, 0.5, seed=7)
    assert began(series, 60) < began(series, 1200)


def test_one_of_many_runs_may_look_unsteady_by_chance_and_a_real_drift_is_none():
    """Just significant (p = 0.03) among one and among six; and a drift that is there."""
    steady = judge(autoregressive(600, 0.5, seed=1))
    chance = replace(steady, verdict="never_became_steady", trend_p=0.015, change_p=0.5)
    drift = judge(autoregressive(600, 0.5, seed=1) * np.linspace(1, 1.3, 600))
    assert incomparable([chance]) == [chance]
    assert incomparable([chance, *[steady] * 5]) == []
    assert incomparable([drift, *[steady] * 5]) == [drift]


def test_more_runs_that_look_unsteady_than_chance_has_are_all_held_against_them():
    """Each just significant by itself (p = 0.03), which so many runs would show once, or twice of twenty."""
    steady = judge(autoregressive(600, 0.5, seed=1))
    chance = replace(steady, verdict="never_became_steady", trend_p=0.015, change_p=0.5)
    for unsteady, of, beyond in ((1, 6, False), (2, 6, True), (4, 6, True), (2, 20, False), (4, 20, True)):
        found = incomparable([*[chance] * unsteady, *[steady] * (of - unsteady)])
        assert len(found) == (unsteady if beyond else 0), (unsteady, of)
