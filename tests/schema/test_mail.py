"""Messages are pure functions of seed and number: sizes with the mean that is planned with, bodies that end."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.mail import FEWEST_MESSAGES, LEAST_BYTES, MEAN_BYTES, MOST_BYTES, leeway, messages
from stallmark.schema.mail.tables import METADATA

SEEDS = st.integers(0, 2**62)
COLUMNS = {name: getattr(messages, name) for name in ("sizes", "senders", "subjects")}


def test_sizes_have_their_mean_their_median_and_their_ends() -> None:
    sizes = messages.likely_sizes()
    assert sizes.mean() == pytest.approx(MEAN_BYTES, rel=1e-4)
    assert np.median(sizes) == pytest.approx(8_000, rel=0.05)
    assert (sizes.min(), sizes.max()) == (LEAST_BYTES, MOST_BYTES)
    assert 0.01 < (sizes > 1_000_000).mean() < 0.02
    assert (np.diff(sizes) >= 0).all()


@given(name=st.sampled_from(sorted(COLUMNS)), seed=SEEDS, numbers=st.lists(st.integers(0, 2**43 - 1), min_size=1))
def test_a_message_does_not_depend_on_the_others(name: str, seed: int, numbers: list[int]) -> None:
    make = COLUMNS[name]
    together = pa.array(make(seed, np.array(numbers))).to_pylist()
    assert together == [pa.array(make(seed, np.array([number]))).to_pylist()[0] for number in numbers]


@given(seed=SEEDS, number=st.integers(0, 2**43 - 1), lengths=st.lists(st.integers(100, 5_000), min_size=1, max_size=5))
def test_bodies_have_their_lengths_and_end_with_a_full_stop(seed: int, number: int, lengths: list[int]) -> None:
    numbers = number + np.arange(len(lengths))
    bodies = messages.bodies(seed, numbers, np.array(lengths), 2.0).to_pylist()
    assert [len(body) for body in bodies] == lengths
    assert all(body.endswith(".") and body.isascii() and body.isprintable() for body in bodies)
    assert bodies[0] == messages.bodies(seed, numbers[:1], np.array(lengths[:1]), 2.0)[0].as_py()


@pytest.mark.thorough
def test_neighbouring_large_bodies_have_nothing_in_common() -> None:
    """A body of 10 MB is drawn from more phrases than the texts of the news have."""
    one, other = messages.bodies(1, np.array([7, 8]), np.full(2, MOST_BYTES), 2.0).to_pylist()
    stretches = {one[start : start + 1024] for start in range(0, MOST_BYTES - 1024, 32)}
    assert not any(other[start : start + 1024] in stretches for start in range(0, MOST_BYTES - 1024, 32))


@pytest.mark.parametrize("column", ["me_sender", "me_subject", "mb_address", "fo_name"])
def test_stated_means_of_texts_are_those_of_the_loader(column: str) -> None:
    from stallmark.loaders import Batch
    from stallmark.loaders.mail import LOADER

    scale = LOADER.scale({"mailboxes": 3})
    for table, rows in LOADER.batch(1, scale, Batch("mailboxes", 0)):
        if column in rows.column_names:
            lengths = [len(text) for text in rows[column].to_pylist()]
            stated = METADATA.tables[table].columns[column]
            assert np.mean(lengths) == pytest.approx(stated.info["mean_bytes"], rel=0.05)
            assert max(lengths) <= stated.type.length  # type: ignore[attr-defined]
            return
    raise AssertionError(column)


def test_a_mailbox_is_never_empty() -> None:
    assert FEWEST_MESSAGES - leeway(FEWEST_MESSAGES) > 0
