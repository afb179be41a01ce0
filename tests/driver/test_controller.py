"""A run's load from end to end: Locust, executors, native threads, a real server, and what the record says of it."""

import os
import socket
import sys
import threading
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from support.driving import THINKING, Load, drive_to_the_end, executor_order, history_rows, load_spec, total

from stallmark.analysis.read.throughput import Latencies
from stallmark.driver.channel import Channel
from stallmark.driver.executor import Executor
from stallmark.driver.load import Timeline, WarmUpLimits, consecutive_steps
from stallmark.driver.pacing import Arrivals
from stallmark.record import histogram as hdr
from stallmark.stats import steady_state


def executors_are_plain_processes(running: Load) -> None:
    """Though their parent is patched by gevent."""
    executors = running.executors()
    assert len(executors) == min(2, os.cpu_count() or 1)
    if sys.platform == "linux":  # what a process has loaded stands in /proc
        assert any("gevent" in region.path for region in running.conductor.memory_maps())
        for executor in executors:
            assert not any("gevent" in region.path for region in executor.memory_maps())
            assert executor.num_threads() > 1


@pytest.mark.parametrize("arrivals", [THINKING, Arrivals("fixed", rate=200)], ids=["closed", "open"])
def test_every_commit_is_in_the_record_and_in_the_database_exactly_once(arrivals, bank, load):
    before = history_rows(bank)
    running = load(0.7, load_spec(20, 2, arrivals=arrivals))
    record = running.run(executors_are_plain_processes)
    assert record.manifest.status == "complete"

    committed = total(record, "transactions", "committed")
    assert committed == history_rows(bank) - before > 0
    assert total(record, "transactions", "failed") == total(record, "errors", "given_up")
    assert total(record, "transactions", "retries") + total(record, "errors", "given_up") == total(
        record, "errors", "attempts"
    )
    rows = record.table("transactions").to_pylist()
    assert {row["transaction"] for row in rows} == {"transfer"}
    for kind in ("latency", "service"):
        assert sum(sum(row[f"{kind}_counts"]) for row in rows) == committed
    assert total(record, "transactions", "latency_us") >= total(record, "transactions", "service_us") > 0
    # What users were busy with is the time of their transactions, executor by executor.
    busy, service = total(record, "users", "busy_us"), total(record, "transactions", "service_us")
    assert busy == pytest.approx(service, abs=committed)
    assert set(record.table("users")["executor"].to_pylist()) == {0, 1}
    assert total(record, "users", "cpu_us") > 0
    spent = record.table("client_cpu").to_pylist()
    assert {row["process"] for row in spent} == {"command", "conductor"}
    assert len(spent) == 2 * len({row["second"] for row in spent}) and sum(row["cpu_us"] for row in spent) > 0
    assert sum(progress.errors for progress in running.progress[-1:]) == total(record, "errors", "attempts")


def test_the_whole_rate_arrives_though_one_executor_has_no_user(bank, load):
    running = load(2, load_spec(20, 1, arrivals=Arrivals("fixed", rate=100)))
    record = running.run()
    rows = record.table("transactions").to_pylist()
    second_step = running.drive._timeline.steps[1]
    offered = sum(row["committed"] for row in rows if row["second"] >= second_step.begin_s)
    offered += running.drive.left_waiting().arrivals
    assert offered >= 0.9 * 100 * (running.drive._timeline.end_s - second_step.begin_s)


def test_what_users_give_rise_to_is_executed_by_others_and_every_commit_is_in_the_record_once(bank, load, market):
    before = history_rows(bank)
    running = load(1.5, load_spec(20, background_per_user=0.5, **market))
    record = running.run()
    assert record.manifest.status == "complete"
    rows = record.table("transactions").to_pylist()
    committed = {
        name: sum(r["committed"] for r in rows if r["transaction"] == name) for name in ("pay", "echo", "sweep")
    }
    assert {row["transaction"] for row in rows} == set(committed)  # none of the card that the deck has none of
    assert sum(committed.values()) == history_rows(bank) - before
    # Each payment was echoed, or is left over, which is said.
    left = running.drive.left_waiting().deferred
    given_up = sum(row["failed"] for row in rows if row["transaction"] == "echo")
    assert committed["pay"] == committed["echo"] + given_up + left and left > 0
    assert running.drive.left_waiting("bank").deferred == left
    assert committed["sweep"] >= 2
    deferred = record.table("deferred_queue").to_pylist()
    assert sum(row["taken"] for row in deferred) == committed["echo"] + given_up + committed["sweep"]
    assert {row["executor"] for row in deferred} == {0, 1}
    # Who executes them is no user: neither the users' time nor their number has anything of it.
    users = record.table("users").to_pylist()
    busy, pays = sum(row["busy_us"] for row in users), [r for r in rows if r["transaction"] == "pay"]
    assert busy == pytest.approx(sum(row["service_us"] for row in pays), abs=committed["pay"])
    assert max(row["running"] for row in users) <= 10.001


