"""Several loads of one run: each has the users it asks for in every step, wherever they are, and rows of its own."""

import os
import socket
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import psutil
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from support import malformed
from support.driving import Load, dismiss, history_rows, load_machine, load_spec, timeline, total
from support.manifests import a_manifest
from support.remote import free_port

from stallmark.driver.controller import Drive
from stallmark.driver.load import (
    USERS_PER_EXECUTOR,
    ExpectedMachines,
    LoadSpec,
    background_sessions,
    executor_counts,
    pack_executors,
)
from stallmark.driver.pacing import Arrivals
from stallmark.loaders.load import build
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.transactions.bank import WORKLOAD as BANK

STEP_S = 3


def assert_users_in_every_step(record: Record, loads: list[LoadSpec]) -> None:
    """In one second of each step at least: in its first and last there are those of its neighbours, too."""
    running: dict[tuple[str, int], float] = defaultdict(float)
    for row in record.table("users").to_pylist():
        running[row["load"], row["second"]] += row["running"]
    for name in {load.name for load in loads}:
        for step in range(len(loads[0].users)):
            wanted = sum(load.users[step] for load in loads if load.name == name)
            seconds = range(step * STEP_S + 1, (step + 1) * STEP_S)
            assert any(running[name, second] == pytest.approx(wanted, abs=0.1) for second in seconds), (name, step)


def committed(record: Record, load: str) -> int:
    return sum(row["committed"] for row in record.table("transactions").to_pylist() if row["load"] == load)


def test_steps_change_the_users_of_one_load_rest_another_and_exchange_them(bank, load, market):
    before = history_rows(bank)
    loads = [
        load_spec(4, 4, 1, 0, name="payments", application="stallmark-user-payments"),
        load_spec(2, 5, 0, 1, name="market", application="stallmark-user-market", background_per_user=0.5, **market),
    ]
    running: Load = load(STEP_S, *loads)
    sessions = "SELECT application_name, count(*) FROM pg_stat_activity WHERE application_name LIKE 'stallmark-user%' "
    known: list[dict[str, int]] = []
    record = running.run(lambda running: known.append(dict(bank.query(f"{sessions} GROUP BY 1"))))
    assert set(known[0]) == {"stallmark-user-payments", "stallmark-user-market"}
    assert record.manifest.status == "complete"
    assert_users_in_every_step(record, loads)
    assert total(record, "transactions", "committed") == history_rows(bank) - before
    assert committed(record, "payments") > 0 < committed(record, "market")

    rows = {table: record.table(table).to_pylist() for table in ("users", "transactions", "deferred_queue")}
    places = enumerate(pack_executors(loads))
    assert {(row["load"], row["executor"]) for row in rows["users"]} == {
        (loads[place].name, executor) for executor, each in places for place in each
    }
    assert {row["load"] for row in rows["transactions"] if row["transaction"] == "transfer"} == {"payments"}
    assert {row["load"] for row in rows["deferred_queue"]} == {"market"}
    swept = {row["second"] for row in rows["transactions"] if row["transaction"] == "sweep"}
    in_steps = {second // STEP_S for second in swept - {2 * STEP_S}}  # a second in which users leave
    assert in_steps & {0, 1, 2, 3} == {0, 1, 3}, "timers rest with their load"
    assert running.drive.left_waiting("payments").deferred == 0 == running.drive.left_waiting("payments").arrivals


def test_the_cells_of_a_load_have_rows_together_and_data_of_their_own(database, tmp_path):
    scale = {"branches": 2}
    build(database, BANK, scale, seed=1, workers=1)
    loads = [load_spec(2, 2, scale=scale, cell=1, cells=2), load_spec(0, 3, scale=scale, cell=2, cells=2)]
    record = Load(database, tmp_path / "run", loads, STEP_S).run()
    by_branch = dict(database.query("SELECT bid, count(*) FROM bank.history GROUP BY 1"))
    assert set(by_branch) == {1, 2} and sum(by_branch.values()) == total(record, "transactions", "committed")
    assert_users_in_every_step(record, loads)
    keys = [(row["second"], row["transaction"]) for row in record.table("transactions").to_pylist()]
    assert len(keys) == len(set(keys))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="With one core both loads share an executor.")
