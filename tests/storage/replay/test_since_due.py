"""An I/O of a replay takes from when it was due until it ended: what waits for a thread waits for the storage."""

import numpy as np
import pytest
from support.replays import READS_20, a_piece, a_window

from stallmark.stats.ceiling_search import Next, Why
from stallmark.storage.replay.play import WARM_UP_S, Due, Issued, _issued, dealt, spans_of
from stallmark.storage.replay.search import judged

SECONDS = 300
SPANS = spans_of([a_window(a_piece(SECONDS))], 1.0)
NONE = _issued(Due(np.empty(0), np.empty(0, dtype=np.int64)), [], 0.0)


def reads_at(per_s: int) -> Due:
    """Reads of 8 KiB, evenly spaced, warm-up included."""
    moments = np.arange((WARM_UP_S + SECONDS) * per_s) / per_s
    return Due(moments, np.full(len(moments), 8192))


def played(due: Due, threads: int, stands_still, read_ms: float = 0.1) -> Issued:
    """Reads as fio notes them on storage that ends no I/O while `stands_still`; a thread issues one at a time."""
    parts = []
    for part in dealt(due, threads):
        ended, took, free = [], [], 0.0
        for moment in due.at[part]:
            issued = max(moment, free)
            free = stands_still(issued) + read_ms / 1000
            ended.append(free * 1000)
            took.append((free - issued) * 1000)
        parts.append((part, (np.array(ended), np.array(took))))
    return _issued(due, parts, due.at[-1] + 0.5)


def half_a_second_in_five(moment: float) -> float:
    """When storage that stands still in the first half second of every five goes on."""
    return moment - moment % 5 + 0.5 if moment % 5 < 0.5 else moment


def level(reads: Issued):
    streams = {"reads": reads, "writes": NONE, "log": NONE}
    return judged(Next(1.0, Why.FIRST), [streams], SPANS, READS_20, "mean", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [2, 20, 256])
def test_storage_that_stands_still_is_judged_the_same_however_many_threads_wait(threads):
    reads = played(reads_at(300), threads, half_a_second_in_five)
    seen = level(reads)
    mean, slow = seen.limits
    assert mean.value == pytest.approx(25.1, rel=0.04) and slow.value == pytest.approx(0.097, abs=0.002)
    assert seen.verdict == "broke" and not seen.backlog and seen.streams[0].mean_ms == pytest.approx(mean.value)
    from_issue = reads.ms[reads.due.at >= WARM_UP_S].mean()
    assert from_issue < mean.value if threads < 150 else from_issue == pytest.approx(mean.value)


def test_what_has_not_ended_took_longer_than_any_limit():
    due = reads_at(100)
    reads = played(due, 10, lambda moment: moment)
    unended = due.at >= due.at[-1] - 4
    ms = np.where(unended, np.nan, reads.ms)
    late = np.where(unended, np.inf, reads.late_s)
    seen = level(Issued(due, ms, late, reads.stop_s))
    assert seen.limits[1].value == pytest.approx(unended.sum() / (SECONDS * 100))
    assert seen.limits[0].value == pytest.approx(0.1 + seen.limits[1].value * 2500, rel=0.01)
    assert seen.streams[0].ios == SECONDS * 100 - unended.sum() and seen.streams[0].wanted == SECONDS * 100


def as_fio_notes(due: Due, threads: int, read_ms: float, late_ms: float = 0.0) -> Issued:
    """Reads on storage that is never busy, with moments in the whole ms of fio's lists and logs."""
    parts = []
    for part in dealt(due, threads):
        issued_ms = np.round(due.at[part] * 1000) + late_ms * (np.arange(len(due.at[part])) % 2)
        parts.append((part, (np.floor(issued_ms + read_ms + 0.37), np.full(len(issued_ms), read_ms))))
    return _issued(due, parts, due.at[-1] + 0.5)


@pytest.mark.parametrize("threads", [2, 20])
def test_the_whole_ms_of_fios_clock_are_not_time_of_the_storage(threads):
    rng = np.random.default_rng(3)
    moments = np.sort(rng.uniform(0, WARM_UP_S + SECONDS, 30_000))
    reads = as_fio_notes(Due(moments, np.full(len(moments), 8192)), threads, 0.09)
    assert reads.since_due_ms.mean() == pytest.approx(0.09, abs=0.02)


def test_what_fio_itself_issued_late_counts_beyond_its_clock():
    reads = as_fio_notes(reads_at(10), 2, 0.09, late_ms=50.0)
    assert reads.since_due_ms.max() == pytest.approx(50.0, abs=1.1)
