"""I/Os that arrive at a rate: when each is due, and what they take on storage of known behaviour."""

import json
import os
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.storage.probe.fio import SKIP_BYTES
from stallmark.storage.probe.patterns import WEB
from stallmark.storage.raw_load import arrivals
from stallmark.storage.raw_load.arrivals import Arrivals, Plan, Report, Threads, parse

SIZE = 2**26


def plan(rate: float = 500, outstanding: int = 4, seed: int = 7, blocks: dict[int, float] | None = None) -> Plan:
    return Plan("/file", "read", blocks or {8192: 1.0}, SIZE, outstanding, rate, seed)


@given(st.floats(0.1, 5000), st.integers(0, 2**31), st.floats(0, 1e6))
def test_they_come_in_order_at_the_rate_to_places_behind_the_mark(rate, seed, begin):
    coming = Arrivals(plan(rate, seed=seed, blocks=dict(WEB.blocks)), begin)
    taken = [coming.take() for _ in range(2000)]
    assert all(one.due <= other.due for one, other in pairwise(taken)) and taken[0].due > begin
    assert (taken[-1].due - begin) * rate == pytest.approx(2000, rel=0.15)
    assert all(SKIP_BYTES <= one.offset <= SIZE - one.bytes and one.offset % one.bytes == 0 for one in taken)
    small = np.mean([one.bytes <= 4096 for one in taken])
    assert small == pytest.approx(sum(share for size, share in WEB.blocks.items() if size <= 4096), abs=0.06)


@given(st.floats(1, 1000), st.integers(0, 1500), st.floats(0, 5))
def test_what_nobody_has_taken_waits_once_it_is_due(rate, taken, after):
    coming, again = (Arrivals(plan(rate), 100.0) for _ in range(2))
    last = max([coming.take().due for _ in range(taken)], default=100.0)
    moments = [again.take().due for _ in range(taken + 8000)]
    assert coming.due_by(last + after).tolist() == [due for due in moments[taken:] if due <= last + after]
    assert coming.take().due == moments[taken]


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
