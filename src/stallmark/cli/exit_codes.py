"""The exit codes, the sentence and code for an error that ended a command, and the log of an unforeseen error."""

import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

import click
import platformdirs
from rich.markup import escape

import stallmark
from stallmark.cli.output import err, print_markup
from stallmark.errors import CallFailed, ServerLost, StallmarkError, WrongOption, in_words
from stallmark.redact import without_secrets
from stallmark.stopping import StopSignal

# Exit codes, for CI. click itself uses 2 for a wrong command line.
CONDITION_BROKEN, WRONG, FAILED, INCOMPLETE, VERDICT, INCONCLUSIVE, UNEXPECTED = 1, 2, 3, 4, 5, 6, 70
# The code that a shell gives a command ended by SIGPIPE: 128 + 13.
CUT_OFF = 141


# The log of an unforeseen error: everything that a maintainer needs, without secrets.
def write_crash_log(error: BaseException) -> Path | None:
    """Write the log to the user's folder of logs, or to the temporary folder, and return its path, or None if neither
    is writable.
    """
    now = datetime.now(UTC)
    text = without_secrets(
        f"stallmark {stallmark.__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"{now:%Y-%m-%d %H:%M:%S} UTC: {' '.join(sys.argv)}\n\n{''.join(traceback.format_exception(error))}"
    )
    name = f"error-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
    for folder in (Path(platformdirs.user_log_dir("stallmark")), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.touch(0o600, exist_ok=False)
            path.write_text(text)
            return path
        except OSError:
            continue
    return None


# The sentence and the exit code for an error that ended a command.


def show(sentence: str) -> None:
    if sentence:
        print_markup(err, sentence)


def sentence_and_code(error: BaseException, *, unread: bool) -> tuple[str, int]:
    """Return the sentence, "" if the reader of the output has gone (`unread`) and that was the error."""
    match error:
        case StopSignal():
            left = " ".join(getattr(error, "__notes__", ()))
            kept = f" is kept. {left}" if left else " is kept; servers and settings are as before."
            sentence = f"{error}. What was done{kept}"
            return escape(sentence[0].upper() + sentence[1:]), error.exit_code
        case click.Abort():
            return _error("There was no answer, so nothing was done."), FAILED
        case BrokenPipeError():  # one of our processes, unless the reader of the output has gone
            if unread:
                return "", CUT_OFF
        case MemoryError():
            return _error("This machine has not enough memory for the command."), FAILED
        case ServerLost():
            return _error(in_words(error)), INCOMPLETE
        case WrongOption():
            return _error(in_words(error)), WRONG
        case StallmarkError() | CallFailed() | OSError():  # OSError: a full disk, a folder without rights
            return _error(in_words(error)), FAILED
        case click.ClickException():
            return _error(error.format_message()), FAILED
    log = write_crash_log(error)
    summary = f"a bug in Stallmark ({type(error).__name__})."
    if log:
        return _error(f"{summary} Look through {log} and send it to us."), UNEXPECTED
    shown = without_secrets("".join(traceback.format_exception(error)))
    return f"{escape(shown)}{_error(f'{summary} Look through the lines above and send them to us.')}", UNEXPECTED


def _error(sentence: str) -> str:
    return f"[bold red]Error:[/] {escape(sentence)}"
