"""The I/Os of a level: as many, as large and when the profile had them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.replays import a_piece, a_window

from stallmark.storage.replay.play import (
    LEAST_PIECE_S,
    STREAMS,
    USUAL_BYTES,
    WARM_UP_S,
    due,
    length_s,
    mixed,
    pieces_of,
    written,
)

RATES = st.floats(0, 40)
PIECES = st.lists(
    st.builds(a_piece, seconds=st.floats(1, 20), reads=RATES, writes=RATES, log_writes=RATES), min_size=1, max_size=8
)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@given(PIECES, st.floats(0.05, 1))
def test_pieces_are_long_enough_and_lose_nothing(pieces, played):
    window = a_window(*pieces)
    found = pieces_of([window], played)
    assert sum(one.seconds for one in found) == pytest.approx(window.seconds * played)
    assert all(one.seconds >= LEAST_PIECE_S * 0.999 for one in found) or len(found) == 1
    for name in ("reads", "write_bytes", "log_writes"):
        assert sum(one.seconds * getattr(one, name) for one in found) == pytest.approx(
            played * sum(one.seconds * getattr(one, name) for one in pieces)
        )


@given(PIECES, st.sampled_from(STREAMS), st.floats(0.25, 4))
def test_all_ios_of_the_profile_are_due_in_the_time_that_had_them(pieces, stream, multiple):
    ios = {"reads": "reads", "writes": "writes", "log": "log_writes"}[stream]
    found = due(pieces, stream, multiple, 512, rng())
    assert np.all(np.diff(found.at) >= 0) and len(found.at) == len(found.bytes)
    begin = WARM_UP_S
    for piece in pieces:
        here = ((found.at >= begin) & (found.at < begin + piece.seconds)).sum()
        assert here == pytest.approx(piece.seconds * getattr(piece, ios) * multiple, abs=1.01)
        begin += piece.seconds
    assert begin == pytest.approx(length_s(pieces)) and found.at.max(initial=0) < begin


@given(st.integers(1, 5000), st.floats(USUAL_BYTES[0], USUAL_BYTES[-1]))
def test_two_sizes_are_mixed_so_that_their_mean_is_the_profiles(count, mean):
    sizes = mixed(count, mean, 4096)
    assert len(sizes) == count and set(sizes.tolist()) <= set(USUAL_BYTES)
    step = USUAL_BYTES[1] - USUAL_BYTES[0] if mean <= USUAL_BYTES[1] else USUAL_BYTES[2] - USUAL_BYTES[1]
    assert abs(sizes.sum() - count * mean) <= step / 2 + 1


@given(st.floats(1, 8191) | st.floats(USUAL_BYTES[-1] + 1, 2**22), st.sampled_from([512, 4096]))
def test_other_sizes_are_the_mean_in_whole_sectors(mean, sector):
    [size] = set(mixed(7, mean, sector).tolist())
    assert size % sector == 0 and size > 0 and abs(size - mean) <= max(sector / 2, sector - mean)


@given(st.floats(1, 2**20), st.sampled_from([512, 4096, 8192]))
def test_writes_of_the_log_are_whole_pages_and_none_too_small(mean, sector):
    [size] = set(written(3, mean, sector).tolist())
    assert size % max(sector, 4096) == 0 and mean <= size < mean + max(sector, 4096)


def test_fewer_flushes_write_the_same_bytes():
    pieces = [a_piece(10, log_writes=400, log=8192)]
    all_of_it, grouped = (due(pieces, "log", 1.5, 512, rng(), most) for most in (np.inf, 150))
    assert len(all_of_it) == 7200 and len(grouped) == 1800
    assert grouped.bytes.sum() == pytest.approx(all_of_it.bytes.sum(), rel=0.01)


def test_moments_are_random_and_those_of_another_seed_are_others():
    pieces = [a_piece(100, reads=100)]
    found = due(pieces, "reads", 1, 512, rng())
    counts = np.bincount(found.at.astype(int))
    assert 0.6 < counts.var() / counts.mean() < 1.5, "Poisson"
    assert not np.array_equal(found.at, due(pieces, "reads", 1, 512, np.random.default_rng(2)).at)
