"""Verdicts are right as often as they say: simulations with 2 % run-to-run spread, and what holds of any numbers."""

import numpy as np
import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import assume, given
from hypothesis import strategies as st

from stallmark.stats import inference as statistics

pytestmark = pytest.mark.thorough

SPREAD = 0.02
PAIRS = 200
MANY = 20_000

logs = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def runs(n: int, shift: float, of: int, drift: float = 0.0, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """ln of the throughput of A and B in `of` experiments of n runs each, B better by `shift`."""
    rng = np.random.default_rng(seed)
    blocks = rng.normal(0, drift, (of, n)) if drift else 0.0
    return blocks + rng.normal(0, SPREAD, (of, n)), blocks + rng.normal(np.log1p(shift), SPREAD, (of, n))


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("test", [statistics.paired, statistics.welch])
def test_equal_variants_get_at_most_15_false_verdicts_in_200_pairs(test, n):
    false = test(*runs(n, 0.0, MANY)).p() <= 0.05
    assert false.mean() <= 0.055
    # A fair test has more than 15 in one set of 200 out of 23 (binomial).
    assert (false.reshape(-1, PAIRS).sum(axis=1) <= 15).mean() >= 0.9


def test_five_runs_show_a_true_difference_of_5_percent_four_times_in_five():
    """The number of runs that `plan` states for the spread of 2 % and a difference of 5 %."""
    needed = statistics.runs_needed(0.05, SPREAD)
    assert needed == 5
    assert (statistics.paired(*runs(needed, 0.05, PAIRS)).p() <= 0.05).mean() >= 0.8
    assert (statistics.paired(*runs(needed - 1, 0.05, MANY)).p() <= 0.05).mean() < 0.8


@pytest.mark.parametrize("difference", [0.02, 0.03, -0.03, 0.1])
def test_as_many_runs_as_planned_have_the_power_they_promise(difference):
    needed = statistics.runs_needed(difference, SPREAD)
    assert needed is not None
    found = (statistics.paired(*runs(needed, difference, MANY)).p() <= 0.05).mean()
    assert found == pytest.approx(
        float(statistics.power(abs(np.log1p(difference)) / (SPREAD * np.sqrt(2 / needed)), needed - 1)), abs=0.02
    )
    assert found >= 0.79


def test_as_many_runs_apart_as_planned_have_the_power_they_promise():
    needed = statistics.runs_needed(0.05, SPREAD, paired=False)
    assert needed is not None and needed <= (statistics.runs_needed(0.05, SPREAD) or 0)
    assert (statistics.welch(*runs(needed, 0.05, MANY)).p() <= 0.05).mean() >= 0.78


def test_intervals_hold_the_true_difference_95_times_in_100():
    low, high = statistics.paired(*runs(4, 0.05, MANY)).interval()
    assert ((low <= np.log1p(0.05)) & (high >= np.log1p(0.05))).mean() == pytest.approx(0.95, abs=0.006)


def test_pairs_take_out_what_the_runs_of_a_block_have_in_common():
    drifting = runs(5, 0.05, PAIRS, drift=0.1)
    assert (statistics.paired(*drifting).p() <= 0.05).mean() >= 0.8
    assert (statistics.welch(*drifting).p() <= 0.05).mean() < 0.2


def test_a_planned_number_of_runs_grows_with_the_spread_and_shrinks_with_the_difference():
    assert statistics.runs_needed(0.05, 0.0) == 3
    assert statistics.runs_needed(0.05, 0.04) > statistics.runs_needed(0.05, 0.02) > 3
    assert statistics.runs_needed(0.0001, 0.5) is None


@given(st.integers(2, 60), st.floats(0.001, 0.2))
def test_what_n_runs_can_show_needs_no_more_than_n_runs(n, spread):
    least = statistics.detectable_with(n, spread)
    needed = statistics.runs_needed(least * 1.001, spread)
    assert needed is not None and needed <= max(n, 3)


@given(logs, logs)
def test_both_tests_are_those_of_scipy(a, b):
    a, b = np.array(a), np.array(b)
    n = min(len(a), len(b))
    pairs = [(statistics.welch(a, b), scipy.stats.ttest_ind(b, a, equal_var=False), [a, b])]
    pairs += [(statistics.paired(a[:n], b[:n]), scipy.stats.ttest_rel(b[:n], a[:n]), [b[:n] - a[:n]])]
    for ours, theirs, scattered in pairs:
        assume(all(np.ptp(one) > 1e-6 for one in scattered))
        assert float(ours.p()) == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
        assert [float(end) for end in ours.interval()] == pytest.approx(list(theirs.confidence_interval()), abs=1e-9)


@given(st.floats(0, 12), st.integers(2, 60))
def test_the_power_is_that_of_the_noncentral_t_distribution(shift, df):
    critical = scipy.stats.t.ppf(0.975, df)
    expected = scipy.stats.nct.sf(critical, df, shift) + (scipy.stats.nct.cdf(-critical, df, shift) if shift < 5 else 0)
    assert float(statistics.power(shift, df)) == pytest.approx(expected, abs=1e-7)


@given(logs, st.floats(-0.5, 0.5))
def test_a_pair_of_sides_exchanged_gives_the_same_p_and_the_opposite_difference(a, shift):
    a = np.array(a)
    b = a[::-1] + shift
    for test in (statistics.paired, statistics.welch):
        there, back = test(a, b), test(b, a)
        assert float(there.p()) == pytest.approx(float(back.p()))
        assert float(there.mean) == pytest.approx(-float(back.mean))


@given(logs, logs)
def test_p_is_below_5_percent_where_the_interval_leaves_out_zero(a, b):
    found = statistics.welch(np.array(a), np.array(b))
    low, high = (float(end) for end in found.interval())
    p = float(found.p())
    assert 0 <= p <= 1
    if abs(p - 0.05) > 1e-6 and float(found.error) > 1e-9:
        assert (p < 0.05) == (low > 0 or high < 0)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    adjusted = statistics.holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    ranked = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in ranked] == sorted(adjusted)
    if p_values:
        assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


def test_holm_as_its_author_has_it():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_spread_is_pooled_over_groups_and_needs_a_repeat():
    assert statistics.pooled_spread([[[400.0]], [[480.0]]]) is None
    rng = np.random.default_rng(3)
    groups = [[np.exp(rng.normal(level, SPREAD, 400))] for level in (5, 6)]
    found = statistics.pooled_spread(groups)
    assert found is not None and found[1] == 798
    assert found[0] == pytest.approx(SPREAD, rel=0.1)
    low, high = statistics.spread_interval(*found)
    assert low < found[0] < high


def test_steps_of_one_run_make_its_spread_no_better_known():
    runs = [400.0, 408.0, 392.0]
    one = statistics.pooled_spread([[runs]])
    assert statistics.pooled_spread([[runs, runs, runs]]) == pytest.approx(one) and one[1] == 2
    loud = [400.0, 480.0, 320.0]
    both = [statistics.pooled_spread([[step]])[0] ** 2 for step in (runs, loud)]
    assert statistics.pooled_spread([[runs, loud]])[0] ** 2 == pytest.approx(np.mean(both))


def test_runs_that_are_equal_to_the_last_digit_differ_by_nothing_and_leave_no_doubt():
    same = np.log([400.0, 400.0, 400.0])
    assert float(statistics.paired(same, same).p()) == 1.0
    assert float(statistics.paired(same, same + 0.1).p()) == 0.0
    assert float(statistics.welch(same, same).p()) == 1.0
