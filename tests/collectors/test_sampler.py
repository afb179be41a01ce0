"""The sampler with a clock of the test's own, and once with a server that is killed under it."""

import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import Cluster, ClusterEngine
from support.manifests import a_manifest
from support.simulated_time import Time
from support.waiting import eventually

from stallmark.collectors import collectors_for
from stallmark.collectors import sampler as sampler_module
from stallmark.collectors.sampler import Collector, Outage, Row, Sampler, Ticks
from stallmark.errors import StallmarkError
from stallmark.experiment.any_run import _write_down
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter, Rows


class Probe(Collector):
    """Says when it was asked; `during` is what happens meanwhile."""

    name, title, help = "probe", "Probe", "Probes."
    columns = pa.schema([("asked", pa.float64())])

    def __init__(self, during: Callable[[float], None] = lambda now: None):
        self.during = during
        self.asked: list[float] = []
        self.events: list[str] = []

    def open(self) -> None:
        self.events.append("open")

    def sample(self, now: float) -> list[Row]:
        self.asked.append(now)
        self.during(now)
        return [{"asked": now}]

    def close(self) -> None:
        self.events.append("close")


class Poll(Probe):
    name = "poll"
    interval_s = 0.1
    polling = True

    def sample(self, now: float) -> list[Row]:
        super().sample(now)
        return []

    def finish(self) -> list[Row]:
        return [{"asked": -1.0}]


class Answered(Probe):
    """The same as a probe says, as the rows of a query."""

    def sample(self, now: float) -> Rows:
        return Rows(["asked"], [tuple(row.values()) for row in super().sample(now)])


class Tables(defaultdict[str, list[Row]]):
    def __init__(self) -> None:
        super().__init__(list)

    def store(self, name: str, rows: Sequence[Row]) -> None:
        self[name].extend(rows)


def run(time: Time, *collectors: Collector, store: Callable[..., None] | None = None) -> tuple[Sampler, Tables]:
    tables = Tables()
    sampler = Sampler(collectors, store or tables.store, time.clock, wait=time.wait)
    time.threads = len(collectors)
    sampler.start()
    for lane in sampler._lanes:  # the test's clock ends them
        lane.thread.join()
    sampler.stop()
    return sampler, tables


# When


def test_samples_at_once_at_every_whole_interval_and_at_the_end() -> None:
    probe = Probe()
    time = Time(until=3.6)
    time.now = 0.25
    sampler, tables = run(time, probe)
    assert probe.asked == [0.25, 1.0, 2.0, 3.0, 4.0]
    assert [row["t"] for row in tables["probe"]] == probe.asked
    assert probe.events == ["open", "close"]
    assert sampler.failures == [] and sampler.missed["probe"] == 0


def test_the_rows_of_a_query_are_stored_as_mappings_are(tmp_path: Path) -> None:
    tables = []
    for kind in (Probe, Answered):
        writer = RecordWriter(tmp_path / kind.__name__, a_manifest())
        writer.add_table("probe", pa.schema([*SAMPLED, *kind.columns]))
        run(Time(until=3.6), kind(), store=writer.append)
        assert writer.close() is None
        tables.append(Record(writer.folder).table("probe"))
    assert tables[0].column("asked").to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert tables[0].equals(tables[1], check_metadata=True)


@given(st.lists(st.floats(0, 0.9), min_size=20, max_size=20))
def test_being_late_never_adds_up(lateness: list[float]) -> None:
    probe = Probe()
    lates = iter([*lateness, *[0.0] * 5])
    sampler, _ = run(Time(until=18.5, late=lambda: next(lates)), probe)
    assert [int(asked) for asked in probe.asked[:-1]] == list(range(len(probe.asked) - 1))
    assert all(late in (0.0, *lateness) or late < 0.9 + 1e-9 for late in (asked % 1 for asked in probe.asked))
    assert sampler.missed["probe"] == 0


def test_missed_ticks_are_passed_over_and_counted() -> None:
    time = Time(until=8.5)

    def slow_once(now: float) -> None:
        if now == 2.0:
            time.now += 3.4

    probe = Probe(slow_once)
    sampler, tables = run(time, probe)
    assert probe.asked[:-1] == [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]
    assert sampler.missed["probe"] == 3  # at 3, 4 and 5
    assert tables["probe"][2]["t"] == pytest.approx(3.7)  # the middle of a sample that took from 2.0 to 5.4


