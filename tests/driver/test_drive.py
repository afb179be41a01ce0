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
from pathlib import Path
from typing import Any

import psutil
import pytest

from stallmark.driver import hdr
from stallmark.driver.drive import Drive, Interrupted
from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.pacing import Arrivals
from stallmark.driver.plan import Plan, timeline
from stallmark.driver.record import Record, RecordWriter
from stallmark.driver.wire import Channel

from .conftest import eventually


def order(bank: EmbeddedEngine) -> dict[str, Any]:
    return {"engine": bank.spec(), "workload": "bank", "scale": {"branches": 1}, "call_timeout_s": 30.0}


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

    def __init__(self, bank: EmbeddedEngine, folder: Path, load: Plan):
        self.writer = RecordWriter(folder, {"started": "now"})
        self.drive = Drive(load, order(bank), self.writer)
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
            if self.drive._merger.committed and waiting:
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
def load(bank: EmbeddedEngine, tmp_path: Path) -> Iterator[Callable[[Plan], Load]]:
    made: list[Load] = []

    def make(load: Plan) -> Load:
        made.append(Load(bank, tmp_path / "run", load))
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
    assert set(record.table("errors")["error_class"].to_pylist()) == {"unknown outcome"}
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


@pytest.mark.parametrize("over", [False, True], ids=["too early", "at the end"])
def test_users_that_stop_at_the_plans_end_are_no_interruption(over, tmp_path, monkeypatch):
    """Locust tells of its stop when it likes; the message may come while the last reports are read."""
    here, there = socket.socketpair()
    with subprocess.Popen(["true"]) as process:
        monkeypatch.setattr("stallmark.driver.drive.start_child", lambda module: (process, Channel(here)))
        short = plan([1], 1)
        drive = Drive(short, {}, RecordWriter(tmp_path / "run", {"started": "now"}))
        drive.start_ns = time.monotonic_ns() - (round(short.end_s * 1e9) if over else 0)
        Channel(there).send("stopped")
        with nullcontext() if over else pytest.raises(Interrupted, match="stopped from the web page"):
            drive._receive(timeout=60)
    here.close()
    there.close()
