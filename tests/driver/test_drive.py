"""A run's load from end to end: Locust, executors, native threads, a real server, and what the record says of it."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from waiting import eventually

from stallmark.driver import hdr
from stallmark.driver.drive import Drive, Interrupted
from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.executor import Executor
from stallmark.driver.joining import Gathering
from stallmark.driver.pacing import Arrivals
from stallmark.driver.plan import Plan, timeline
from stallmark.driver.record import Record, RecordWriter
from stallmark.driver.wire import Channel


def order(bank: EmbeddedEngine) -> dict[str, Any]:
    return {
        "engine": bank.spec(),
        "workload": "bank",
        "scale": {"branches": 1},
        "deck": {"transfer": 1},
        "locality": 0.0,
        "call_timeout_s": 30.0,
    }


def plan(users: list[int], seconds: float, arrivals: Arrivals | None = None) -> Plan:
    steps = timeline(users, ramp_s=0, warm_up_s=0, measure_s=seconds)
    return Plan(steps, arrivals or Arrivals(), seed=1)


def history_rows(bank: EmbeddedEngine) -> int:
    [(count,)] = bank.query("SELECT count(*) FROM bank.history")
    return count


def total(record: Record, table: str, column: str) -> int:
    return sum(record.table(table)[column].to_pylist())


class Load:
    """A drive with its record, and what became of its processes."""

    def __init__(self, bank: EmbeddedEngine, folder: Path, load: Plan, **changes: Any):
        self.writer = RecordWriter(folder, {"started": "now"})
        self.drive = Drive(load, order(bank) | changes, self.writer)
        self.conductor = psutil.Process(self.drive._process.pid)
        self.seen: set[psutil.Process] = {self.conductor}
        self.progress: list[Any] = []

    def executors(self) -> list[psutil.Process]:
        found = [p for p in self.conductor.children() if "stallmark.driver.executor" in p.cmdline()]
        self.seen.update(found)
        return found

    def run(self, meanwhile: Callable[["Load"], None] = lambda load: None) -> Record:
        """`meanwhile` is called once, when the first transactions have come in."""
        waiting = [meanwhile]

        def check() -> None:
            if self.drive._merger.seen.committed and waiting:
                self.executors()
                waiting.pop()(self)

        reason = None
        try:
            self.drive.start()
            self.drive.follow(self.progress.append, check)
        except Interrupted as interruption:
            reason = str(interruption)
        finally:
            self.drive.finish()
            self.writer.close(reason)
        return Record(self.writer.folder)


@pytest.fixture
def load(bank: EmbeddedEngine, tmp_path: Path) -> Iterator[Callable[..., Load]]:
    made: list[Load] = []

    def make(load: Plan, **changes: Any) -> Load:
        made.append(Load(bank, tmp_path / "run", load, **changes))
        return made[-1]

    yield make
    for each in made:
        eventually(lambda each=each: not any(process.is_running() for process in each.seen))


def executors_are_plain_processes(running: Load) -> None:
    """Though their parent is patched by gevent."""
    executors = running.executors()
    assert len(executors) == min(2, os.cpu_count() or 1)
    if sys.platform == "linux":  # what a process has loaded stands in /proc
        assert any("gevent" in region.path for region in running.conductor.memory_maps())
        for executor in executors:
            assert not any("gevent" in region.path for region in executor.memory_maps())
            assert executor.num_threads() > 1


@pytest.mark.parametrize(
    "arrivals",
    [Arrivals(), Arrivals("fixed", rate=200)],
    ids=["closed", "open"],
)
def test_every_commit_is_in_the_record_and_in_the_database_exactly_once(arrivals, bank, load):
    before = history_rows(bank)
    running = load(plan([20, 2], 0.7, arrivals))
    record = running.run(executors_are_plain_processes)
    assert record.manifest["status"] == "complete"

    committed = total(record, "transactions", "committed")
    assert committed == history_rows(bank) - before > 0
    assert total(record, "transactions", "failed") == total(record, "errors", "given_up")
    assert total(record, "transactions", "retries") + total(record, "errors", "given_up") == total(
        record, "errors", "attempts"
    )
    rows = record.table("transactions").to_pylist()
    assert {row["transaction"] for row in rows} == {"transfer"}
    for kind in ("latency", "service"):
        assert sum(int(hdr.counts(row[kind]).sum()) for row in rows) == committed
    assert total(record, "transactions", "latency_us") >= total(record, "transactions", "service_us") > 0
    # What users were busy with is the time of their transactions, executor by executor.
    busy, service = total(record, "users", "busy_us"), total(record, "transactions", "service_us")
    assert busy == pytest.approx(service, abs=committed)
    assert set(record.table("users")["executor"].to_pylist()) == {0, 1}
    assert total(record, "users", "cpu_us") > 0
    assert sum(progress.errors for progress in running.progress[-1:]) == total(record, "errors", "attempts")


def test_the_whole_rate_arrives_though_one_executor_has_no_user(bank, load):
    running = load(plan([20, 1], 2, Arrivals("fixed", rate=100)))
    record = running.run()
    rows = record.table("transactions").to_pylist()
    second_step = running.drive._plan.steps[1]
    offered = sum(row["committed"] for row in rows if row["second"] >= second_step.begin_s)
    offered += running.drive._left["unserved"]
    assert offered >= 0.9 * 100 * (running.drive._plan.end_s - second_step.begin_s)


def test_an_executor_that_is_killed_ends_the_run_with_a_sentence_and_keeps_what_was_measured(bank, load):
    before = history_rows(bank)

    def kill(running: Load) -> None:
        running.executors()[0].send_signal(signal.SIGKILL)

    record = load(plan([20], 600)).run(kill)
    assert "executor process" in record.incomplete_because and "was killed" in record.incomplete_because
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


@pytest.fixture
def market(monkeypatch) -> dict[str, Any]:
    """What an order has for a workload in which transactions give rise to others."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return {"workload": "workloads.market", "deck": {"pay": 1, "look": 0}}


