"""I/Os that arrive at a rate: when each is due, and what they take on storage of known behaviour."""

import json
import os
import threading
import time
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.record.histogram import TOPS_US, VALUES_US, count
from stallmark.storage import arrivals
from stallmark.storage.arrivals import NOTHING, Arrivals, Plan, Report, Seconds, Threads, Work, documents, parse
from stallmark.storage.fio import SKIP_BYTES, WEB

SIZE = 2**26


def plan(rate: float = 500, outstanding: int = 4, seed: int = 7, blocks: dict[int, float] | None = None) -> Plan:
    return Plan("/file", "read", blocks or {8192: 1.0}, SIZE, outstanding, rate, seed)


@given(st.floats(0.1, 5000), st.integers(0, 2**31), st.floats(0, 1e6))
def test_they_come_in_order_at_the_rate_to_places_behind_the_mark(rate, seed, begin):
    coming = Arrivals(plan(rate, seed=seed, blocks=dict(WEB.blocks)), begin)
    taken = [coming.next_arrival() for _ in range(2000)]
    assert all(one.due <= other.due for one, other in pairwise(taken)) and taken[0].due > begin
    assert (taken[-1].due - begin) * rate == pytest.approx(2000, rel=0.15)
    assert all(SKIP_BYTES <= one.offset <= SIZE - one.bytes and one.offset % one.bytes == 0 for one in taken)
    small = np.mean([one.bytes <= 4096 for one in taken])
    assert small == pytest.approx(sum(share for size, share in WEB.blocks.items() if size <= 4096), abs=0.06)


@given(st.floats(1, 1000), st.integers(0, 1500), st.floats(0, 5))
def test_what_nobody_has_taken_waits_once_it_is_due(rate, taken, after):
    coming, again = (Arrivals(plan(rate), 100.0) for _ in range(2))
    last = max([coming.next_arrival().due for _ in range(taken)], default=100.0)
    moments = [again.next_arrival().due for _ in range(taken + 8000)]
    assert coming.due_by(last + after).tolist() == [due for due in moments[taken:] if due <= last + after]
    assert coming.next_arrival().due == moments[taken]


def test_a_plan_is_told_to_its_program_as_it_is():
    *_, text = plan(blocks=dict(WEB.blocks)).command(12.5)
    told = Plan.from_json(text)
    assert told.began == 12.5 and dict(told.blocks) == dict(WEB.blocks) and told.rate == 500


