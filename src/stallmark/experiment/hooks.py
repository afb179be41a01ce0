"""Hooks: a command, or a question to the operator, that changes the array before a variant.

before: {command: [ssh, array, set-cache, --size, 800GB], timeout: 10min}
before: {ask: "Put the SSDs into the read cache, then press Enter."}

Or a command at the end of an experiment, however it ended:

at_end: {command: [mail, -s, "Stallmark: {state}", me@example.org]}

A command is run without a shell, its output is kept, and one that fails ends the experiment before anything is measured
on an array that is not what the variant says.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from stallmark.errors import StallmarkError
from stallmark.experiment.progress import Show
from stallmark.processes import how_ended
from stallmark.record.manifest.storage import HookResult
from stallmark.redact import environment, without_secrets
from stallmark.scenarios.model import Hook
from stallmark.stopping import later

MOST_OUTPUT = 4000
"""Characters of a command's output that are kept: its end, where it says what went wrong."""

DEFAULT_TIMEOUT_S = 600.0
"""Longer than an array takes to answer, shorter than an operator who has gone home would like to find out."""

GRACE_S = 5.0
"""To end by itself after it was asked to (SIGTERM): it may have a session with the array to close."""

YES, NO = ("", "y", "yes", "ok", "done"), ("n", "no", "stop", "quit", "q")


class HookFailed(StallmarkError):
    """The array is not what the variant needs."""


def refuse_impossible(what: str, hook: Hook) -> None:
    """Raise HookFailed for a hook that cannot be carried out, before anything is loaded."""
    if hook.ask and not (sys.stdin and sys.stdin.isatty()):
        raise HookFailed(
            f"{what} asks the operator (ask), and nobody is at a terminal here: run it in one, or "
            "write a command ({command: […]})."
        )
    if hook.command and not _program(hook.command[0], environment()):
        raise HookFailed(f"{what}: the command {hook.command[0]!r} is not there to be run.")


def carry_out(variant: str, hook: Hook, show: Show) -> HookResult:
    """Carry out a hook; return what the record says of it. Raise HookFailed."""
    began = time.monotonic()
    if hook.ask:
        answer = _asked(variant, hook.ask, show)
        return HookResult(ask=hook.ask, answer=answer, seconds=_since(began))
    assert hook.command
    with show.bar(f"{variant}: {' '.join(hook.command)}", None):
        show.waits(" ".join(hook.command))
        output = _run(f"The command before {variant!r}", hook.command, hook.timeout or DEFAULT_TIMEOUT_S)
    return HookResult(command=tuple(hook.command), output=output, seconds=_since(began))


def carry_out_at_end(hook: Hook, folder: Path, state: str, because: str, show: Show) -> None:
    """Run the command at the end. In its arguments `{folder}`, `{state}` and `{because}` stand for the experiment's
    folder, "complete", "incomplete" or "stopped", and why. One that fails is said, and changes nothing else."""
    assert hook.command
    known = {"folder": str(folder), "state": state, "because": because}
    command = [hook.command[0]]
    for argument in hook.command[1:]:
        command.append(re.sub(r"\{(folder|state|because)\}", lambda name: known[name[1]], argument))
    try:
        _run("The command at the end", command, hook.timeout or DEFAULT_TIMEOUT_S)
    except HookFailed as failed:
        show.say(str(failed))


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


def _asked(variant: str, question: str, show: Show) -> str:
    """Ask the operator until the answer is yes or no: a typing error must not end days of measuring. Raise HookFailed
    for a no, and when nobody answers."""
    _forget_typed()
    show.say(f"{variant}: {question}")
    show.waits(asks=(variant, question))
    while True:
        show.say("Enter: it is done. no: stop here.")
        try:
            answer = sys.stdin.readline()
        except (OSError, ValueError):
            answer = ""
        if not answer:
            raise HookFailed(f"Nobody answered whether the array is ready for {variant!r}.")
        said = answer.strip()
        if said.lower() in YES:
            return said or "Enter"
        if said.lower() in NO:
            raise HookFailed(f"The operator said {said!r} when asked whether the array is ready for {variant!r}.")


def _forget_typed() -> None:
    """Discard what was typed before the question: an Enter pressed hours ago is no answer."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    import termios

    with suppress(OSError, ValueError, termios.error):  # no terminal, or one that is gone: reading tells
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _run(which: str, command: Sequence[str], timeout_s: float) -> str:
    """Run a command, `which` in sentences, and return the end of its output. Raise HookFailed when it fails or takes
    longer than `timeout_s` seconds.

    The output goes to a file: a pipe would stay open as long as any process that the command leaves running.
    """
    scrubbed = environment()
    program = _program(command[0], scrubbed) or command[0]
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=scrubbed, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HookFailed(f"{which} could not be run ({error.strerror}).") from None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with later():
                _end(process)
            raise HookFailed(
                f"{which} had not ended after {timeout_s:g} s and was stopped{_with_output(_text(output))}"
            ) from None
        except BaseException:
            with later():
                _end(process)
            raise
        said = _text(output)
    if code:
        how = f"it {how_ended(code)}"
        raise HookFailed(f"{which} failed ({how}){_with_output(said)}")
    return said


def _end(process: subprocess.Popen) -> None:
    """Terminate a process and all that it has started; kill what has not ended after GRACE_S."""
    family = []
    with suppress(psutil.Error):
        family.append(psutil.Process(process.pid))  # not waited for yet, so its number is nobody else's
        family += family[0].children(recursive=True)
    for one in family:
        with suppress(psutil.Error):
            one.terminate()
    until = time.monotonic() + GRACE_S
    while any(map(_runs, family)) and time.monotonic() < until:
        time.sleep(0.05)
    for one in filter(_runs, family):
        with suppress(psutil.Error):
            one.kill()
    if hasattr(os, "killpg"):  # what has lost its parents is in the group still
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _text(output: IO[bytes]) -> str:
    """Return the end of the output, redacted. Twice as much as is kept is read, because redacting makes it shorter
    or longer."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - 2 * MOST_OUTPUT))
    return without_secrets(output.read().decode(errors="replace").strip())[-MOST_OUTPUT:]


def _with_output(said: str) -> str:
    return f"; it said: {said}" if said else "; it said nothing."


def _program(name: str, among: dict[str, str]) -> str | None:
    return shutil.which(name, path=among["PATH"])