def test_the_others_go_on_without_a_load_of_which_an_executor_is_killed(bank, load):
    before = history_rows(bank)
    loads = [load_spec(2, 2, name="payments"), load_spec(2, 2, name="wages")]
    running: Load = load(STEP_S, *loads)
    record = running.run(lambda running: running.executors()[0].kill())
    [(dead, (after_s, because))] = running.drive.ended.items()
    [other] = {"payments", "wages"} - {dead}
    assert f"of {dead} was killed" in because and record.incomplete_because is None
    committed: dict[str, set[int]] = defaultdict(set)
    for row in record.table("transactions").to_pylist():
        committed[row["load"]].add(row["second"])
    # A load may be killed before its first transaction: the run calls back at the first of any load.
    assert max(committed[dead], default=0) <= after_s + 2 and after_s < STEP_S
    assert committed[other] >= set(range(1, 2 * STEP_S))
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


def test_a_run_whose_loads_have_all_ended_ends(bank, load):
    record = load(600, load_spec(1, name="payments"), load_spec(1, name="wages")).run(
        lambda running: [executor.kill() for executor in running.executors()]
    )
    assert "of payments was killed" in record.incomplete_because and "of wages was killed" in record.incomplete_because


@pytest.mark.skipif((os.cpu_count() or 1) > 8, reason="Loads share executors only where they outnumber the cores.")
def test_more_loads_than_cores_share_executors_and_one_can_end_without_the_others(bank, load):
    cores, before = os.cpu_count() or 1, history_rows(bank)
    loads = [load_spec(2, name=f"load {number}") for number in range(cores + 2)]
    running: Load = load(2 * STEP_S, *loads)
    record = running.run(lambda running: running.drive._end_loads(["load 1"], "it is enough"))
    assert record.incomplete_because is None and len(running.seen) == 1 + cores
    rows = record.table("transactions").to_pylist()
    assert {row["load"] for row in rows} == {load.name for load in loads}
    assert max(row["second"] for row in rows if row["load"] == "load 1") <= running.drive.ended["load 1"][0] + 2
    for name in {"load 0", f"load {cores + 1}"}:
        assert {row["second"] for row in rows if row["load"] == name} >= set(range(1, 2 * STEP_S))
    assert total(record, "transactions", "committed") == history_rows(bank) - before
    cpu_us = [
        sum(row["cpu_us"] for row in record.table("users").to_pylist() if row["load"] == one.name) for one in loads
    ]
    assert all(cpu_us)


def run_on_two_machines(bank, tmp_path, loads: list[LoadSpec], meanwhile: Callable[[int], object]) -> Drive:
    """`meanwhile` is called with the master's port when the first transactions have come in."""
    waiting, port = [meanwhile], free_port()

    def check() -> None:
        if drive._merger.seen.committed and waiting:
            waiting.pop()(port)

    writer = RecordWriter(tmp_path / "run", a_manifest())
    expected = ExpectedMachines(2, "127.0.0.1", port)
    drive = Drive(timeline(loads, STEP_S), bank.spec(), loads, writer, expected)
    with ExitStack() as ends:
        machines = [load_machine(ends, bank, port) for _ in range(2)]
        try:
            drive.start()
            drive.follow(lambda progress: None, check)
        finally:
            drive.finish()
            writer.close()
        dismiss(machines)
    return drive


def disturb(context: zmq.Context, port: int) -> None:
    """Send a master what is no message of a load machine."""
    with context.socket(zmq.DEALER) as stranger:
        stranger.connect(f"tcp://127.0.0.1:{port}")
        for frames in malformed.frames(seed=3, count=100):
            stranger.send_multipart(frames)
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 9)