def test_a_slow_collector_delays_no_other() -> None:
    """One view takes 5 s each time, one login 11.6 s."""

    class Slow(Probe):
        name = "slow"
        interval_s = 2.0

    class Late(Probe):
        name = "late"

        def open(self) -> None:
            super().open()
            time.sleep(11.6)

    time = Time(until=20.5)
    probe, slow, late = Probe(), Slow(lambda now: time.sleep(5.0)), Late()
    sampler, tables = run(time, probe, slow, late)
    assert [round(asked) for asked in probe.asked[:21]] == list(range(21)) and sampler.missed["probe"] == 0
    assert slow.asked[:4] == [0.0, 5.0, 12.0, 18.0] and sampler.missed["slow"] > 0
    assert [row["took_s"] for row in tables["slow"]] == [pytest.approx(5.0)] * len(slow.asked)
    first = tables["late"][0]
    assert (first["t"], first["took_s"]) == (11.6, 0.0)  # a login is no part of a call


def test_a_polling_collector_looks_once_in_every_slot_at_random() -> None:
    poll = Poll()
    sampler, tables = run(Time(until=10.0), poll)
    slots = [int(asked * 10) for asked in poll.asked]
    assert slots == list(range(1, 100))
    assert len({round(asked * 10 % 1, 6) for asked in poll.asked}) > 50
    assert [row["asked"] for row in tables["poll"]] == [-1.0]  # what it held is stored, and nothing more is asked
    assert sampler.missed["poll"] == 0


def test_a_poll_that_reaches_into_the_next_slot_costs_no_poll() -> None:
    time = Time(until=10.0)

    def take_half_a_slot(now: float) -> None:
        time.now += 0.05

    poll = Poll(take_half_a_slot)
    sampler, _ = run(time, poll)
    assert [int(asked * 10 + 1e-6) for asked in poll.asked] == list(range(1, len(poll.asked) + 1))
    assert sampler.missed["poll"] == 0


@given(st.floats(0.01, 10), st.floats(0, 100), st.lists(st.floats(0, 50), max_size=30), st.booleans())
def test_ticks_come_in_order_and_none_is_lost_uncounted(
    interval: float, start: float, pauses: list[float], jittered: bool
) -> None:
    ticks = Ticks(interval, start, (lambda: 0.5) if jittered else None)
    first, now, seen = ticks.due, start, 1
    for pause in pauses:
        previous = ticks.due
        now = max(now, previous) + pause
        ticks.advance(now)
        seen += 1
        assert ticks.due > previous
        assert jittered or ticks.due >= now - 1e-6
    assert seen + ticks.missed == 1 + round((ticks.due - first) / interval)


# Failures


def failing(*when: float, error: Callable[[], Exception] = lambda: StallmarkError("the disk is on fire.")):
    def during(now: float) -> None:
        if now in when:
            raise error()

    return during


def test_an_outage_is_reported_once_and_ends() -> None:
    class Other(Probe):
        name = "other"

    probe, other = Probe(failing(2.0, 3.0, 4.0)), Other()
    sampler, tables = run(Time(until=6.5), probe, other)
    assert sampler.failures == [Outage("probe", 2.0, "the disk is on fire", 5.0)]
    assert [row["asked"] for row in tables["probe"]] == [0.0, 1.0, 5.0, 6.0, 7.0]
    assert probe.events == ["open"] * 4 + ["close"]
    assert len(other.asked) == 8


def test_every_outage_is_reported() -> None:
    sampler, _ = run(Time(until=6.5), Probe(failing(2.0, 5.0, 6.0, 7.0)))
    assert [(failure.since, failure.until) for failure in sampler.failures] == [(2.0, 3.0), (5.0, None)]


def test_what_the_rows_lack_is_written_down(tmp_path: Path) -> None:
    probe = Probe()
    probe.incomplete = "3 lines could not be read"
    sampler, tables = run(Time(until=2.0), probe, Poll())
    assert tables["probe"] and sampler.failures == [] and sampler.incomplete == {"probe": probe.incomplete}
    described = {kind.name: {"title": kind.title} for kind in (Probe, Poll)}
    writer = RecordWriter(tmp_path / "run", a_manifest(collectors=described))
    _write_down(sampler, writer)
    writer.close()
    recorded = Record(writer.folder).manifest.collectors
    assert (recorded["probe"].incomplete, recorded["poll"].incomplete) == (probe.incomplete, None)


def test_a_mistake_of_ours_is_a_sentence_too() -> None:
    sampler, _ = run(Time(until=1.5), Probe(failing(1.0, error=lambda: KeyError("reads"))))
    assert "'reads' (KeyError)" in sampler.failures[0].reason


