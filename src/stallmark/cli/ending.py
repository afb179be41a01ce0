"""The end of a command: whatever ends it early becomes one sentence and an exit code of its own."""

import os
import select
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from stallmark.cli import crash_log
from stallmark.cli.common import CUT_OFF, FAILED, UNEXPECTED, err, escape, tell
from stallmark.errors import CallFailed, StallmarkError, in_words
from stallmark.redact import without_secrets
from stallmark.stopping import StopSignal, held, lost_in


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the process with a sentence on standard error and an exit code, where what is inside raises an error."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit, click.UsageError):
        raise
    except BaseException as error:
        if isinstance(error, click.Abort) and isinstance(error.__context__, StopSignal):  # click's word for Ctrl-C
            error = error.__context__
        error = lost_in(error) or error
        with held():
            sentence, code = _told(error)
            with suppress(OSError, ValueError):  # nobody may be left to read it
                if sentence:
                    tell(err, sentence)
        sys.exit(code)


def _told(error: BaseException) -> tuple[str, int]:
    match error:
        case StopSignal():
            left = " ".join(getattr(error, "__notes__", ()))
            kept = f" is kept. {left}" if left else " is kept; servers and settings are as before."
            sentence = f"{error}. What was done{kept}"
            return escape(sentence[0].upper() + sentence[1:]), error.exit_code
        case click.Abort():
            return _error("Nobody answered, so nothing was done."), FAILED
        case BrokenPipeError():  # of a process of ours, unless a reader has gone
            if _nobody_reads():
                _forget_output()
                return "", CUT_OFF
        case MemoryError():
            return _error("The memory of this machine was not enough for it."), FAILED
        case StallmarkError() | CallFailed() | OSError():  # OSError: a full disk, a folder without rights
            return _error(in_words(error)), FAILED
        case click.ClickException():
            return _error(error.format_message()), FAILED
    log = crash_log.write(error)
    what = f"a bug in Stallmark ({type(error).__name__})."
    if log:
        return _error(f"{what} Look through {log} and send it to us."), UNEXPECTED
    shown = without_secrets("".join(traceback.format_exception(error)))
    return f"{escape(shown)}{_error(f'{what} Look through the lines above and send them to us.')}", UNEXPECTED


def _error(sentence: str) -> str:
    return f"[bold red]Error:[/] {escape(sentence)}"


def _nobody_reads() -> bool:
    """Tell whether the reader of standard output or standard error has gone."""
    if not hasattr(select, "poll"):  # Windows
        return True
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in outputs.poll(0))


def _forget_output() -> None:
    """Let nobody write any more to a reader that has gone, as the interpreter would when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
