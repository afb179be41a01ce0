"""The bank's rows: pure functions of seed and row number, in the shape the tables have."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders import POOL, WORD, Batch, Filler, LoadPlan, bank, digits
from stallmark.loaders.bank import LOADER
from stallmark.schema.bank.tables import METADATA

TABLES = st.sampled_from([bank.accounts, bank.tellers, bank.branches])
SEEDS = st.integers(0, 2**62)


@given(make=TABLES, seed=SEEDS, cuts=st.lists(st.integers(0, 300)))
def test_any_partition_gives_the_same_rows(make, seed: int, cuts: list[int]) -> None:
    edges = sorted({0, *cuts, 300})
    pieces = [make(seed, a, b - a) for a, b in itertools.pairwise(edges)]
    assert pa.concat_tables(pieces).equals(make(seed, 0, 300))


@given(make=TABLES, seed=SEEDS, other=SEEDS)
def test_the_seed_decides_the_text_and_nothing_else(make, seed: int, other: int) -> None:
    one, two = make(seed, 0, 50), make(other, 0, 50)
    assert (one["filler"] == two["filler"]) == (seed == other)
    assert one.drop_columns("filler").equals(two.drop_columns("filler"))


@pytest.mark.parametrize("branches", [1, 3, 12_000])
def test_batches_hold_what_the_plan_says(branches: int) -> None:
    scale = LOADER.scale({"branches": branches})
    plan = LoadPlan(LOADER.groups(scale))
    assert plan.rows == {"bank.accounts": 100_000 * branches, "bank.tellers": 10 * branches, "bank.branches": branches}
    for group in LOADER.groups(scale):
        [table] = group.rows
        last = Batch(group.name, group.batches - 1)
        for batch in {Batch(group.name, 0), last}:
            [(name, rows)] = LOADER.batch(5, scale, batch)
            assert name == table
            assert rows.column_names == [c.name for c in METADATA.tables[table].columns]
        # The last row of the last batch is the last of the table.
        assert rows.num_rows > 0
        [(_, rows)] = LOADER.batch(5, scale, last)
        assert rows[0][-1].as_py() == group.rows[table]


def test_numbers_balances_and_branches() -> None:
    rows = bank.accounts(1, 99_999, 2).to_pydict()
    assert rows["aid"] == [100_000, 100_001]
    assert rows["bid"] == [1, 2]
    assert rows["abalance"] == [0, 0]
    assert bank.tellers(1, 9, 2).to_pydict()["bid"] == [1, 2]
    assert [len(t) for t in bank.branches(1, 0, 2).to_pydict()["filler"]] == [88, 88]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "not nothing"),
        ({"branches": 0}, "0"),
        ({"branches": -1}, "-1"),
        ({"branches": 20_001}, "20001"),
        ({"branches": True}, "True"),
        ({"branches": 1.5}, "1.5"),
        ({"branches": "10"}, "'10'"),
        ({"branch": 10}, "'branch'"),
    ],
)
def test_an_impossible_scale_is_refused(given: dict, said: str) -> None:
    with pytest.raises(StallmarkError, match="branches") as refusal:
        LOADER.scale(given)
    assert said in str(refusal.value)


# Filler text: pure, and the same however a table is cut into batches


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
