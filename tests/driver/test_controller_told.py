"""Messages of a conductor to a drive, of this machine and of load machines; here the conductor is the test."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from support.driving import load_spec, timeline
from support.manifests import a_manifest

from stallmark.driver.channel import Channel, Closed
from stallmark.driver.controller import Drive, Interrupted
from stallmark.driver.load import ExpectedMachines
from stallmark.driver.messages import (
    ClocksCompared,
    ConductorOrder,
    ExecutorDied,
    Incomplete,
    LateMachine,
    LoadMachine,
    MachineFacts,
    MachineLost,
    MessagesLost,
    NotUnderstood,
    Ready,
    Refused,
    Report,
    SessionLost,
    Stopped,
    Waiting,
)
from stallmark.driver.rows import ErrorRow, Rows, TransactionRow
from stallmark.errors import StallmarkError
from stallmark.record import histogram
from stallmark.record.manifest.course import LoadMachine as RecordedMachine
from stallmark.record.writer import RecordWriter
from stallmark.transactions import find_workload


@pytest.fixture
def spoken_for(tmp_path, monkeypatch) -> Iterator[Callable[..., tuple[Drive, Channel]]]:
    """A drive whose conductor is the test: what it says, and nothing else, arrives."""
    here, there = socket.socketpair()
    with subprocess.Popen(["true"]) as process, here, there:
        monkeypatch.setattr("stallmark.driver.controller.start_child", lambda module: (process, Channel(here)))
        writer = RecordWriter(tmp_path / "run", a_manifest())
        yield lambda *arguments: (Drive(timeline(LOADS, 1), ENGINE, LOADS, writer, *arguments), Channel(there))


ENGINE, LOADS = "mssql://sa:corr3ct@db/bank", [load_spec(1)]
NOTHING = histogram.encode(np.zeros(0, np.int64))
EXPECTED = ExpectedMachines(2, "*", 5557)


def machine(number: int, within_ms: float) -> LoadMachine:
    return LoadMachine(number, f"host-{number}", 1, [1], within_ms, MachineFacts(cores=8))


@pytest.mark.parametrize("expected", [None, EXPECTED], ids=["one machine", "several"])
def test_the_way_to_the_server_is_told_to_executors_of_this_machine_only(expected, spoken_for):
    _, conductor = spoken_for(expected)
    order = conductor.receive()
    assert isinstance(order, ConductorOrder) and order.loads == LOADS and order.expected == expected
    assert ("corr3ct" in str(order)) is (expected is None)


@pytest.mark.parametrize("ready", [False, True])
def test_a_conductor_that_has_gone_before_it_could_be_told_anything_is_the_reason(spoken_for, ready):
    drive, conductor = spoken_for()
    if ready:
        conductor.send(Ready([machine(1, 0.5)]))
    conductor.close()
    with pytest.raises(StallmarkError, match="could not start"):
        drive.start()


def test_a_conductor_that_was_gone_at_once_is_the_reason(spoken_for, monkeypatch):
    monkeypatch.setattr("stallmark.driver.channel.Channel.send", Mock(side_effect=Closed))
    drive, conductor = spoken_for()
    conductor.close()
    with pytest.raises(StallmarkError, match="could not start"):
        drive.start()


def test_load_machines_are_welcomed_by_name_and_their_clocks_noted(spoken_for):
    drive, conductor = spoken_for(EXPECTED)
    conductor.send(Refused("host-3", "its Stallmark is 2, this run's is 1"))
    conductor.send(Waiting(1, 2))
    conductor.send(Ready([machine(1, 0.5), machine(2, 0.4)]))
    said: list[str] = []
    drive.start(said.append)
    assert ["host-3" in said[0], "1 of 2" in said[1], "host-1: 8" in said[2], "host-2: 8" in said[3]] == [True] * 4
    conductor.send(ClocksCompared(2, 80.0))
    drive._receive(timeout=60, farewell=True)
    assert "host" not in str(drive.load_machines)
    assert drive.load_machines[0] == RecordedMachine(number=1, executors=1, clock_within_ms=0.5, cores=8)
    assert drive.load_machines[1].clock_within_ms == 80.0


def test_a_machine_that_comes_late_is_said_before_the_load_and_while_it_lasts(spoken_for):
    drive, conductor = spoken_for(EXPECTED)
    for message in (LateMachine("host-3"), Ready([machine(1, 0.5), machine(2, 0.4)]), LateMachine("host-4")):
        conductor.send(message)
    said: list[str] = []
    drive.start(said.append)
    drive._receive(timeout=60)
    assert "host-3" in said[0] and "host-4" in said[-1] and len(said) == 4


def test_who_sent_what_is_no_message_is_said_and_noted_once(spoken_for):
    drive, conductor = spoken_for(EXPECTED)
    conductor.send(NotUnderstood("192.0.2.9"))
    conductor.send(Ready([machine(1, 0.5), machine(2, 0.4)]))
    said: list[str] = []
    drive.start(said.append)
    for message in (NotUnderstood("192.0.2.9"), NotUnderstood(), NotUnderstood("executor process 7", 2)):
        conductor.send(message)
        drive._receive(timeout=60)
    conductor.send(Report(msgspec.Raw(b"\x91\x91\x01")))
    drive._receive(timeout=60)
    whom = ("192.0.2.9", "conductor", "7 on load machine 2", "an executor process")
    told = [one for one in said if any(sender in one for sender in whom)]
    assert len(told) == 4 and drive._writer.manifest.notes == tuple(told)


def test_background_sessions_of_each_load_are_those_of_all_its_machines(spoken_for, monkeypatch):
    loads = [
        load_spec(20, name="mail", background_per_user=0.1, cells=2),
        load_spec(20, name="mail", background_per_user=0.1, cells=2, cell=2),
        load_spec(40, name="bank"),
    ]
    monkeypatch.setattr(f"{__name__}.LOADS", loads)
    drive, conductor = spoken_for(EXPECTED)
    conductor.send(Ready([msgspec.structs.replace(machine(n, 0.5), parts=[1, 3, 4]) for n in (1, 2)]))
    drive.start()
    assert drive.background_sessions() == {"mail": 2 * (1 * 1 + 3 * 1), "bank": 0}


BROKEN = ErrorRow(1, "bank", "trade_result", "other", "208", attempts=7, given_up=7, message="Invalid object name 'x'.")
RARE = msgspec.structs.replace(BROKEN, given_up=1, code="1205", message="deadlock")


@pytest.mark.parametrize(
    ("committed", "errors", "said"),
    [
        ({"trade_order": 9}, [BROKEN, RARE], ["Trade-Result", "of 7", "Invalid object name 'x' (208)"]),
        ({"trade_result": 1}, [BROKEN], []),
        ({"trade_order": 9}, [], []),  # none was due yet
    ],
)
def test_a_primary_transaction_that_never_commits_is_said_in_the_servers_words(committed, errors, said, spoken_for):
    drive, _ = spoken_for()
    drive._workloads = {"bank": find_workload("brokerage")}
    rows = [TransactionRow(1, "bank", name, n, 0, 0, 0, 9, 9, NOTHING, NOTHING) for name, n in committed.items()]
    drive._merger.add(Rows(rows, errors=errors))
    why = drive.no_result_reason() or ""
    assert bool(why) == bool(said) and all(part in why for part in said)


def test_of_several_loads_the_one_without_a_commit_is_named(spoken_for):
    drive, _ = spoken_for()
    drive._workloads = {name: find_workload("brokerage") for name in ("shares", "bonds")}
    row = TransactionRow(1, "shares", "trade_result", 9, 0, 0, 0, 9, 9, NOTHING, NOTHING)
    broken = [msgspec.structs.replace(BROKEN, load=name) for name in ("shares", "bonds")]
    drive._merger.add(Rows([row], errors=broken))
    why = drive.no_result_reason() or ""
    assert "Trade-Result of bonds" in why and "shares" not in why


def test_a_conductor_that_has_gone_is_said_where_it_is_told_something(spoken_for, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LOADS", [load_spec(1), load_spec(1, name="wages")])
    drive, conductor = spoken_for()
    conductor.close()
    with pytest.raises(Interrupted, match="conductor ended with code 0;"):
        drive._end_loads(["bank"], "it is enough")


@pytest.mark.parametrize("message", [Incomplete("1 of 2 came"), MachineLost(2)], ids=str)
def test_load_machines_that_are_not_there_are_said_before_anything_runs(message, spoken_for):
    drive, conductor = spoken_for(EXPECTED)
    conductor.send(message)
    with pytest.raises(StallmarkError, match="could not start"):
        drive.start()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (MachineLost(2), "load machine 2 was lost"),
        (MessagesLost(2), "messages of load machine 2"),
        (ExecutorDied(["bank"], 7, -9, machine=2), "7 on load machine 2 was killed by signal 9"),
        (ExecutorDied(["bank"], 7, 1, machine=2), "7 on load machine 2 ended by a fault of its own"),
        (ExecutorDied(["bank"], 7, 1, machine=2, reason="no room"), "7 on load machine 2 could not begin: no room"),
        (SessionLost("bank", 3, "gone", machine=2), "user 3 on load machine 2 .*: gone"),
        (SessionLost("bank", None, "gone", machine=2), "background sessions on load machine 2 .*: gone"),
    ],
    ids=str,
)
def test_what_happens_on_a_load_machine_is_said_of_it(message, said, spoken_for):
    drive, conductor = spoken_for(EXPECTED)
    conductor.send(message)
    with pytest.raises(Interrupted, match=said):
        drive._receive(timeout=60)


@pytest.mark.parametrize("over", [False, True], ids=["too early", "at the end"])
def test_users_that_stop_at_the_plans_end_are_no_interruption(over, spoken_for):
    """Locust tells of its stop when it likes; the message may come while the last reports are read."""
    drive, conductor = spoken_for()
    drive.start_ns = time.monotonic_ns() - (round(drive._timeline.end_s * 1e9) if over else 0)
    conductor.send(Stopped())
    with nullcontext() if over else pytest.raises(Interrupted, match="stopped the users too early"):
        drive._receive(timeout=60)