def test_each_of_two_load_machines_has_a_share_of_every_load(bank, tmp_path):
    before = history_rows(bank)
    loads = [load_spec(4, 1, 4, name="payments"), load_spec(0, 3, 2, name="wages", arrivals=Arrivals("fixed", rate=40))]
    with zmq.Context() as context:
        run_on_two_machines(bank, tmp_path, loads, partial(disturb, context))
    record = Record(tmp_path / "run")
    assert record.incomplete_because is None
    assert ["127.0.0.1" in note for note in record.manifest.notes] == [True]
    assert_users_in_every_step(record, loads)
    assert total(record, "transactions", "committed") == history_rows(bank) - before
    rows = record.table("users").to_pylist()
    shares = {(row["load"], row["machine"]) for row in rows if row["running"]}
    assert shares == {(name, number) for name in ("payments", "wages") for number in (1, 2)}
    machine_of = {row["executor"]: row["machine"] for row in rows}
    assert all(machine_of[row["executor"]] == row["machine"] for row in rows)
    # The whole rate comes, from the users of both machines together.
    rate = [row for row in record.table("transactions").to_pylist() if row["load"] == "wages"]
    late = [row["committed"] for row in rate if row["second"] in range(2 * STEP_S + 1, 3 * STEP_S)]
    assert sum(late) / (STEP_S - 1) == pytest.approx(40, rel=0.3)


def test_a_load_that_ends_on_one_machine_ends_on_all(bank, tmp_path):
    def kill_one(port: int) -> None:
        processes = psutil.Process().children(recursive=True)
        executors = [each for each in processes if "stallmark.driver.executor" in each.cmdline()]
        max(executors, key=psutil.Process.create_time).kill()  # others may be left of an earlier test, ending

    loads = [load_spec(2, 2, 2, name="payments"), load_spec(2, 2, 2, name="wages")]
    drive = run_on_two_machines(bank, tmp_path, loads, kill_one)
    [(dead, (after_s, because))] = drive.ended.items()
    assert f"of {dead} on load machine" in because
    rows = Record(tmp_path / "run").table("users").to_pylist()
    left = {(row["load"], row["machine"]) for row in rows if row["running"] and row["second"] > after_s + 4}
    assert left == {(name, number) for name in {"payments", "wages"} - {dead} for number in (1, 2)}


# The executors and background sessions of loads: enough of each, and no more than the machine has cores for


@pytest.mark.parametrize(
    ("users", "wanted"), [(1, 1), (USERS_PER_EXECUTOR, 1), (USERS_PER_EXECUTOR + 1, 2), (1_000, 250)]
)
def test_no_more_executors_than_cores(users, wanted, monkeypatch):
    loads = [load_spec(1, users)]
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert executor_counts(loads) == [wanted]
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert executor_counts(loads) == [min(2, wanted)]


def test_each_of_several_machines_has_executors_for_its_share_of_the_users(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [executor_counts([load_spec(17)], machines) for machines in (1, 2, 4, 5, 17)] == [[5], [3], [2], [1], [1]]


@given(users=st.lists(st.integers(1, 500), min_size=1, max_size=12), cores=st.integers(1, 64))
def test_several_loads_take_no_more_executors_than_cores_and_share_none_where_there_are_enough(users, cores):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "cpu_count", lambda: cores)
        loads = [load_spec(each) for each in users]
        found, each = pack_executors(loads), executor_counts(loads)
    assert len(found) <= cores and all(found)
    assert sum(each) >= min(cores, len(users)) and (sum(each) > cores or all(len(here) == 1 for here in found))
    assert each == [sum(place in here for here in found) for place in range(len(loads))]
    assert all(1 <= here <= -(-users // USERS_PER_EXECUTOR) for here, users in zip(each, users, strict=True))
    assert [here for _, here in sorted(zip(users, each, strict=True))] == sorted(each)


def test_small_loads_lie_evenly(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert sorted(map(len, pack_executors([load_spec(USERS_PER_EXECUTOR)] * 8))) == [2, 2, 2, 2]


@given(
    users=st.integers(1, 500),
    each=st.sampled_from([0, 0.3, 0.5, 1]),
    machines=st.lists(st.integers(1, 8), min_size=1, max_size=4),
)
def test_background_sessions_are_enough_and_at_most_one_too_many_in_each_executor(users, each, machines):
    loads = [load_spec(1, users, background_per_user=each), load_spec(1, 2 * users)]
    [found] = background_sessions(loads, [[here, 1] for here in machines]).values()  # both are cells of one load
    assert users * each - 1e-9 <= found < users * each + len(machines) * max(machines)
    assert (found == 0) is (each == 0)
