"""The command line in this process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from click.testing import CliRunner, Result

from stallmark.cli.main import main


def stallmark(*arguments: object) -> Result:
    with signals_as_before():
        return CliRunner().invoke(main, [str(argument) for argument in arguments])


@contextmanager
def signals_as_before() -> Iterator[None]:
    """Give a test back the signals that a command listens to."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
