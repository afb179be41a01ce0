"""Signals to stop: held back, heard once, and heard where Python or a library would lose them."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.command_line import signals_as_before
from support.waiting import eventually

from stallmark import stopping


@pytest.fixture(autouse=True)
def undone():
    with signals_as_before():
        yield


def test_a_signal_waits_for_what_must_be_done_whole():
    stopping.listen()
    done = []
    with pytest.raises(stopping.StopSignal, match="stopped by Ctrl-C"), stopping.later():
        signal.raise_signal(signal.SIGINT)
        done.append("whole")
    assert done == ["whole"]
    signal.raise_signal(signal.SIGTERM)  # so soon after the other: the same wish
    stopping.listen()
    with pytest.raises(stopping.StopSignal):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("held_back", [stopping.later, stopping.undisturbed])
def test_what_must_be_done_whole_may_hold_back_signals_inside_as_well(held_back):
    stopping.listen()
    done = []
    with pytest.raises(stopping.StopSignal), held_back():
        for part in range(3):
            with stopping.later():
                signal.raise_signal(signal.SIGINT)
            done.append(part)
    assert done == [0, 1, 2]


def test_a_call_that_blocks_is_not_waited_for_after_a_signal():
    stopping.listen()
    called, heard = threading.Event(), threading.Event()
    waited = []

    def block() -> None:
        called.set()
        waited.append(heard.wait(30))

    def stop() -> None:
        called.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=stop).start()
    with pytest.raises(stopping.StopSignal):
        stopping.hearing(block)
    heard.set()
    eventually(lambda: waited == [True])


def test_a_call_in_which_signals_are_heard_returns_and_raises_as_it_does():
    assert stopping.hearing(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        stopping.hearing(lambda: 1 / 0)
    with ThreadPoolExecutor(1) as pool:
        thread, caller = pool.submit(lambda: (stopping.hearing(threading.get_ident), threading.get_ident())).result()
    assert thread == caller  # where no signal arrives there is nothing to hear


def test_a_command_that_has_ended_hears_no_signal():
    stopping.listen()
    stopping.deafen()
    signal.raise_signal(signal.SIGINT)


def test_a_wish_to_stop_after_a_while_is_another(monkeypatch):
    monkeypatch.setattr(stopping, "SAME_WITHIN_S", 0.0)
    stopping.listen()
    for _ in range(2):
        with pytest.raises(stopping.StopSignal):
            signal.raise_signal(signal.SIGINT)


IGNORED = """
import signal, sys, time, weakref
from stallmark import stopping

class Object: pass

for _ in range(2):  # as in a process that begins to listen anew
    stopping.listen()
dropped = Object()
reference = weakref.ref(dropped, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del dropped
    time.sleep(30)
except stopping.StopSignal as stop:
    print(stop.exit_code)

class Broken:
    def __del__(self): raise ValueError("said as before")

broken = Broken()
del broken
"""


def test_a_signal_where_python_ignores_exceptions_is_heard_a_moment_later():
    ended = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, text=True)
    assert ended.stdout == "130\n" and ended.returncode == 0
    assert "StopSignal" not in ended.stderr and "ValueError: said as before" in ended.stderr


def test_signals_are_held_back_in_the_main_thread_alone():
    stopping.listen()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: stopping.later().__enter__()).result()


def test_a_signal_that_is_to_be_ignored_is_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    stopping.listen()
    with stopping.later():
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)
