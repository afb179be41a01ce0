"""The rates of loads that together do what is wanted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.sizing.runner import corrected_costs, fitted_rates
from stallmark.stats.stack_distance import COLD, stack_distances

rate = st.floats(0.1, 1e4)
cost = st.floats(1e-3, 1e5)


@given(st.lists(rate, min_size=2, max_size=2), st.lists(cost, min_size=6, max_size=6))
def test_what_loads_did_gives_their_rates_back(rates: list[float], each: list[float]) -> None:
    costs = {"a": dict(zip("rwl", each[:3], strict=True)), "b": dict(zip("rwl", each[3:], strict=True))}
    wanted = {name: rates[0] * costs["a"][name] + rates[1] * costs["b"][name] for name in "rwl"}
    found = fitted_rates(wanted, costs)
    for name in "rwl":
        done = sum(found[load] * costs[load][name] for load in found)
        assert done == pytest.approx(wanted[name], rel=1e-6), "several rates may do the same, if costs are alike"


@given(st.lists(cost, min_size=4, max_size=4), st.lists(rate, min_size=2, max_size=2))
def test_no_rate_is_negative_and_none_near_does_better(each: list[float], wanted: list[float]) -> None:
    costs = {"a": dict(zip("rw", each[:2], strict=True)), "b": dict(zip("rw", each[2:], strict=True))}
    want = dict(zip("rw", wanted, strict=True))
    found = fitted_rates(want, costs)

    def off(rates: dict[str, float]) -> float:
        return sum((sum(rates[one] * costs[one][name] for one in rates) / want[name] - 1) ** 2 for name in want)

    assert min(found.values()) >= 0
    for change in np.random.default_rng(1).uniform(0.8, 1.25, (20, 2)):
        assert off(found) <= off({one: found[one] * c for one, c in zip(found, change, strict=True)}) + 1e-9


def test_what_is_not_known_of_a_load_or_not_wanted_does_not_count() -> None:
    costs = {"a": {"r": 2.0, "cpu": None}, "b": {"r": 0.0, "cpu": 1.0}}
    assert fitted_rates({"r": 10.0, "cpu": 5.0, "w": None}, costs) == {"a": pytest.approx(5), "b": 0}
    with pytest.raises(ValueError):
        fitted_rates({"cpu": 5.0, "w": 3.0}, costs)


def test_costs_are_mended_by_what_they_were_off_together() -> None:
    costs = {"a": {"r": 2.0, "w": 1.0}, "b": {"r": 4.0, "w": None}}
    mended = corrected_costs(costs, {"a": 5.0, "b": 5.0}, {"r": 15.0, "w": 10.0})
    assert mended == {"a": {"r": 1.0, "w": 2.0}, "b": {"r": 2.0, "w": None}}
    assert corrected_costs(costs, {"a": 5.0, "b": 5.0}, {"r": None, "w": 0.0}) == costs


# Stack distances, against a list that is kept in the order of use


def naive(pages: list[int]) -> list[int]:
    stack: list[int] = []
    found = []
    for page in pages:
        found.append(stack.index(page) + 1 if page in stack else COLD)
        if page in stack:
            stack.remove(page)
        stack.insert(0, page)
    return found


@given(st.lists(st.integers(0, 12), max_size=200) | st.lists(st.integers(0, 2**40), max_size=60))
def test_distances_are_those_of_a_stack(pages: list[int]) -> None:
    assert stack_distances(np.array(pages, dtype=np.int64)).tolist() == naive(pages)


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(1, 40))
def test_a_cache_answers_what_is_no_further_than_its_size(pages: list[int], size: int) -> None:
    cache: list[int] = []
    hits = 0
    for page in pages:
        hits += page in cache
        cache = [page, *(one for one in cache if one != page)][:size]
    distances = stack_distances(np.array(pages, dtype=np.int64))
    assert ((distances != COLD) & (distances <= size)).sum() == hits