def test_a_collector_that_cannot_open_is_tried_again() -> None:
    class Shy(Probe):
        def open(self) -> None:
            super().open()
            if len(self.events) < 3:
                raise StallmarkError("not yet")

    shy = Shy()
    sampler, _ = run(Time(until=3.5), shy)
    assert shy.asked == [2.0, 3.0, 4.0]
    assert [(failure.since, failure.until) for failure in sampler.failures] == [(0.0, 2.0)]


def test_rows_that_cannot_be_stored_are_no_secret() -> None:
    def full(name: str, rows: Sequence[Row]) -> None:
        raise OSError(28, "No space left on device")

    sampler, _ = run(Time(until=3.5), Probe(), store=full)
    [failure] = sampler.failures
    assert "No space left on device" in failure.reason and failure.until is None


def test_a_collector_that_hangs_does_not_hang_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "LAST_ANSWER_S", 0.1)
    release, tables = threading.Event(), Tables()
    probe = Probe(lambda now: None if len(probe.asked) == 1 else release.wait() and None)
    sampler = Sampler([probe], tables.store, time.monotonic)
    sampler.start()
    sampler.stop()
    assert "no answer within" in sampler.failures[0].reason
    stored = len(tables["probe"])
    release.set()
    sampler._lanes[0].thread.join()
    assert len(tables["probe"]) == stored == 1  # the record may be closed by now


def test_stop_is_safe_before_start_and_twice() -> None:
    sampler = Sampler([Probe()], Tables().store, time.monotonic)
    sampler.stop()
    sampler.stop()
    assert sampler.failures == []


# Cost


def test_own_cost_is_stored_for_every_collector() -> None:
    def work(now: float) -> None:
        end = time.thread_time_ns() + 2_000_000
        while time.thread_time_ns() < end:
            pass

    _, tables = run(Time(until=3.5), Probe(work))
    costs = tables["collector_cost"]
    assert {cost["collector"] for cost in costs} == {"probe"}
    assert sum(cost["cpu_us"] for cost in costs) >= 5 * 2000
    assert sum(cost["wall_us"] for cost in costs) >= 5 * 2000
    assert [cost["t"] for cost in costs] == sorted({cost["t"] for cost in costs})


# With a server


def noted(name: str, sample: Callable[[float], list[Row]], asked: set[str], now: float) -> list[Row]:
    rows = sample(now)
    asked.add(name)
    return rows


def test_a_run_lands_in_the_record(engine: ClusterEngine, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    collectors = [collector for collector in collectors_for(engine) if collector.unavailable() is None]
    writer = RecordWriter(tmp_path / "run", a_manifest())
    for collector in collectors:
        writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
    began, asked = time.monotonic(), set[str]()
    for collector in collectors:
        monkeypatch.setattr(collector, "sample", partial(noted, collector.name, collector.sample, asked))
    sampler = Sampler(collectors, writer.append, lambda: time.monotonic() - began)
    user = engine.connect("stallmark-user")
    sampler.start()
    eventually(lambda: len(asked) == len(collectors))
    sampler.stop()
    user.close()
    writer.close()
    assert sampler.failures == []
    record = Record(tmp_path / "run")
    for collector in collectors:
        rows = record.table(collector.name).to_pylist()
        if collector.name != "relations":  # there may be no table
            assert rows, collector.name
        if not collector.polling and rows:
            assert len({row["t"] for row in rows}) >= 2
    assert set(record.table("collector_cost")["collector"].to_pylist()) == {c.name for c in collectors}
    assert {row["wait_class"] for row in record.table("waits").to_pylist()} == {"client"}


def test_a_killed_server_is_a_gap_with_a_reason(cluster: Cluster, engine: ClusterEngine) -> None:
    tables = Tables()
    began = time.monotonic()
    collectors = [collector for collector in collectors_for(engine) if collector.unavailable() is None]
    sampler = Sampler(collectors, tables.store, lambda: time.monotonic() - began)
    sampler.start()
    server = {collector.name for collector in collectors} - {"host", "kernel_cpu", "device", "load_io", "relations"}
    try:
        eventually(lambda: len({row["t"] for row in tables["server_io"]}) >= 2)
        cluster.stop(signal.SIGQUIT)
        eventually(lambda: {failure.collector for failure in sampler.failures} >= server)
        cluster.start()
        eventually(lambda: all(f.until is not None for f in sampler.failures if f.collector in server))
    finally:
        sampler.stop()
    by_collector: dict[str, list[Any]] = defaultdict(list)
    for failure in sampler.failures:
        by_collector[failure.collector].append(failure)
    for name in server:
        assert len(by_collector[name]) == 1, by_collector[name]
        assert "\n" not in by_collector[name][0].reason and "server" in by_collector[name][0].reason
    assert "host" not in by_collector
    assert len({row["epoch"] for row in tables["server_io"]}) == 2
