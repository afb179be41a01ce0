"""Texts and pairs have the codes in the order in which they were met, whatever batches they come in."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.read import rises
from stallmark.analysis.read.rises import NONE, Codes, PairCodes

texts = st.lists(st.lists(st.none() | st.sampled_from("abcdef"), max_size=8), max_size=6)
pairs = st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8), max_size=6)


@given(texts, st.booleans())
def test_a_text_has_one_code_in_all_batches(batches, encoded):
    found, seen = Codes(), []
    for rows in batches:
        column = pa.array(rows, pa.string())
        batch = pa.record_batch({"name": column.dictionary_encode() if encoded else column})
        told = found.codes(batch, "name")
        seen += [row if row is not None else NONE for row in rows]
        assert [found.names[code] for code in told] == [row if row is not None else NONE for row in rows]
    assert len(found.names) == len(set(found.names)) and set(found.names) == set(seen)


def test_a_dictionary_may_hold_what_no_row_has():
    found = Codes()
    column = pa.DictionaryArray.from_arrays([1, 1, 2], ["other", "read", "write"])
    assert found.codes(pa.record_batch({"name": column}), "name").tolist() == [0, 0, 1]
    assert found.names == ["read", "write"]


@pytest.mark.parametrize("dense", [rises.DENSE, 9])
@given(batches=pairs)
def test_a_pair_has_one_code_in_all_batches(dense, batches):
    found, known = PairCodes(), {}
    before, rises.DENSE = rises.DENSE, dense
    try:
        for rows in batches:
            first, second = np.array(rows, dtype=np.int64).reshape(-1, 2).T
            told = found.codes(first, second)
            assert told.tolist() == [known.setdefault(row, len(known)) for row in rows]
            assert found.pairs == list(known) and len(found) == len(known)
    finally:
        rises.DENSE = before
