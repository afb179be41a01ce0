"""The end of a command: every reason to end early becomes one sentence with its own exit code."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from stallmark.stopping import StopSignal, defer_signals, lost_in


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the process with a sentence on standard error and an exit code if the body raises an error."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:
        # Shown here, because click itself would exit with 1 if the output is closed.
        with suppress(OSError, ValueError):
            error.show()
        _forget_unread_output()
        sys.exit(error.exit_code)
    except BaseException as error:
        # click turns Ctrl-C into Abort: the signal decides the exit code.
        if isinstance(error, click.Abort) and isinstance(error.__context__, StopSignal):
            error = error.__context__
        error = lost_in(error) or error
        with defer_signals():
            from stallmark.cli.exit_codes import sentence_and_code, show  # not for --help

            sentence, code = sentence_and_code(error, unread=bool(_unread_outputs()))
            # Standard error may be closed as well.
            with suppress(OSError, ValueError):
                show(sentence)
            _forget_unread_output()
        sys.exit(code)


def _unread_outputs() -> list[int]:
    """Return the file numbers of standard output and standard error whose reader has closed the pipe."""
    # Windows cannot poll pipes: treat both as unread.
    if not hasattr(select, "poll"):
        return [1, 2]
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return [number for number, event in outputs.poll(0) if event & (select.POLLERR | select.POLLHUP)]


def _forget_unread_output() -> None:
    """Redirect closed outputs to the null device: the interpreter exits with 120 if it cannot flush them."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in _unread_outputs():
            os.dup2(nowhere, number)
