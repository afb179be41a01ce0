"""How children end, and how that is said."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from stallmark import processes
from stallmark.processes import exit_clause, exit_code_from_guard, killed_by, wait_for_exit_code


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
