"""Changes of an array before a variant: by a command, whose output is kept, or by the operator."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import ValidationError
from rich.console import Console
from support.waiting import eventually

from stallmark import redact
from stallmark.errors import StallmarkError
from stallmark.experiment import storage_work
from stallmark.experiment.progress import Show
from stallmark.experiment.storage_work import HookFailed, carry_out_hook, refuse_impossible_hook
from stallmark.scenarios.model import Hook

SHOW = Show(Console(file=io.StringIO()))


def python(text: str, **more: Any) -> Hook:
    return Hook(command=[sys.executable, "-c", text], **more)


@pytest.fixture
def ready(monkeypatch, tmp_path) -> Path:
    """A file that a command makes when its time may be up: no machine is so busy that it was too early."""
    made = tmp_path / "ready"

    class Process(subprocess.Popen):
        def wait(self, timeout: float | None = None) -> int:
            if timeout is None:
                return super().wait()
            eventually(made.exists, "a command that is ready")
            raise subprocess.TimeoutExpired(self.args, timeout)

    monkeypatch.setattr(storage_work.subprocess, "Popen", Process)
    monkeypatch.setattr(storage_work, "GRACE_S", 60)
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_command_is_run_without_a_shell_and_its_output_is_kept():
    done = carry_out_hook(
        "HDD", Hook(command=[sys.executable, "-c", "import sys; print(sys.argv[1])", "$HOME; *"]), SHOW
    )
    assert done.output == "$HOME; *" and done.seconds == round(done.seconds, 1) >= 0


def test_one_that_fails_shows_what_it_said():
    with pytest.raises(HookFailed, match=r"before 'HDD' failed \(it ended with code 7\); it said: no such pool"):
        carry_out_hook("HDD", python("import sys; print('no such pool', file=sys.stderr); sys.exit(7)"), SHOW)


def test_of_much_output_the_end_is_kept():
    said = carry_out_hook("HDD", python("print('x' * 100_000 + 'the end')"), SHOW).output
    assert len(said) == storage_work.MOST_OUTPUT and said.endswith("the end")


def test_one_that_hangs_is_stopped_with_what_it_started(ready):
    child = (
        "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); "
        f"open({str(ready)!r}, 'w').close(); p.wait()"
    )
    with pytest.raises(HookFailed, match=r"had not ended after 1 s and was stopped; it said: \d+") as stopped:
        carry_out_hook("HDD", python(child, timeout="1s"), SHOW)
    pid = int(str(stopped.value).split()[-1])
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_what_it_leaves_running_is_not_waited_for():
    left = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    done = carry_out_hook("HDD", python(left, timeout="300s"), SHOW)  # which would have failed
    os.kill(int(done.output), signal.SIGKILL)  # which fails, had it ended


def test_it_is_given_no_password(monkeypatch):
    names = ("SQLCMDPASSWORD", "PGPASSWORD", "STALLMARK_SERVER", "ARRAY_API_TOKEN", "SSHPASS", "DB_PASS", "MY_PASS_1")
    for name in (*names, "AZURE_STORAGE_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("DATABASE", "Server=array;Password=hunter2")
    kept = {"STALLMARK_HOME": "/home/of/databases", "SSH_ASKPASS": "/bin/ask", "SSH_AUTH_SOCK": "/run/agent"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    given = redact.environment()
    assert "hunter2" not in str(given) and kept.items() <= given.items()
    assert "hunter2" not in carry_out_hook("HDD", python("import os; print(dict(os.environ))"), SHOW).output


@pytest.mark.parametrize(
    "argument", ["--password=hunter2", "--password", "https://admin:hunter2@array/api", "PWD=hunter2"]
)
def test_a_password_in_it_is_refused(argument):
    with pytest.raises(ValidationError, match="would be in every record"):
        Hook(command=["set-cache", argument])


def test_a_command_that_is_not_there_is_refused_before_anything_is_loaded():
    with pytest.raises(HookFailed, match="HDD: the command 'no-such-program' is not there"):
        refuse_impossible_hook("HDD", Hook(command=["no-such-program"]))
    refuse_impossible_hook("HDD", python("pass"))


@pytest.mark.parametrize("answer", ["\n", "y\n", "Done\n"])
def test_an_operator_who_has_done_it(monkeypatch, answer):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    refuse_impossible_hook("HDD", Hook(ask="Take the flash out."))
    done = carry_out_hook("HDD", Hook(ask="Take the flash out."), SHOW)
    assert done.ask == "Take the flash out." and done.answer == (answer.strip() or "Enter")
    assert SHOW.doing.asks == ("HDD", "Take the flash out.")


@pytest.mark.parametrize(("answer", "said"), [("no\n", "The operator answered 'no'"), ("", "There was no answer")])
def test_an_operator_who_has_not(monkeypatch, answer, said):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with pytest.raises(HookFailed, match=rf"{said} to 'Take the flash out\.' \(HDD\)"):
        carry_out_hook("HDD", Hook(ask="Take the flash out."), SHOW)


def test_without_a_terminal_nobody_can_be_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with pytest.raises(HookFailed, match=r"there is no terminal here: run it in a terminal, or write a command"):
        refuse_impossible_hook("HDD", Hook(ask="Take the flash out."))


def test_an_operator_is_asked_until_it_is_yes_or_no(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("doen\n\n"))
    assert carry_out_hook("HDD", Hook(ask="Take the flash out."), SHOW).answer == "Enter"


def test_what_is_stopped_may_close_its_session_with_the_array(tmp_path, ready):
    left = tmp_path / "closed"
    text = f"import signal, sys, time; signal.signal(15, lambda *_: (open({str(left)!r}, 'w').close(), sys.exit()))"
    with pytest.raises(HookFailed, match="was stopped"):
        carry_out_hook("HDD", python(f"{text}; open({str(ready)!r}, 'w'); time.sleep(600)", timeout="1s"), SHOW)
    assert left.exists()


def test_no_password_gets_into_a_record_by_what_a_command_says(monkeypatch, tmp_path):
    monkeypatch.setenv("PGPASSWORD", "correct horse")
    monkeypatch.setenv("STALLMARK_SERVER", "mssql://sa:battery%20staple@db/tpce")
    (tmp_path / "script.py").write_text(
        "print('correct horse; battery staple; https://admin:hunter2@array/api; password: hunter2, pool=fast')\n"
        "print('pwd=\\nok')"
    )
    said = carry_out_hook("HDD", Hook(command=[sys.executable, str(tmp_path / "script.py")]), SHOW).output
    assert said == "(hidden); (hidden); https://admin:(hidden)@array/api; password: (hidden), pool=fast\npwd=\nok"


def test_a_url_with_a_password_is_not_passed_on(monkeypatch):
    monkeypatch.setenv("WAREHOUSE", "postgresql://me:hunter2@db/warehouse")
    assert "hunter2" not in carry_out_hook("HDD", python("import os; print(dict(os.environ))"), SHOW).output
    assert "WAREHOUSE" not in redact.environment()


@pytest.mark.parametrize("order", ["blocks", "alternating"])
def test_there_must_be_a_way_back_to_every_array(read, order):
    changes = "variants=[{name: HDD}, {name: cached, before: {ask: Ready?}}]"
    sets = ("emulated_array=null", changes, f"order={order}", "repeats=2")
    with pytest.raises(StallmarkError, match=r"'HDD' comes after one that changes the array .* write one"):
        read(sets=sets)
    read(sets=(*sets[:2], "repeats=1"))  # each once, as it is and then changed
    read(sets=(*sets, "variants.0.before={ask: As it was?}"))


def test_the_command_at_the_end_is_told_folder_state_and_reason(tmp_path):
    said = tmp_path / "said"
    program = "import sys; open(sys.argv[1], 'w').write('|'.join(sys.argv[2:]))"
    hook = Hook(command=[sys.executable, "-c", program, str(said), "{folder}", "it is {state}", "{because}"])
    storage_work.carry_out_at_end(hook, tmp_path, "incomplete", "the server was {gone}", SHOW)
    assert said.read_text() == f"{tmp_path}|it is incomplete|the server was {{gone}}"


def test_a_command_at_the_end_that_fails_is_said_and_raises_nothing(tmp_path):
    said = io.StringIO()
    hook = Hook(command=[sys.executable, "-c", "print('no mail here'); raise SystemExit(7)"])
    storage_work.carry_out_at_end(hook, tmp_path, "complete", "", Show(Console(file=said, width=200)))
    assert "ended with code 7" in said.getvalue() and "no mail here" in said.getvalue()


def test_what_stands_in_a_reason_is_not_replaced_again(tmp_path):
    said = tmp_path / "said"
    program = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    hook = Hook(command=[sys.executable, "-c", program, str(said), "{folder}"])
    storage_work.carry_out_at_end(hook, tmp_path / "{state}", "complete", "", SHOW)
    assert said.read_text() == str(tmp_path / "{state}")
