"""A run's load that ends before its time: a sentence, no process left, and what was measured kept."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import psutil
import pytest
from support.driving import Load, history_rows, load_spec, timeline, total
from support.manifests import a_manifest
from support.remote import free_port
from support.waiting import eventually

from stallmark.driver import controller
from stallmark.driver.controller import Drive
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

pytestmark = pytest.mark.thorough


def test_an_executor_that_is_killed_ends_the_run_with_a_sentence_and_keeps_what_was_measured(bank, load, market):
    before = history_rows(bank)
    record = load(600, load_spec(20, background_per_user=0.5, **market)).run(
        lambda running: running.executors()[0].send_signal(signal.SIGKILL)
    )
    assert "executor process" in record.incomplete_because
    assert "was killed by signal 9 (SIGKILL)" in record.incomplete_because
    assert "and its users and its part of the market with it" in record.incomplete_because
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


@pytest.mark.parametrize(
    ("module", "killed"),
    [("executor", "executor process"), ("locust_conductor", "conductor")],
    ids=["executor", "conductor"],
)
def test_who_is_killed_while_the_load_starts_is_said(bank, load, tmp_path, monkeypatch, module, killed):
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, sys\nif 'stallmark.driver.{module}' in sys.orig_argv:\n    os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}")
    with pytest.raises(StallmarkError, match=rf"could not start: .*{killed}.* was killed by signal 9 \(SIGKILL\)"):
        load(600, load_spec(2)).run()


def test_a_deferred_queue_that_passes_on_nothing_ends_the_run(bank, load, market, tmp_path, monkeypatch):
    """The users would go on, and the load would not be the workload's any more."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "def breaking(run):\n"
        "    def broken(self):\n"
        "        if self.name != 'deferred queue':\n"
        "            return run(self)\n"
        "        while not any(thread.name.startswith('user-') for thread in threading.enumerate()):\n"
        "            time.sleep(0.01)\n"
        "    return broken\n"
        "threading.Thread.run = breaking(threading.Thread.run)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}")
    record = load(600, load_spec(2, background_per_user=0.5, **market)).run()
    assert "ended by a fault of its own" in record.incomplete_because
    assert "its users and its part of the market" in record.incomplete_because


def test_a_conductor_that_is_killed_ends_the_run_with_a_sentence_and_its_executors(bank, load):
    before = history_rows(bank)

    def kill(running: Load) -> None:
        running.conductor.send_signal(signal.SIGKILL)

    record = load(600, load_spec(20)).run(kill)
    assert "conductor was killed by signal 9 (SIGKILL)" in record.incomplete_because
    assert 0 < total(record, "transactions", "committed") <= history_rows(bank) - before


@pytest.mark.parametrize("part", ["executor", "conductor"])
def test_a_part_that_is_stopped_ends_the_run_before_its_time(bank, load, monkeypatch, part):
    monkeypatch.setattr(controller, "SILENT_S", 2.0)
    monkeypatch.setattr(controller, "FAREWELL_S", 20 if part == "executor" else 1)

    def stop(running: Load) -> None:
        (running.executors()[0] if part == "executor" else running.conductor).send_signal(signal.SIGSTOP)

    record = load(600, load_spec(20)).run(stop)
    assert "no report of an executor process arrived for more than 2 s: it or the load" in record.incomplete_because
    assert total(record, "transactions", "committed") > 0


def test_an_executor_that_is_stopped_shortly_before_the_end_makes_no_whole_run(bank, load):
    def stop_later(running: Load) -> None:
        stop = partial(running.executors()[0].send_signal, signal.SIGSTOP)
        threading.Timer(running.drive._timeline.end_s - 3 - running.drive.clock(), stop).start()

    running = load(8, load_spec(20))
    running.run(stop_later)
    assert "no report of an executor process arrived for more than 1 s" in running.drive.no_result_reason()


def test_a_lost_server_ends_the_run_with_a_sentence(bank, load):
    def part(running: Load) -> None:
        admin.execute("ALTER DATABASE bank ALLOW_CONNECTIONS false")
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stallmark-user'"
        )

    admin = EmbeddedEngine(bank.server, "postgres")
    try:
        record = load(600, load_spec(2, most_reconnects=2)).run(part)
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
        record = load(600, load_spec(2)).run(break_it)
    finally:
        bank.execute("DROP FUNCTION IF EXISTS lose CASCADE")
    assert "lost data" in record.incomplete_because and "XX001" in record.incomplete_because


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ("no such engine", "begins with neither"),
        ("postgresql://tester@127.0.0.1:{port}/db", "No connection to 127.0.0.1"),
    ],
    ids=["engine", "server"],
)
def test_a_server_that_cannot_be_reached_is_said_before_anything_runs(tmp_path, engine, why):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    loads = [load_spec(2, workload="brokerage", scale={"customers": 1000, "days": 0.05})]
    drive = Drive(timeline(loads, 600), engine.format(port=free_port()), loads, writer)
    try:
        with pytest.raises(StallmarkError, match=rf"could not start: executor process \d+ could not begin: .*{why}"):
            drive.start()
    finally:
        drive.finish()


SCRIPT = """
    import select, sys, time
    from pathlib import Path
    from stallmark.driver.controller import Drive
    from stallmark.driver.load import LoadSpec
    from stallmark.driver.pacing import Arrivals
    from stallmark.driver.load import Timeline, consecutive_steps
    from stallmark.record.manifest import Manifest
    from stallmark.record.writer import RecordWriter

    timeline = Timeline(consecutive_steps([("20 users", 20)], ramp_s=0, warm_up_s=0, measure_s=600))
    drive = Drive(timeline, {engine!r}, [{load!r}], RecordWriter(Path(sys.argv[1]), Manifest(started="2026-01-01")))
    print(drive._process.pid, flush=True)
"""


def script(bank: EmbeddedEngine, rest: str) -> list[str]:
    text = textwrap.dedent(SCRIPT).format(engine=bank.spec(), load=load_spec(20)) + textwrap.dedent(rest)
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
