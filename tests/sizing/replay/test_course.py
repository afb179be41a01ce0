"""The I/Os of a level: as many, as large and when the profile had them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.replays import READS_20, a_piece, a_window

from stallmark.sizing.replay import judge_level
from stallmark.sizing.replay_io import (
    LEAST_PIECE_S,
    STREAMS,
    USUAL_BYTES,
    WARM_UP_S,
    Due,
    Issued,
    _issued_ios,
    data_sizes,
    deal,
    due_ios,
    length_s,
    log_sizes,
    pieces_of,
    spans_of,
)
from stallmark.stats.ceiling_search import Next, Why

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
    found = due_ios(pieces, stream, multiple, 512, rng())
    assert np.all(np.diff(found.moments_s) >= 0) and len(found.moments_s) == len(found.bytes)
    begin = WARM_UP_S
    for piece in pieces:
        here = ((found.moments_s >= begin) & (found.moments_s < begin + piece.seconds)).sum()
        assert here == pytest.approx(piece.seconds * getattr(piece, ios) * multiple, abs=1.01)
        begin += piece.seconds
    assert begin == pytest.approx(length_s(pieces)) and found.moments_s.max(initial=0) < begin


@given(st.integers(1, 5000), st.floats(USUAL_BYTES[0], USUAL_BYTES[-1]))
def test_two_sizes_are_mixed_so_that_their_mean_is_the_profiles(count, mean):
    sizes = data_sizes(count, mean, 4096)
    assert len(sizes) == count and set(sizes.tolist()) <= set(USUAL_BYTES)
    step = USUAL_BYTES[1] - USUAL_BYTES[0] if mean <= USUAL_BYTES[1] else USUAL_BYTES[2] - USUAL_BYTES[1]
    assert abs(sizes.sum() - count * mean) <= step / 2 + 1


@given(st.floats(1, 8191) | st.floats(USUAL_BYTES[-1] + 1, 2**22), st.sampled_from([512, 4096]))
def test_other_sizes_are_the_mean_in_whole_sectors(mean, sector):
    [size] = set(data_sizes(7, mean, sector).tolist())
    assert size % sector == 0 and size > 0 and abs(size - mean) <= max(sector / 2, sector - mean)


@given(st.floats(1, 2**20), st.sampled_from([512, 4096, 8192]))
def test_writes_of_the_log_are_whole_pages_and_none_too_small(mean, sector):
    [size] = set(log_sizes(3, mean, sector).tolist())
    assert size % max(sector, 4096) == 0 and mean <= size < mean + max(sector, 4096)


def test_fewer_flushes_write_the_same_bytes():
    pieces = [a_piece(10, log_writes=400, log=8192)]
    all_of_it, grouped = (due_ios(pieces, "log", 1.5, 512, rng(), most) for most in (np.inf, 150))
    assert len(all_of_it) == 7200 and len(grouped) == 1800
    assert grouped.bytes.sum() == pytest.approx(all_of_it.bytes.sum(), rel=0.01)


def test_moments_are_random_and_those_of_another_seed_are_others():
    pieces = [a_piece(100, reads=100)]
    found = due_ios(pieces, "reads", 1, 512, rng())
    counts = np.bincount(found.moments_s.astype(int))
    assert 0.6 < counts.var() / counts.mean() < 1.5, "Poisson"
    assert not np.array_equal(found.moments_s, due_ios(pieces, "reads", 1, 512, np.random.default_rng(2)).moments_s)


# An I/O of a replay takes from when it was due until it ended: what waits for a thread waits for the storage


SECONDS = 300
SPANS = spans_of([a_window(a_piece(SECONDS))], 1.0)
NONE = _issued_ios(Due(np.empty(0), np.empty(0, dtype=np.int64)), [], 0.0)


def reads_at(per_s: int) -> Due:
    """Reads of 8 KiB, evenly spaced, warm-up included."""
    moments = np.arange((WARM_UP_S + SECONDS) * per_s) / per_s
    return Due(moments, np.full(len(moments), 8192))


def played(due: Due, threads: int, stands_still, read_ms: float = 0.1) -> Issued:
    """Reads as fio notes them on storage that ends no I/O while `stands_still`; a thread issues one at a time."""
    parts = []
    for part in deal(due, threads):
        ended, took, free = [], [], 0.0
        for moment in due.moments_s[part]:
            issued = max(moment, free)
            free = stands_still(issued) + read_ms / 1000
            ended.append(free * 1000)
            took.append((free - issued) * 1000)
        parts.append((part, (np.array(ended), np.array(took))))
    return _issued_ios(due, parts, due.moments_s[-1] + 0.5)


def half_a_second_in_five(moment: float) -> float:
    """When storage that stands still in the first half second of every five goes on."""
    return moment - moment % 5 + 0.5 if moment % 5 < 0.5 else moment


def level(reads: Issued):
    streams = {"reads": reads, "writes": NONE, "log": NONE}
    return judge_level(Next(1.0, Why.FIRST), [streams], SPANS, READS_20, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [2, 20, 256])
def test_storage_that_stands_still_is_judged_the_same_however_many_threads_wait(threads):
    reads = played(reads_at(300), threads, half_a_second_in_five)
    seen = level(reads)
    mean, slow = seen.limits
    assert mean.value == pytest.approx(25.1, rel=0.04) and slow.value == pytest.approx(0.097, abs=0.002)
    assert seen.verdict == "broke" and not seen.backlog and seen.streams[0].mean_ms == pytest.approx(mean.value)
    from_issue = reads.ms[reads.due.moments_s >= WARM_UP_S].mean()
    assert from_issue < mean.value if threads < 150 else from_issue == pytest.approx(mean.value)


def test_what_has_not_ended_took_longer_than_any_limit():
    due = reads_at(100)
    reads = played(due, 10, lambda moment: moment)
    unended = due.moments_s >= due.moments_s[-1] - 4
    ms = np.where(unended, np.nan, reads.ms)
    late = np.where(unended, np.inf, reads.late_s)
    seen = level(Issued(due, ms, late, reads.stop_s))
    assert seen.limits[1].value == pytest.approx(unended.sum() / (SECONDS * 100))
    assert seen.limits[0].value == pytest.approx(0.1 + seen.limits[1].value * 2500, rel=0.01)
    assert seen.streams[0].ios == SECONDS * 100 - unended.sum() and seen.streams[0].wanted == SECONDS * 100


def as_fio_notes(due: Due, threads: int, read_ms: float, late_ms: float = 0.0) -> Issued:
    """Reads on storage that is never busy, with moments in the whole ms of fio's lists and logs."""
    parts = []
    for part in deal(due, threads):
        issued_ms = np.round(due.moments_s[part] * 1000) + late_ms * (np.arange(len(due.moments_s[part])) % 2)
        parts.append((part, (np.floor(issued_ms + read_ms + 0.37), np.full(len(issued_ms), read_ms))))
    return _issued_ios(due, parts, due.moments_s[-1] + 0.5)


@pytest.mark.parametrize("threads", [2, 20])
def test_the_whole_ms_of_fios_clock_are_not_time_of_the_storage(threads):
    rng = np.random.default_rng(3)
    moments = np.sort(rng.uniform(0, WARM_UP_S + SECONDS, 30_000))
    reads = as_fio_notes(Due(moments, np.full(len(moments), 8192)), threads, 0.09)
    assert reads.since_due_ms.mean() == pytest.approx(0.09, abs=0.02)


def test_what_fio_itself_issued_late_counts_beyond_its_clock():
    reads = as_fio_notes(reads_at(10), 2, 0.09, late_ms=50.0)
    assert reads.since_due_ms.max() == pytest.approx(50.0, abs=1.1)
