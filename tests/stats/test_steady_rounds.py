"""When writes are steady, by the rule of the Solid State Storage Performance Test Specification."""

from hypothesis import given
from hypothesis import strategies as st

from stallmark.stats.steady_state import steady_rounds
from stallmark.stats.thresholds import STEADY_ROUNDS

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
