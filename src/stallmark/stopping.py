"""Stopping by Ctrl-C, and by the signals that ask for the same, at a moment when it does no harm."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_SIGNALS = {
    number: name
    for number, name in (("SIGINT", "Ctrl-C"), ("SIGTERM", "a signal (SIGTERM)"), ("SIGHUP", "a signal (SIGHUP)"))
    if hasattr(signal, number)
}

SAME_WITHIN_S = 2.0
"""Signals that follow each other sooner are one wish to stop: Ctrl-C three times is meant once, and what ends a command
in order is not to be cut by the second."""

AGAIN_AFTER_S = 0.01
"""The delay after which a signal that arrived where Python ignores every exception is delivered again."""

LISTEN_EVERY_S = 0.2
"""Windows interrupts no wait for a thread: there a signal is heard between two of these."""

_asked_from: list[str] = []
_last_s = float("-inf")
_raised: "StopSignal | None" = None


class StopSignal(KeyboardInterrupt):
    """A signal to stop, raised where it arrived. `exit_code` is the one that a shell expects of a command stopped
    by it."""

    def __init__(self, number: int):
        by = f"from {_asked_from[-1]}" if _asked_from else f"by {_SIGNALS[signal.Signals(number).name]}"
        super().__init__(f"stopped {by}")
        self.number = number
        self.exit_code = 128 + number


def listen() -> None:
    """Make every such signal raise StopSignal from now on, except one that our parent had us ignore (nohup)."""
    global _last_s, _raised
    _last_s, _raised = float("-inf"), None
    sys.unraisablehook = _not_raised
    for number in _heard():
        signal.signal(number, _stop)


_LOST_IN = (StopSignal.__name__, "The driver did not supply an error")
"""Words of errors that a library makes in place of a signal: pydantic if one comes while it builds a validator, pyodbc
if one comes while it reads an error of the driver, which takes an interruption for the loss of its connection."""


def lost_in(error: BaseException) -> StopSignal | None:
    """Return the signal that a library made an error of its own of, once; None if it made none."""
    global _raised
    if threading.current_thread() is not threading.main_thread() or not any(words in str(error) for words in _LOST_IN):
        return None
    stop, _raised = _raised, None
    return stop


def deafen() -> None:
    """Ignore every such signal from now on: the process is at its end."""
    for number in _heard():
        signal.signal(number, signal.SIG_IGN)


def ask(place: str) -> None:
    """Stop this process as Ctrl-C does, from a thread; `place` is where it was asked for."""
    _asked_from.append(place)
    # Ctrl-C may be ignored here, as in a shell's background: the first signal that is not stands in for it.
    _deliver((_heard() or [signal.SIGTERM])[0])


@contextmanager
def later() -> Iterator[None]:
    """Hold back signals while inside; one that comes meanwhile is heard at the end, as it would have been before: it
    raises StopSignal, or is held back by the `later` around this one."""
    arrived: list[int] = []
    try:
        with defer_signals() as arrived:
            yield
    finally:
        if arrived:
            # One call for all that arrived, since they are one wish to stop. The handler may be that of a `later`
            # around this one.
            hears = signal.getsignal(arrived[0])
            (hears if callable(hears) else _stop)(arrived[0], None)


@contextmanager
def defer_signals() -> Iterator[list[int]]:
    """Defer signals while inside, and yield the list of signals that arrive. Do nothing in a thread, where none
    arrives.
    """
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in _heard()}
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back signals as `later` does, from calls in C as well: an ODBC driver takes an interruption for the loss of
    its connection. Start no process inside: it would not hear them either."""
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _heard()) if masks else set()
    try:
        with later():
            yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hearing(call: Callable[[], T]) -> T:
    """Return the result of a call that blocks in C, and hear signals meanwhile. It runs in a thread: what a stopped
    command no longer waits for ends with it, and its result is dropped."""
    # Signals arrive only in the main thread.
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        if hasattr(signal, "pthread_sigmask"):  # a signal would interrupt the call, and not the wait for it
            signal.pthread_sigmask(signal.SIG_BLOCK, _heard())
        try:
            results.append(call())
        except BaseException as error:
            # An error that leaves a thread is lost: it is kept, and raised by the caller's thread below.
            errors.append(error)

    worker = threading.Thread(target=work, name=f"hearing {call}", daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(LISTEN_EVERY_S)
    if errors:
        raise errors[0]
    return results[0]


def _heard() -> list[signal.Signals]:
    numbers = [getattr(signal, name) for name in _SIGNALS]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _stop(number: int, _: object) -> None:
    global _raised
    if _is_another():
        _raised = StopSignal(number)
        raise _raised


def _not_raised(ignored: "sys.UnraisableHookArgs") -> None:
    """Deliver again a signal that came in a callback of a weak reference or in `__del__`, where its StopSignal is
    lost. The hook runs there too, so that it can neither raise nor wait, nor take a lock that is held below it."""
    if isinstance(ignored.exc_value, StopSignal):
        _thread.start_new_thread(_again, (ignored.exc_value.number,))
    else:
        sys.__unraisablehook__(ignored)


def _again(number: int) -> None:
    global _last_s
    # The first delivery was lost, so this one must not pass for its repetition.
    time.sleep(AGAIN_AFTER_S)
    _last_s = float("-inf")
    _deliver(number)


def _deliver(number: int) -> None:
    main = threading.main_thread().ident
    if main and hasattr(signal, "pthread_kill"):  # wakes it out of a call that waits
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


def _is_another() -> bool:
    """Return True if a signal that arrives now is a new request to stop, not the first one again."""
    global _last_s
    now = time.monotonic()
    another = now - _last_s >= SAME_WITHIN_S
    if another:
        _last_s = now
    return another
