"""What a conductor tells a drive, of this machine and of load machines; here the conductor is the test."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from support.driving import timeline
from support.manifests import a_manifest

from stallmark.driver.cluster.join import ExpectedMachines
from stallmark.driver.controller import Drive, Interrupted
from stallmark.driver.messages import Channel
from stallmark.errors import StallmarkError
from stallmark.record.writer import RecordWriter


@pytest.fixture
def spoken_for(tmp_path, monkeypatch) -> Iterator[Callable[..., tuple[Drive, Channel]]]:
    """A drive whose conductor is the test: what it says, and nothing else, arrives."""
    here, there = socket.socketpair()
    with subprocess.Popen(["true"]) as process, here, there:
        monkeypatch.setattr("stallmark.driver.controller.start_child", lambda module: (process, Channel(here)))
        writer = RecordWriter(tmp_path / "run", a_manifest())
        yield lambda *arguments: (Drive(timeline([1], 1), ENGINE, writer, *arguments), Channel(there))


ENGINE = {"engine": "mssql://sa:corr3ct@db/bank", "workload": "bank"}
EXPECTED = ExpectedMachines(2, "*", 5557, {})


def machine(number: int, within_ms: float) -> dict[str, Any]:
    return {"number": number, "name": f"host-{number}", "cores": 8, "clock_within_ms": within_ms}


@pytest.mark.parametrize("expected", [None, EXPECTED], ids=["one machine", "several"])
def test_the_way_to_the_server_is_told_to_executors_of_this_machine_only(expected, spoken_for):
    _, conductor = spoken_for(None, expected)
    kind, fields = conductor.receive()
    assert kind == "order" and fields["executor"]["workload"] == "bank"
    assert ("corr3ct" in str(fields)) is (expected is None)


@pytest.mark.parametrize(("later_ms", "noted"), [(2.0, False), (80.0, True)])
def test_load_machines_are_welcomed_by_name_and_their_clocks_noted_when_they_differ(later_ms, noted, spoken_for):
    drive, conductor = spoken_for(None, EXPECTED)
    conductor.send("refused", name="host-3", why="its Stallmark is 2, this run's is 1")
    conductor.send("waiting", came=1, wanted=2)
    conductor.send("ready", machines=[machine(1, 0.5), machine(2, 0.4)])
    said: list[str] = []
    drive.start(said.append)
    assert said == [
        "Load machine host-3 was refused: its Stallmark is 2, this run's is 1.",
        "Waiting for load machines: 1 of 2 are here.",
        "Load machine 1 is host-1: 8 cores.",
        "Load machine 2 is host-2: 8 cores.",
    ]
    conductor.send("clocks", machine=2, within_ms=later_ms)
    drive._receive(timeout=60, farewell=True)
    assert "host" not in str(drive.load_machines)
    assert [m["clock_within_ms"] for m in drive.load_machines] == [0.5, later_ms]
    assert [note for note in drive.notes() if "within 80 ms only" in note] == drive.notes()
    assert bool(drive.notes()) is noted


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("apart", {"why": "1 of 2 load machines came within 300 s"}, "1 of 2 load machines came"),
        ("lost machine", {"machine": 2}, "load machine 2 was lost"),
    ],
)
def test_load_machines_that_are_not_there_are_said_before_anything_runs(kind, fields, sentence, spoken_for):
    drive, conductor = spoken_for(None, EXPECTED)
    conductor.send(kind, **fields)
    with pytest.raises(StallmarkError, match=f"The load could not start: {sentence}"):
        drive.start()


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("lost machine", {}, "load machine 2 was lost"),
        ("gap", {}, "messages of load machine 2 were lost"),
        ("died", {"pid": 7, "code": -9}, "executor process 7 on load machine 2 was killed, and its users with it"),
        ("died", {"pid": 7, "code": 1}, "executor process 7 on load machine 2 ended by a fault of its own, whose"),
        ("lost", {"user": 3, "message": "gone"}, "virtual user 3 on load machine 2 lost the server: gone"),
        ("lost", {"user": None, "message": "gone"}, "the background sessions on load machine 2 lost the server: gone"),
    ],
)
def test_what_happens_on_a_load_machine_is_said_of_it(kind, fields, sentence, spoken_for):
    drive, conductor = spoken_for(None, EXPECTED)
    conductor.send(kind, machine=2, **fields)
    with pytest.raises(Interrupted, match=sentence):
        drive._receive(timeout=60)


@pytest.mark.parametrize("over", [False, True], ids=["too early", "at the end"])
def test_users_that_stop_at_the_plans_end_are_no_interruption(over, spoken_for):
    """Locust tells of its stop when it likes; the message may come while the last reports are read."""
    drive, conductor = spoken_for()
    drive.start_ns = time.monotonic_ns() - (round(drive._timeline.end_s * 1e9) if over else 0)
    conductor.send("stopped")
    with nullcontext() if over else pytest.raises(Interrupted, match="stopped from the web page"):
        drive._receive(timeout=60)
