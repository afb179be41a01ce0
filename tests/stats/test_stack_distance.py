"""Stack distances, against a list that is kept in the order of use."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stallmark.stats.stack_distance import COLD, stack_distances


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
