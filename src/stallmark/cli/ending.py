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
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:  # shown here: click itself would end with 1 if nobody reads it
        with suppress(OSError, ValueError):
            error.show()
        _forget_unread_output()
        sys.exit(error.exit_code)
    except BaseException as error:
        if isinstance(error, click.Abort) and isinstance(error.__context__, StopSignal):  # click's word for Ctrl-C
            error = error.__context__
        error = lost_in(error) or error
        with held():
            sentence, code = _told(error)
            with suppress(OSError, ValueError):  # nobody may be left to read it
                if sentence:
                    tell(err, sentence)
            _forget_unread_output()
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
            if _unread_outputs():
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


def _unread_outputs() -> list[int]:
    """Return those of standard output and standard error whose reader has gone."""
    if not hasattr(select, "poll"):  # Windows
        return [1, 2]
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return [number for number, event in outputs.poll(0) if event & (select.POLLERR | select.POLLHUP)]


def _forget_unread_output() -> None:
    """Redirect what nobody reads to nowhere: the interpreter ends with 120 if it cannot flush its output."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in _unread_outputs():
            os.dup2(nowhere, number)