def test_a_user_does_the_same_in_whatever_executor(bank, monkeypatch):
    here, _ = pair = socket.socketpair()
    seen: dict[tuple[int, int], float] = {}

    class Noted:
        """Draws once, as the user with this number would."""

        def __init__(self, number, pacing, cards, engine, workload, shared, timeout, rng, *reports):
            seen[executor.number, number] = rng.random()
            self.start = lambda: None

    monkeypatch.setattr("stallmark.driver.executor.VirtualUser", Noted)
    for number in (0, 3):
        order = executor_order(bank, number=number, processes=4)
        executor = SimpleNamespace(number=number, it=Executor(Channel(here), order))
        for user in (0, 5):
            executor.it._loads[0].start(user)
    assert seen[0, 0] == seen[3, 0] != seen[0, 5] == seen[3, 5]
    for each in pair:
        each.close()


def test_a_load_that_has_ended_starts_nobody_and_nothing_arrives(bank, monkeypatch):
    here, there = socket.socketpair()
    executor = Executor(Channel(here), executor_order(bank, {"arrivals": Arrivals("fixed", rate=1e9)}))
    ended = executor._loads[0]
    started: list[int] = []
    monkeypatch.setattr("stallmark.driver.executor.VirtualUser.start", lambda user: started.append(user.number))
    ended.end()
    ended.start(3)
    ended.set_share(1.0)
    ended.end()
    assert started == [] and ended.final_report(0).unserved == 0
    here.close()
    there.close()


def test_transactions_know_where_they_are(bank, market):
    """Which part of the customers is theirs, and which numbers nobody else gives."""
    here, there = socket.socketpair()
    numbers = {"number": 3, "processes": 4, "machine": 2, "machines": 2, "background_sessions": 1}
    executor = Executor(
        Channel(here),
        executor_order(
            bank, market | {"locality": 0.5, "seed": 7, "scale": {"branches": 3}, "cell": 2, "cells": 3}, **numbers
        ),
    )
    around = executor._loads[0]._shared
    assert (around.process, around.processes, around.machine, around.machines) == (3, 4, 2, 2)
    assert (around.cell, around.cells) == (2, 3)
    assert (around.locality, around.seed, around.scale) == (0.5, 7, {"branches": 3})
    assert around.query("SELECT 1") == [(1,)]
    here.close()
    there.close()


def test_loads_of_one_seed_draw_each_its_own(bank):
    here, there = socket.socketpair()
    loads = [{}, {"name": "wages"}, {"name": "wages", "cell": 2}]
    orders = [executor_order(bank, {"scale": {"branches": 2}, "cells": 2} | each, of_several=True) for each in loads]
    drawn = [Executor(Channel(here), order)._loads[0]._random("deck").random() for order in orders]
    assert len(set(drawn)) == len(loads)
    here.close()
    there.close()


def test_every_repeat_draws_its_own_and_all_variants_of_it_the_same(bank, market):
    here, there = socket.socketpair()
    executors = [Executor(Channel(here), executor_order(bank, market | {"repeat": each})) for each in (1, 1, 2)]
    first, again, other = (executor._loads[0]._random("deck").random() for executor in executors)
    assert first == again != other
    here.close()
    there.close()


# A server that stands still for five seconds, under a load that arrives all the same


RATE, USERS, SECONDS, PAUSED_S = 150.0, 20, 9, 5.0


def server_processes(data: Path) -> list[psutil.Process]:
    """All of the cluster in `data`, the one that starts them first: so it starts no other meanwhile."""
    server = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    return [server, *server.children(recursive=True)]