def attended(users: int, seconds: float) -> Plan:
    return replace(plan([users], seconds), attendants_each=0.5)


def test_what_users_give_rise_to_is_executed_by_others_and_every_commit_is_in_the_record_once(
    bank, load, market
):
    before = history_rows(bank)
    running = load(attended(20, 1.5), **market)
    record = running.run()
    assert record.manifest["status"] == "complete"
    rows = record.table("transactions").to_pylist()
    committed = {
        name: sum(r["committed"] for r in rows if r["transaction"] == name)
        for name in ("pay", "echo", "sweep")
    }
    assert {row["transaction"] for row in rows} == set(
        committed
    )  # none of the card that the deck has none of
    assert sum(committed.values()) == history_rows(bank) - before
    # Each payment was echoed, or is left over, which is said.
    left = running.drive._left["pending"]
    given_up = sum(row["failed"] for row in rows if row["transaction"] == "echo")
    assert committed["pay"] == committed["echo"] + given_up + left and left > 0
    assert any(
        f"{left:,} transactions of the market were not due yet" in note for note in running.drive.notes()
    )
    assert committed["sweep"] >= 2
    agenda = record.table("agenda").to_pylist()
    assert sum(row["taken"] for row in agenda) == committed["echo"] + given_up + committed["sweep"]
    assert {row["executor"] for row in agenda} == {0, 1}
    # Who executes them is no user: neither the users' time nor their number has anything of it.
    users = record.table("users").to_pylist()
    busy, pays = sum(row["busy_us"] for row in users), [r for r in rows if r["transaction"] == "pay"]
    assert busy == pytest.approx(sum(row["service_us"] for row in pays), abs=committed["pay"])
    assert max(row["running"] for row in users) <= 10.001


def test_with_an_executor_goes_its_part_of_the_market(bank, load, market):
    record = load(attended(20, 600), **market).run(lambda running: running.executors()[0].kill())
    assert "and its users and its part of the market with it" in record.incomplete_because


