"""The tools of the campaign: a network that can be cut, a clock that can be set, rounds that can be repeated."""

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice

import pytest
from benchmarks.faults.__main__ import kinds
from benchmarks.faults.clock import Clock
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.proxy import Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says what it hears."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:

        def serve(one: socket.socket) -> None:
            with one, suppress(ConnectionResetError):
                while data := one.recv(100):
                    one.sendall(data)

        def accept() -> None:
            while True:
                try:
                    threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield door.getsockname()[1]


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    proxy = Proxy(echo)
    yield proxy
    proxy.close()


def connection(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=60)


def hears(one: socket.socket, said: bytes) -> bytes:
    one.sendall(said)
    return one.recv(100)


def test_a_proxy_passes_on_what_it_hears(proxy):
    with connection(proxy) as one:
        assert hears(one, b"x") == b"x"


def test_what_it_holds_up_comes_later_and_whole(proxy):
    with connection(proxy) as one:
        assert hears(one, b"x") == b"x"
        proxy.mode = "stall"
        one.sendall(b"abc")
        one.settimeout(0.2)
        with pytest.raises(TimeoutError):
            one.recv(100)
        proxy.mode = "pass"
        one.settimeout(60)
        assert one.recv(100) == b"abc"


def test_what_it_loses_never_comes(proxy):
    with connection(proxy) as one:
        assert hears(one, b"x") == b"x"
        proxy.mode = "lose"
        one.sendall(b"abc")
        time.sleep(0.3)
        proxy.mode = "pass"
        assert hears(one, b"d") == b"d"


def test_it_cuts_refuses_and_leads_elsewhere(proxy, echo):
    with connection(proxy) as one:
        assert hears(one, b"x") == b"x"
        proxy.mode = "refuse"
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            hears(one, b"x")
    with pytest.raises(ConnectionResetError), connection(proxy) as refused:
        hears(refused, b"x")
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        proxy.mode, proxy.target = "pass", other.getsockname()[1]
        with connection(proxy), other.accept()[0]:
            pass


def test_a_delay_is_added_to_both_ways(proxy):
    with connection(proxy) as one:
        hears(one, b"x")
        proxy.delay_s = 0.1
        began = time.monotonic()
        assert hears(one, b"y") == b"y" and time.monotonic() - began >= 0.2


@pytest.mark.server
@pytest.mark.skipif(bool(Clock.missing()), reason="There is no C compiler.")
def test_clocks_are_set_and_go_faster_while_a_process_runs(tmp_path):
    clock = Clock(tmp_path)
    program = (
        "import sys, time, datetime\n"
        "for _ in sys.stdin: print(time.time(), datetime.datetime.now().timestamp(), time.monotonic(), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=dict(clock.environment), stdin=-1, stdout=-1, text=True, bufsize=1
    ) as process:

        def asked() -> list[float]:
            assert process.stdin and process.stdout
            process.stdin.write("now\n")
            process.stdin.flush()
            return [float(one) for one in process.stdout.readline().split()]

        before = asked()
        clock.set(-3600)
        after, began = asked(), time.monotonic()
        clock.hasten(100)
        time.sleep(0.1)
        faster = asked()
        took = time.monotonic() - began
        assert process.stdin
        process.stdin.close()
    assert before[0] - 3601 < after[0] < before[0] and before[1] - 3601 < after[1] < before[1]
    assert after[2] >= before[2]
    assert all(10 <= now - then <= 100 * took for now, then in zip(faster, after, strict=True))


@pytest.mark.server
@pytest.mark.skipif(bool(Clock.missing()), reason="There is no C compiler.")
def test_clocks_that_go_a_hundred_times_as_fast_wait_as_much_less(tmp_path):
    waits = (
        "import queue, select, threading, time\n"
        "for wait in (lambda: time.sleep(30), lambda: threading.Event().wait(30), lambda: select.poll().poll(30_000),\n"
        "             lambda: select.epoll().poll(30), lambda: select.select([], [], [], 30)):\n"
        "    began = time.time(), time.monotonic()\n"
        "    wait()\n"
        "    print(time.time() - began[0], time.monotonic() - began[1])"
    )
    clock = Clock(tmp_path)
    clock.hasten(100)
    environment = dict(clock.environment)
    began = time.monotonic()
    said = subprocess.run([sys.executable, "-c", waits], env=environment, stdout=-1, text=True, check=True).stdout
    took = time.monotonic() - began
    seen = [float(one) for one in said.split()]
    assert len(seen) == 10 and min(seen) >= 30 and sum(seen) / 2 <= took * 100


def test_rounds_follow_from_the_seed_and_every_kind_comes():
    cards = sum(often for often, _ in KINDS.values())
    first = list(islice(kinds(3), 2 * cards))
    assert first == list(islice(kinds(3), 2 * cards)) != list(islice(kinds(4), 2 * cards))
    assert Counter(first) == {kind: 2 * often for kind, (often, _) in KINDS.items()}