class Stalling:
    """Storage that ends no read until it is let go on."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()

    def read(self, file, parts, offset) -> int:
        self.goes_on.wait()
        return len(parts[0])


@pytest.fixture
def storage(monkeypatch) -> Stalling:
    stalling = Stalling()
    monkeypatch.setattr(os, "preadv", stalling.read)
    monkeypatch.setattr(arrivals, "_open", lambda asked: -1)
    return stalling


def reported(threads: Threads) -> Report:
    return parse(json.loads(json.dumps(threads.report())), "read")


@pytest.mark.parametrize("outstanding", [1, 4, 64])
def test_what_waits_for_a_thread_waits_for_the_storage(storage, outstanding):
    threads = Threads(plan(500, outstanding))
    time.sleep(0.3)
    storage.goes_on.clear()
    time.sleep(0.5)
    stalled = reported(threads)
    storage.goes_on.set()
    time.sleep(0.3)
    threads.stop()
    after = reported(threads)
    assert stalled.waiting is not None and after.waiting is not None
    assert stalled.waiting.sum() > 150 and after.waiting.sum() < 100, "those of half a second"
    ended = after.work.latency_us - stalled.work.latency_us
    assert ended / 1e6 > 0.5 * 0.2 * 250, "each has waited for a quarter of a second in the mean"


def test_what_never_ends_is_told_with_the_time_it_has_waited(storage, monkeypatch):
    monkeypatch.setattr(arrivals, "GRACE_S", 1.1)
    storage.goes_on.clear()
    threads = Threads(plan(500, 2))
    time.sleep(0.4)
    threads.stop()
    report = reported(threads)
    storage.goes_on.set()
    assert report.work.ios == 0 and report.waiting is not None and report.waiting.sum() > 100


# The reports of a running fio, and the seconds that they are of


NOTES = st.text(st.characters(codec="ascii", exclude_characters="{}\r\n"), min_size=1, max_size=30).filter(str.strip)
VALUES = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20), max_size=4)
BINS = st.dictionaries(st.integers(0, 10**12), st.integers(1, 10**6), max_size=30)


def document(bins: dict[int, int], *, mean: float = 0.0, size: int = 0, runtime: int = 1000) -> dict:
    """Return a report like those of fio 3.33, without what is not read."""
    done = {"io_bytes": size, "runtime": runtime, "total_ios": 0}
    done["lat_ns"] = {"mean": mean, "N": sum(bins.values()), **({"bins": bins} if bins else {})}
    return {"fio version": "fio-3.33", "jobs": [{"error": 0, "read": done, "write": {}}]}


def work(*us: int) -> Work:
    return Work(len(us) * 4096, sum(us), count(np.array(us, dtype=np.int64), np.ones(len(us))))


@given(st.lists(NOTES | VALUES, max_size=12))
def test_documents_and_notes_come_as_they_were_written(parts):
    text = "".join(f"{part}\n" if isinstance(part, str) else json.dumps({"a": part}, indent=2) + "\n" for part in parts)
    found = list(documents(StringIO(text)))
    assert found == [part.strip() if isinstance(part, str) else {"a": part} for part in parts]


@given(VALUES, st.data())
def test_a_document_that_was_cut_is_left_out(values, data):
    lines = json.dumps({"a": values}, indent=2).splitlines(keepends=True)
    cut = data.draw(st.integers(1, len(lines) - 1))
    assert list(documents(iter(lines[:cut]))) == []


@given(BINS, st.floats(0, 1e12), st.integers(0, 2**50))
def test_a_report_has_all_ios_with_their_bytes_and_times(bins, mean, size):
    report = parse(json.loads(json.dumps(document(bins, mean=mean, size=size))), "read")
    assert (report.work.ios, report.work.bytes, report.seconds) == (sum(bins.values()), size, 1.0)
    assert report.work.latency_us == pytest.approx(mean * sum(bins.values()) / 1000, abs=0.6)
    for ns, ios in bins.items():
        us = min(max(ns // 1000, 1), 3_600_000_000)
        [place] = np.flatnonzero((us >= VALUES_US) & (us <= TOPS_US))
        assert report.work.buckets[place] >= ios


@given(BINS)
def test_a_report_of_ios_at_a_rate_has_what_still_waits(bins):
    waiting = parse(json.loads(json.dumps(document({}) | {"waiting": bins})), "read").waiting
    assert waiting is not None and waiting.sum() == sum(bins.values())
    assert parse(document(bins), "read").waiting is None


@pytest.mark.parametrize("broken", [{}, {"jobs": []}, {"jobs": [{}]}, {"jobs": [{"error": 0, "read": {"lat_ns": 1}}]}])
def test_what_is_not_fios_is_refused(broken):
    with pytest.raises(StallmarkError, match=r"fio 3\.0"):
        parse(broken, "read")


@given(
    st.floats(0, 50),
    st.lists(st.tuples(st.floats(0.01, 4), st.lists(st.integers(1, 10**6), max_size=30)), min_size=1, max_size=8),
)
def test_nothing_is_lost_or_doubled_between_seconds(begin, windows):
    seconds, all_of_it, t = Seconds(), NOTHING, begin
    for length, us in windows:
        seconds.add(t, t + length, work(*us))
        all_of_it, t = all_of_it + work(*us), t + length
    early = seconds.pop_ended(t)
    assert all(second + 1 <= t for second, _ in early)
    found = early + seconds.pop_ended(float("inf"))
    assert [second for second, _ in found] == sorted({second for second, _ in found})
    assert found[0][0] == int(begin) and found[-1][0] <= int(t)
    total = sum((each for _, each in found), NOTHING)
    assert (total.bytes, total.latency_us) == (all_of_it.bytes, all_of_it.latency_us)
    assert np.array_equal(total.buckets, all_of_it.buckets)
    assert all((each.buckets >= 0).all() for _, each in found)


def test_a_stretch_over_seconds_is_spread_evenly_fast_and_slow_alike():
    seconds = Seconds()
    seconds.add(10.5, 12.5, work(*[100] * 400, *[9000] * 400))
    found = dict(seconds.pop_ended(float("inf")))
    assert [found[second].ios for second in (10, 11, 12)] == [200, 400, 200]
    for second in (10, 11, 12):
        slow = found[second].buckets[VALUES_US > 1000].sum()
        assert slow == found[second].ios / 2


def test_a_second_is_held_back_until_it_is_over():
    seconds = Seconds()
    seconds.add(3.2, 4.4, work(100, 100))
    assert [second for second, _ in seconds.pop_ended(4.4)] == [3]
    assert [second for second, _ in seconds.pop_ended(4.4)] == []
