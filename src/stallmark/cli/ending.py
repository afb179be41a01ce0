"""The end of a command: whatever ends it early becomes one sentence and an exit code of its own."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from stallmark.stopping import StopSignal, defer_signals, lost_in


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
        with defer_signals():
            from stallmark.cli.exit_codes import sentence_and_code, show  # not for --help

            sentence, code = sentence_and_code(error, unread=bool(_unread_outputs()))
            with suppress(OSError, ValueError):  # nobody may be left to read it
                show(sentence)
            _forget_unread_output()
        sys.exit(code)


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