def test_an_agenda_that_passes_on_nothing_ends_the_run(bank, load, market, tmp_path, monkeypatch):
    """The users would go on, and the load would not be the workload's any more."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "def breaking(run):\n"
        "    def broken(self):\n"
        "        if self.name == 'agenda':\n"
        "            return time.sleep(2)\n"
        "        return run(self)\n"
        "    return broken\n"
        "threading.Thread.run = breaking(threading.Thread.run)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}")
    record = load(attended(2, 600), **market).run()
    assert "ended by a fault of its own" in record.incomplete_because
    assert "its users and its part of the market" in record.incomplete_because


def test_a_conductor_that_is_killed_ends_the_run_with_a_sentence_and_its_executors(bank, load):
    before = history_rows(bank)

    def kill(running: Load) -> None:
        running.conductor.send_signal(signal.SIGKILL)

    record = load(plan([20], 600)).run(kill)
    assert "conductor was killed" in record.incomplete_because
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


def test_a_lost_server_ends_the_run_with_a_sentence(bank, load):
    def part(running: Load) -> None:
        admin.execute("ALTER DATABASE bank ALLOW_CONNECTIONS false")
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stallmark-user'"
        )

    admin = EmbeddedEngine(bank.server, "postgres")
    try:
        record = load(plan([2], 600)).run(part)
    finally:
        admin.execute("ALTER DATABASE bank ALLOW_CONNECTIONS true")
    assert "lost the server" in record.incomplete_because
    # Met at a commit, or by one that had nothing under way.
    assert set(record.table("errors")["error_class"].to_pylist()) <= {"unknown outcome", "connection lost"}
    assert total(record, "transactions", "committed") > 0


def test_a_server_that_lost_data_ends_the_run(bank, load):
    def break_it(running: Load) -> None:
        bank.execute(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'invalid page' USING ERRCODE = 'XX001'; END$$;"
            "CREATE TRIGGER lose BEFORE INSERT ON bank.history EXECUTE FUNCTION lose()"
        )

    try:
        record = load(plan([2], 600)).run(break_it)
    finally:
        bank.execute("DROP FUNCTION IF EXISTS lose CASCADE")
    assert "lost data" in record.incomplete_because and "XX001" in record.incomplete_because


def test_a_server_that_cannot_be_reached_is_said_before_anything_runs(bank, tmp_path):
    writer = RecordWriter(tmp_path / "run", {"started": "now"})
    elsewhere = order(bank) | {"engine": "no such engine"}
    drive = Drive(plan([2], 600), elsewhere, writer)
    try:
        with pytest.raises(StallmarkError, match="could not start"):
            drive.start()
    finally:
        drive.finish()


SCRIPT = """
    import select, sys, time
    from pathlib import Path
    from stallmark.driver.drive import Drive
    from stallmark.driver.pacing import Arrivals
    from stallmark.driver.plan import Plan, timeline
    from stallmark.driver.record import RecordWriter

    plan = Plan(timeline([20], ramp_s=0, warm_up_s=0, measure_s=600), Arrivals(), seed=1)
    drive = Drive(plan, {order!r}, RecordWriter(Path(sys.argv[1]), {{"started": "now"}}))
    print(drive._process.pid, flush=True)
