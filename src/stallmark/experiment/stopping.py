"""Stopping by Ctrl-C, and by the signals that ask for the same, at a moment when it does no harm."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = {
    number: name
    for number, name in (("SIGINT", "Ctrl-C"), ("SIGTERM", "a signal (SIGTERM)"), ("SIGHUP", "a signal (SIGHUP)"))
    if hasattr(signal, number)
}


class Stopped(KeyboardInterrupt):
    """A signal to stop, raised where it arrived. `exit_code` is the one that a shell expects of a command stopped by
    it."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {_SIGNALS[signal.Signals(number).name]}")
        self.exit_code = 128 + number


def listen() -> None:
    """Make every such signal raise Stopped from now on, except one that our parent had us ignore (nohup)."""
    for name in _SIGNALS:
        if signal.getsignal(number := getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(number, _stop)


@contextmanager
def later() -> Iterator[None]:
    """Hold back signals while inside; one that comes meanwhile raises Stopped at the end."""
    arrived: list[int] = []
    before = {}
    for name in _SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            raise Stopped(arrived[0])


def _stop(number: int, _: object) -> None:
    raise Stopped(number)