def test_a_pause_of_the_server_shows_in_the_slowest_thousandth_as_long_as_it_was(bank, embedded_server, tmp_path):
    """Latency counts from when a transaction was to begin. Of those that came while the server stood still as many
    waited for 4 s as for 1 s; who counts from when a user got round to them sees the few under way (coordinated
    omission, G. Tene)."""
    stopped: list[psutil.Process] = []

    def go_on() -> None:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):  # a session has ended since
                process.resume()

    timer = threading.Timer(PAUSED_S, go_on)

    def pause_once(progress) -> None:
        if progress.elapsed_s > 2 and not stopped:
            stopped.extend(server_processes(embedded_server.data))
            for process in stopped:
                process.suspend()
            timer.start()

    timeline = Timeline(consecutive_steps([(f"{USERS} users", USERS)], ramp_s=0, warm_up_s=0, measure_s=SECONDS))
    try:
        record = drive_to_the_end(bank, tmp_path / "run", timeline, Arrivals("fixed", rate=RATE), pause_once)
    finally:
        timer.cancel()
        go_on()

    latency, service = Latencies.empty(), Latencies.empty()
    for rows in record.table("transactions").to_batches():
        latency.merge(rows["latency_gaps"], rows["latency_counts"])
        service.merge(rows["service_gaps"], rows["service_counts"])
    done = latency.size
    assert done >= 0.95 * RATE * SECONDS and not total_errors(record)

    # Of n evenly spaced arrivals in the pause the k-th last waited for k / RATE less than the first.
    for percentile in (0.9, 0.99):
        truth_ms = 1000 * (PAUSED_S - (1 - percentile) * done / RATE)
        assert latency.percentile_ms(percentile) >= 0.98 * truth_ms
    slowest_ms = max_share(latency, 0.001)
    assert slowest_ms >= 0.98 * 1000 * PAUSED_S
    over_1_s = over(latency, 1000)
    assert over_1_s >= 0.95 * RATE * (PAUSED_S - 1)
    assert over(service, 1000) <= USERS < over_1_s / 10


def total_errors(record) -> Counter:
    return Counter(row["code"] for row in record.table("errors").to_pylist())


def over(latencies: Latencies, limit_ms: float) -> int:
    return round((latencies.share_over(limit_ms) or 0) * latencies.size)


def max_share(latencies: Latencies, share: float) -> float:
    """Return the time that this share took at least, in ms, whatever the size of the sample."""
    beyond = np.cumsum(latencies.counts[::-1])
    return float(hdr.VALUES_US[::-1][np.searchsorted(beyond, max(1, share * latencies.size))] / 1000)


# A run that waits for a steady state: Locust, executors and the record follow what was decided


def test_each_step_is_measured_from_when_it_is_steady(bank, tmp_path, monkeypatch):
    """Steadiness is decided here, so that the machine that runs this has no say in it."""
    monkeypatch.setattr(steady_state, "steady_enough", lambda series, to_measure_s: True)
    steps = consecutive_steps([("2 users", 2), ("6 users", 6)], ramp_s=0, warm_up_s=60, measure_s=1)
    timeline = Timeline(steps, WarmUpLimits(at_least_s=3, at_most_s=60))
    shown: list = []
    record = drive_to_the_end(bank, tmp_path / "run", timeline, Arrivals("fixed", rate=60), shown.append)

    told = record.manifest.steps
    assert [step.waited.steady for step in told] == [True, True]
    assert all(step.end_s - step.measure_s == 1 for step in told)
    assert all(later.begin_s == earlier.end_s for earlier, later in pairwise(told))
    assert told[-1].end_s < steps[-1].end_s / 2
    assert shown[0].waiting and not shown[-1].waiting
    assert shown[-1].ends_s - told[-1].end_s == pytest.approx(timeline.end_s - steps[-1].end_s)

    rows = record.table("users").to_pylist()
    running = Counter[int]()
    for row in rows:
        running[row["second"]] += row["running"]
    for step in told:  # Locust follows the steps where they were moved to
        seconds = range(int(step.begin_s), int(step.end_s))
        assert max(running[second] for second in seconds) == pytest.approx(step.users, abs=0.5)
    assert max(running) <= told[-1].end_s + 10
