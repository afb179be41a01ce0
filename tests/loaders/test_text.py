"""Filler text: pure, and the same however a table is cut into batches."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stallmark.loaders.plan import POOL, WORD, Filler, digits

KEYS = st.integers(0, 2**63)


@given(key=KEYS, width=st.integers(1, 250), first=st.integers(0, 2**40), cuts=st.lists(st.integers(0, 60)))
def test_any_cut_gives_the_same_text(key: int, width: int, first: int, cuts: list[int]) -> None:
    whole = Filler(key, width).column(first, 60).to_pylist()
    edges = sorted({0, *cuts, 60})
    pieces = [
        text
        for start, end in itertools.pairwise(edges)
        for text in Filler(key, width).column(first + start, end - start).to_pylist()
    ]
    assert pieces == whole
    assert {len(text) for text in whole} == {width}
    assert all(text.isascii() and text.isprintable() and " " not in text for text in whole)


@given(key=KEYS, other=KEYS)
def test_the_key_decides(key: int, other: int) -> None:
    same = Filler(key, 84).column(0, 20) == Filler(other, 84).column(0, 20)
    assert same == (key == other)


def test_words_come_from_the_pool_evenly() -> None:
    text = pa.concat_arrays([Filler(1, 10 * WORD).column(0, 10_000)]).to_pylist()
    words = [row[at : at + WORD] for row in text for at in range(0, 10 * WORD, WORD)]
    counts = {word: 0 for word in words}
    for word in words:
        counts[word] += 1
    assert len(counts) == POOL
    assert max(counts.values()) < 2 * min(counts.values())
    # No column repeats another: position matters as well as row and key.
    for a in range(10):
        for b in range(a):
            alike = sum(row[a * WORD : (a + 1) * WORD] == row[b * WORD : (b + 1) * WORD] for row in text)
            assert alike < 100  # 39 expected of 10,000


@given(st.lists(st.integers(0, 10**18 - 1), min_size=1), st.integers(1, 18))
def test_digits_are_the_last_ones(numbers: list[int], width: int) -> None:
    assert digits(np.array(numbers), width).to_pylist() == [f"{number:018}"[-width:] for number in numbers]