"""


def script(bank: EmbeddedEngine, rest: str) -> list[str]:
    text = textwrap.dedent(SCRIPT).format(order=order(bank)) + textwrap.dedent(rest)
    return [sys.executable, "-c", text]


def test_a_tool_that_is_killed_leaves_no_process_and_a_record_that_can_be_read(bank, tmp_path):
    before = history_rows(bank)
    rest = """
        drive.start()
        said = []
        def show(progress):
            if progress.elapsed_s > 3 and not said:
                said.append(print("running", flush=True))
        drive.follow(show, lambda: None)
    """
    argv = [*script(bank, rest), str(tmp_path / "run")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout
        conductor = psutil.Process(int(tool.stdout.readline()))
        assert tool.stdout.readline() == "running\n"
        family = [conductor, *conductor.children(recursive=True)]
        assert len(family) == 1 + min(2, os.cpu_count() or 1)
        tool.kill()
        eventually(lambda: not any(process.is_running() for process in family))
    record = Record(tmp_path / "run")
    assert "was cut" in record.incomplete_because
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


def test_stopped_before_the_load_has_begun_it_ends_quietly(bank, tmp_path):
    rest = """
        select.select([drive._channel], [], [], 60)  # everybody is ready, nobody was told to go
        drive.finish()
    """
    argv = [*script(bank, rest), str(tmp_path / "run")]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    conductor = int(done.stdout)
    assert not psutil.pid_exists(conductor)


@pytest.fixture
def spoken_for(tmp_path, monkeypatch) -> Iterator[Callable[..., tuple[Drive, Channel]]]:
    """A drive whose conductor is the test: what it says, and nothing else, arrives."""
    here, there = socket.socketpair()
    with subprocess.Popen(["true"]) as process, here, there:
        monkeypatch.setattr("stallmark.driver.drive.start_child", lambda module: (process, Channel(here)))
        writer = RecordWriter(tmp_path / "run", {"started": "now"})
        yield lambda *arguments: (Drive(plan([1], 1), ENGINE, writer, *arguments), Channel(there))


ENGINE = {"engine": "mssql://sa:corr3ct@db/bank", "workload": "bank"}
GATHERING = Gathering(2, "*", 5557, {})


def machine(number: int, within_ms: float) -> dict[str, Any]:
    return {"number": number, "name": f"host-{number}", "cores": 8, "clock_within_ms": within_ms}


@pytest.mark.parametrize("gathering", [None, GATHERING], ids=["one machine", "several"])
def test_the_way_to_the_server_is_told_to_executors_of_this_machine_only(gathering, spoken_for):
    _, conductor = spoken_for(None, gathering)
    kind, fields = conductor.receive()
    assert kind == "order" and fields["executor"]["workload"] == "bank"
    assert ("corr3ct" in str(fields)) is (gathering is None)


@pytest.mark.parametrize(("later_ms", "noted"), [(2.0, False), (80.0, True)])
def test_load_machines_are_welcomed_by_name_and_their_clocks_noted_when_they_differ(
    later_ms, noted, spoken_for
):
    drive, conductor = spoken_for(None, GATHERING)
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
    drive, conductor = spoken_for(None, GATHERING)
    conductor.send(kind, **fields)
    with pytest.raises(StallmarkError, match=f"The load could not start: {sentence}"):
        drive.start()


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("lost machine", {}, "load machine 2 was lost"),
        ("gap", {}, "messages of load machine 2 were lost"),
        (
            "died",
            {"pid": 7, "code": -9},
            "executor process 7 on load machine 2 was killed, and its users with it",
        ),
        (
            "died",
            {"pid": 7, "code": 1},
            "executor process 7 on load machine 2 ended by a fault of its own, whose",
        ),
        ("lost", {"user": 3, "message": "gone"}, "virtual user 3 on load machine 2 lost the server: gone"),
        ("lost", {"user": None, "message": "gone"}, "the attendants on load machine 2 lost the server: gone"),
    ],
)
def test_what_happens_on_a_load_machine_is_said_of_it(kind, fields, sentence, spoken_for):
    drive, conductor = spoken_for(None, GATHERING)
    conductor.send(kind, machine=2, **fields)
    with pytest.raises(Interrupted, match=sentence):
        drive._receive(timeout=60)


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
        numbers = {
            "number": number,
            "processes": 4,
            "machine": 0,
            "machines": 1,
            "attendants": 0,
            "seed": 1,
            "arrivals": vars(Arrivals()),
        }
        executor = SimpleNamespace(number=number, it=Executor(Channel(here), order(bank) | numbers))
        for user in (0, 5):
            executor.it._start(user)
    assert seen[0, 0] == seen[3, 0] != seen[0, 5] == seen[3, 5]
    for each in pair:
        each.close()


def test_transactions_know_where_they_are(bank, market):
    """Which part of the customers is theirs, and which numbers nobody else gives."""
    here, there = socket.socketpair()
    place = {"number": 3, "processes": 4, "machine": 2, "machines": 2}
    rest = {"attendants": 1, "seed": 7, "arrivals": vars(Arrivals())}
    executor = Executor(Channel(here), order(bank) | market | place | rest | {"locality": 0.5})
    around = executor._shared
    assert (around.process, around.processes, around.machine, around.machines) == (3, 4, 2, 2)
    assert (around.locality, around.seed, around.scale) == (0.5, 7, {"branches": 1})
    assert around.query("SELECT 1") == [(1,)]
    here.close()
    there.close()


@pytest.mark.parametrize("over", [False, True], ids=["too early", "at the end"])
def test_users_that_stop_at_the_plans_end_are_no_interruption(over, spoken_for):
    """Locust tells of its stop when it likes; the message may come while the last reports are read."""
    drive, conductor = spoken_for()
    drive.start_ns = time.monotonic_ns() - (round(drive._plan.end_s * 1e9) if over else 0)
    conductor.send("stopped")
    with nullcontext() if over else pytest.raises(Interrupted, match="stopped from the web page"):
        drive._receive(timeout=60)
