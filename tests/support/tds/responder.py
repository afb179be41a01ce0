"""The responder: a loop in one thread that serves every connection.

    with Responder(script) as server:
        pyodbc.connect(connection_string(server.port))
        server.requests   # what clients sent since the last forget()

In a process of its own, for benchmarks: `python -m tds.responder --port 0` prints its port. Clients that keep Python's
lock while they wait need that as well, or they wait for ever: pyodbc's fast_executemany, mssql-python's bulkcopy of
tuples. (bulkcopy_arrow lets go of it.)
"""

import argparse
import contextlib
import runpy
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

from support.tds import benchmark
from support.tds.login import Login
from support.tds.requests import Request
from support.tds.script import Script
from support.tds.session import Session, Shared

BUFFER = 1 << 20
_LINGER_NOT = struct.pack("ii", 1, 0)


class Responder:
    """`encryption`: none unless the client demands it, required, or never. Without `record` nothing is kept and bulk
    loads are swallowed: for benchmarks."""

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        encryption: Literal["none", "required", "never"] = "none",
        record: bool = True,
    ):
        self._shared = Shared(script, encryption, record)
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._calls: deque[Callable[[], None]] = deque()
        self._buffer = bytearray(BUFFER)
        self._connections: set[_Connection] = set()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.faults: list[Exception] = []
        """Messages that are not TDS, and what went wrong here: empty after a good test."""

    @property
    def requests(self) -> list[Request]:
        return self._shared.requests

    @property
    def logins(self) -> list[Login]:
        """Those that were refused as well."""
        return self._shared.logins

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    @property
    def round_trips(self) -> int:
        """Of the requests since the last `forget`; attentions are no round trips."""
        return len({(it.connection, it.trip) for it in self.requests if it.kind != "attention"})

    def forget(self) -> None:
        """Starts the record of requests anew."""
        self._shared.requests.clear()

    def cut_all(self, reset: bool = True) -> None:
        """Ends every connection, as a dying server would. Returns when it is done."""
        done = threading.Event()

        def cut() -> None:
            for connection in list(self._connections):
                connection.close(reset)
            done.set()

        self.call(cut)
        done.wait()

    def call(self, action: Callable[[], None]) -> None:
        """Runs something in the loop's thread."""
        self._calls.append(action)
        with contextlib.suppress(OSError):  # it has stopped already
            self._wake.send(b"\0")

    def __enter__(self) -> "Responder":
        self._thread = threading.Thread(target=self.run, name="tds-responder", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._thread
        self.call(self._stop)
        self._thread.join()

    def _stop(self) -> None:
        self._stopping = True

    def run(self) -> None:
        """Serves until it is stopped."""
        select = self._selector.select
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_wake)
        try:
            while not self._stopping:
                for key, events in select():
                    key.data(events)
        finally:
            for connection in list(self._connections):
                connection.close(reset=False)
            for thing in (self._selector, self._listener, self._wake, self._woken):
                thing.close()

    def _on_wake(self, events: int) -> None:
        self._woken.recv(4096)
        while self._calls:
            self._calls.popleft()()

    def _accept(self, events: int) -> None:
        try:
            client, _ = self._listener.accept()
        except BlockingIOError:
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(_Connection(self, client, self._shared))


class _Connection:
    """A socket and its session."""

    def __init__(self, responder: Responder, client: socket.socket, shared: Shared):
        self._responder = responder
        self._socket = client
        self._view = memoryview(responder._buffer)
        self._unsent = bytearray()
        self._closing: bool | None = None  # once everything is sent; True: by a reset
        self._session = Session(shared, self)
        self._receive = self._session.receive
        responder._selector.register(client, selectors.EVENT_READ, self._on_event)

    def write(self, data: bytes) -> None:
        if not self._unsent:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._end()
                return
            if sent == len(data):
                return
            data = data[sent:]
            self._responder._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self._on_event)
        self._unsent += data

    def close(self, reset: bool) -> None:
        if self._unsent:
            self._closing = reset
            return
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._end()

    def from_elsewhere(self, go_on: Callable[[], None]) -> None:
        self._responder.call(go_on)

    def _on_event(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if not events & selectors.EVENT_READ:
            return
        try:
            size = self._socket.recv_into(self._view)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._end()
            return
        try:
            self._receive(bytes(self._view[:size]))
        except Exception as fault:  # not TDS, or a fault in the script: the client must not hang
            self._responder.faults.append(fault)
            self._end()

    def _flush(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._end()
            return
        del self._unsent[:sent]
        if not self._unsent:
            if self._closing is not None:
                self.close(self._closing)
            else:
                self._responder._selector.modify(self._socket, selectors.EVENT_READ, self._on_event)

    def _end(self) -> None:
        if self in self._responder._connections:
            self._responder._connections.discard(self)
            self._responder._selector.unregister(self._socket)
            self._socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tds.responder", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one; it is printed")
    parser.add_argument("--script", help="a Python file that defines `script`; without it: see tds/benchmark.py")
    arguments = parser.parse_args()
    script = runpy.run_path(arguments.script)["script"] if arguments.script else benchmark.script()
    responder = Responder(script, port=arguments.port, record=False)
    print(responder.port, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        responder.run()


if __name__ == "__main__":
    main()
