"""Stopping by Ctrl-C, and by the signals that ask for the same, at a moment when it does no harm."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = {
    number: name
    for number, name in (("SIGINT", "Ctrl-C"), ("SIGTERM", "a signal (SIGTERM)"), ("SIGHUP", "a signal (SIGHUP)"))
    if hasattr(signal, number)
}


_asked_from: list[str] = []


class StopSignal(KeyboardInterrupt):
    """A signal to stop, raised where it arrived. `exit_code` is the one that a shell expects of a command stopped
    by it."""

    def __init__(self, number: int):
        by = f"from {_asked_from[-1]}" if _asked_from else f"by {_SIGNALS[signal.Signals(number).name]}"
        super().__init__(f"stopped {by}")
        self.exit_code = 128 + number


def listen() -> None:
    """Make every such signal raise Stopped from now on, except one that our parent had us ignore (nohup)."""
    for name in _SIGNALS:
        if signal.getsignal(number := getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def ask(place: str) -> None:
    """Stop this process as Ctrl-C does, from a thread; `place` is where it was asked for."""
    _asked_from.append(place)
    heard = [name for name in _SIGNALS if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN]
    number = getattr(signal, (heard or ["SIGTERM"])[0])
    main = threading.main_thread().ident
    if main and hasattr(signal, "pthread_kill"):  # wakes it out of a call that waits
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


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
            raise StopSignal(arrived[0])


def _stop(number: int, _: object) -> None:
    raise StopSignal(number)
