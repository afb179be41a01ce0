"""Ways to wait for many answers at once, as bare loops around the bank's transfer: would one of them be cheaper?

    python -m benchmarks.loops 5           rounds; medians of the CPU per trip, against threads in the same round
    python -m benchmarks.loops 5 400       with so many turns of an empty loop in Python before each trip

Thirty users in two processes, each on a core, as executors are: `threads` wait in libpq, one for each user; `epoll` has
no users but one loop over all connections; `greenlets` are users that switch to such a loop to wait; `gevent` waits in
gevent's own loop. Server and pool are those of `benchmarks.driver cpu`.
"""

import os
import random
import select
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

from benchmarks.driver import BRANCHES, USERS, prepare
from psycopg import pq

from stallmark.driver.executor import SWITCH_INTERVAL_S, keep_to_one_core

SECONDS = 8
PROCESSES = 2


def connect(conninfo: str) -> pq.PGconn:
    connection = pq.PGconn.connect(conninfo.encode())
    connection.prepare(b"t", b"SELECT bank.transfer($1, $2, $3, $4)")
    return connection


def inputs(seed: int, turns: int) -> Iterator[list[bytes]]:
    draw = random.Random(seed).random
    while True:
        for _ in range(turns):
            pass
        teller, account = int(draw() * BRANCHES * 10) + 1, int(draw() * BRANCHES * 100_000) + 1
        yield [b"%d" % account, b"%d" % teller, b"%d" % ((teller - 1) // 10 + 1), b"%d" % int(draw() * 9999 - 5000)]


def threads(conninfo: str, drawn: list[Iterator[list[bytes]]], done: Iterator[int]) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    end = time.monotonic() + SECONDS

    def work(values: Iterator[list[bytes]]) -> None:
        connection = connect(conninfo)
        while time.monotonic() < end:
            connection.exec_prepared(b"t", next(values))
            next(done)

    users = [threading.Thread(target=work, args=[values]) for values in drawn]
    for user in users:
        user.start()
    for user in users:
        user.join()


def epoll(conninfo: str, drawn: list[Iterator[list[bytes]]], done: Iterator[int]) -> None:
    answers, connections = select.epoll(), {}
    for values in drawn:
        connection = connect(conninfo)
        connection.nonblocking = 1
        connections[connection.socket] = connection, values
        answers.register(connection.socket, select.EPOLLIN)
        connection.send_query_prepared(b"t", next(values))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for socket, _ in answers.poll():
            connection, values = connections[socket]
            connection.consume_input()
            if not connection.is_busy():
                connection.get_result(), connection.get_result()
                next(done)
                connection.send_query_prepared(b"t", next(values))


def greenlets(conninfo: str, drawn: list[Iterator[list[bytes]]], done: Iterator[int]) -> None:
    from greenlet import getcurrent, greenlet

    answers, waiting, hub = select.epoll(), {}, getcurrent()
    end = time.monotonic() + SECONDS

    def work(values: Iterator[list[bytes]]) -> None:
        connection = connect(conninfo)
        connection.nonblocking = 1
        waiting[connection.socket] = getcurrent()
        answers.register(connection.socket, select.EPOLLIN)
        trips(connection, values, done, end, hub.switch)

    for values in drawn:
        greenlet(work).switch(values)
    while time.monotonic() < end:
        for socket, _ in answers.poll(0.5):
            waiting[socket].switch()


def gevent(conninfo: str, drawn: list[Iterator[list[bytes]]], done: Iterator[int]) -> None:
    import gevent

    hub, end = gevent.get_hub(), time.monotonic() + SECONDS

    def work(values: Iterator[list[bytes]]) -> None:
        connection = connect(conninfo)
        connection.nonblocking = 1
        answer = hub.loop.io(connection.socket, 1)
        trips(connection, values, done, end, lambda: hub.wait(answer))

    gevent.joinall([gevent.spawn(work, values) for values in drawn])


def trips(
    connection: pq.PGconn, values: Iterator[list[bytes]], done: Iterator[int], end: float, wait: Callable[[], object]
) -> None:
    while time.monotonic() < end:
        connection.send_query_prepared(b"t", next(values))
        wait()
        connection.consume_input()
        while connection.is_busy():
            wait()
            connection.consume_input()
        connection.get_result(), connection.get_result()
        next(done)


LOOPS = {each.__name__: each for each in (threads, epoll, greenlets, gevent)}


def one(kind: str, conninfo: str, core: int, turns: int) -> None:
    """Make the trips of one process; print their number, and its CPU seconds."""
    keep_to_one_core(core)
    done = count()
    LOOPS[kind](conninfo, [inputs(seed, turns) for seed in range(USERS // PROCESSES)], done)
    print(next(done), time.process_time())


def main(rounds: int, turns: int = 0) -> None:
    engine, _ = prepare("cpu")
    cpu: dict[str, list[float]] = {kind: [] for kind in LOOPS}
    try:
        for number in range(rounds):
            for kind in LOOPS:
                argv = [sys.executable, "-m", "benchmarks.loops", kind, engine.conninfo("loops")]
                made = [
                    subprocess.Popen([*argv, str(core), str(turns)], stdout=subprocess.PIPE, text=True)
                    for core in range(PROCESSES)
                ]
                found = [process.communicate()[0].split() for process in made]
                trips = sum(int(each[0]) for each in found)
                cpu[kind].append(sum(float(each[1]) for each in found) / trips * 1e6)
                print(f"round {number + 1}: {kind} {trips / SECONDS:,.0f} trips/s, {cpu[kind][-1]:.1f} µs", flush=True)
    finally:
        engine.close()
    for kind, found in cpu.items():
        ratio = statistics.median(each / threads for each, threads in zip(found, cpu["threads"], strict=True))
        print(f"{kind}: median {statistics.median(found):.1f} µs a trip, {ratio:.2f} of threads")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        if sys.argv[1] in LOOPS:
            one(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        else:
            main(*map(int, sys.argv[1:]))
    sys.stdout.flush()
    os._exit(0)  # greenlets that still wait are not let go one by one
