"""How children end, and how that is said."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually

from stallmark import processes
from stallmark.processes import (
    ProcessTree,
    TreeTimes,
    exit_clause,
    exit_code_from_guard,
    killed_by,
    run_guarded,
    wait_for_exit_code,
)


@pytest.mark.parametrize(
    ("script", "by", "said"),
    [
        ("exit 0", None, "ended with code 0"),
        ("exit 137", None, "ended with code 137"),
        ("kill -9 $$", "signal 9 (SIGKILL)", "was killed by signal 9 (SIGKILL)"),
        ("kill -15 $$", "signal 15 (SIGTERM)", "was killed by signal 15 (SIGTERM)"),
    ],
)
def test_a_signal_has_its_name_and_a_code_its_number(script, by, said):
    code = subprocess.run(["sh", "-c", script]).returncode
    assert (killed_by(code), exit_clause(code)) == (by, said)


def test_a_guard_hands_the_signal_on():
    code = subprocess.run(["sh", "-c", "sh -c 'kill -9 $$'; exit $?"], stderr=subprocess.DEVNULL).returncode
    assert killed_by(exit_code_from_guard(code)) == "signal 9 (SIGKILL)"
    assert [exit_code_from_guard(code) for code in (0, 1, -9, None)] == [0, 1, -9, None]


CALLS = {
    "cp": "from stallmark.engines.postgres.embedded_copies import _copy; _copy([Path('a')], Path('b'))",
    "pg_restore": "from stallmark.engines.postgres.statements import Archive; "
    "Archive(SimpleNamespace(login=lambda: SimpleNamespace(password='')))._run(['a'], 'b')",
    "tpchgen-cli": "from stallmark.transactions.warehouse import oracle; "
    "oracle.warehouse.find_generator = lambda: 'tpchgen-cli'; oracle._generate(1, Path('b'))",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no guard.")
@pytest.mark.parametrize("name", CALLS)
def test_a_program_that_takes_long_ends_with_a_process_of_ours_that_is_killed(tmp_path, monkeypatch, name):
    pid = tmp_path / "pid"
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\necho $$ > {pid}.new && mv {pid}.new {pid}\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    call = f"from pathlib import Path\nfrom types import SimpleNamespace\n{CALLS[name]}"
    with subprocess.Popen([sys.executable, "-c", call]) as ours:
        running = psutil.Process(int(eventually(lambda: pid.exists() and pid.read_text())))
        ours.kill()
    eventually(lambda: not running.is_running(), f"the end of {name}")


def test_a_program_that_ends_is_returned_with_what_it_printed():
    done = run_guarded("test", ["sh", "-c", "echo $A$B; echo no >&2; exit 3"], {"B": "2"}, env={"A": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "12\n", "no\n")
    assert run_guarded("test", ["sh", "-c", "kill -9 $$"]).returncode == -9


def test_one_that_goes_on_has_no_code():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert wait_for_exit_code(process, 0.01) is None
        assert (killed_by(None), exit_clause(None)) == (None, "has not ended")
        process.kill()


def test_a_signal_without_a_name_has_its_number():
    assert killed_by(-200) == "signal 200 (of no name)"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit.")
def test_a_process_may_open_as_many_files_as_the_system_lets_it():
    code = "from stallmark.processes import *; may_open_most_files(); print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    asked = f"ulimit -Sn 200; ulimit -Hn 300; {sys.executable} -c '{code}'"
    assert subprocess.run(["sh", "-c", asked], capture_output=True, text=True).stdout == "(300, 300)\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit.")
@pytest.mark.parametrize(("now", "most"), [(256, 10_240), (65_536, 65_536), (-1, None)])
def test_a_limit_that_is_said_to_be_none_is_not_lowered(monkeypatch, now, most):
    """macOS says so of its hard limit."""
    told = []
    limits = SimpleNamespace(
        RLIM_INFINITY=-1, RLIMIT_NOFILE=7, getrlimit=lambda _: (now, -1), setrlimit=lambda *set: told.append(set)
    )
    monkeypatch.setattr(processes, "resource", limits)
    assert processes.most_open_files() == most
    processes.may_open_most_files()
    assert told == ([(7, (most, -1))] if most else [])


ROOT = 100
TICKS = 100


class Proc:
    """A /proc of processes with threads, each: (ticks in user mode, ns runnable)."""

    def __init__(self, folder: Path):
        self.folder, self.reaped = folder, 0
        self.add(1, 0)
        self.add(ROOT, 1, name="postgres: (a) b")

    def add(self, pid: int, parent: int, name: str = "postgres", ticks: int = 0, delay_ns: int = 0) -> None:
        task = self.folder / str(pid) / "task" / str(pid)
        task.mkdir(parents=True, exist_ok=True)
        ended = self.reaped if pid == ROOT else 0
        rest = f"S {parent} 0 0 0 -1 0 0 0 0 0 {ticks} 0 {ended} 0 20 0 1 0 {pid} 0"
        (self.folder / str(pid) / "stat").write_text(f"{pid} ({name}) {rest}\n")
        (task / "schedstat").write_text(f"5 {delay_ns} 1\n")

    def end(self, pid: int, ticks: int) -> None:
        for file in ("stat", f"task/{pid}/schedstat"):
            (self.folder / str(pid) / file).unlink()
        for part in (f"task/{pid}", "task", ""):
            (self.folder / str(pid) / part).rmdir()
        self.reaped += ticks
        self.add(ROOT, 1)


def read(tree: ProcessTree) -> TreeTimes:
    times = tree.read()
    assert times is not None
    return times


def test_the_processes_of_others_do_not_count(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.add(101, ROOT, ticks=30, delay_ns=2_000_000_000)
    proc.add(102, 101, ticks=4, delay_ns=500_000_000)
    proc.add(103, 1, ticks=5000, delay_ns=9_000_000_000)
    times = read(ProcessTree(ROOT, tmp_path))
    assert (round(times.user_s, 6), times.run_delay_s, times.processes) == (0.34, 2.5, 3)


def test_a_root_that_ended_has_no_times(tmp_path: Path) -> None:
    assert ProcessTree(ROOT, tmp_path).read() is None


def test_a_kernel_that_does_not_count_delays(tmp_path: Path) -> None:
    Proc(tmp_path)
    (tmp_path / str(ROOT) / "task" / str(ROOT) / "schedstat").unlink()
    assert read(ProcessTree(ROOT, tmp_path)).run_delay_s is None


def test_a_kernel_that_has_the_file_and_does_not_fill_it(tmp_path: Path) -> None:
    Proc(tmp_path)
    (tmp_path / str(ROOT) / "task" / str(ROOT) / "schedstat").write_text("0 0 0\n")
    assert read(ProcessTree(ROOT, tmp_path)).run_delay_s is None


@given(rounds=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**9), st.booleans()), max_size=8))
def test_nothing_is_lost_when_sessions_end(rounds: list[tuple[int, int, bool]], tmp_path_factory) -> None:
    proc = Proc(tmp_path_factory.mktemp("proc"))
    tree = ProcessTree(ROOT, proc.folder)
    ticks = delay_ns = 0
    before = read(tree)
    for number, (used, waited, ends) in enumerate(rounds):
        proc.add(200 + number, ROOT, ticks=used, delay_ns=waited)
        ticks, delay_ns = ticks + used, delay_ns + waited
        if ends:
            read(tree)
            proc.end(200 + number, used)
        now = read(tree)
        assert now.user_s >= before.user_s
        before = now
    assert abs(before.user_s - ticks / TICKS) < 1e-6
    assert before.run_delay_s is not None and abs(before.run_delay_s - delay_ns / 1e9) < 1e-6
