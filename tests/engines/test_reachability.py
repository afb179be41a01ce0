"""A plain TCP connect says why a server takes no connection."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import signals_as_before
from support.remote import free_port

from stallmark import stopping
from stallmark.engines import did_you_mean, open_engine, reachability
from stallmark.errors import NoConnection, StallmarkError


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_port_that_takes_connections():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert reachability.unreachable_reason("127.0.0.1", server.getsockname()[1]) is None


def test_a_port_that_refuses(closed_port: int):
    why = reachability.unreachable_reason("127.0.0.1", closed_port)
    assert why == f"port {closed_port} refuses connections"


def test_a_port_that_is_silent(monkeypatch):
    monkeypatch.setattr(reachability, "CONNECT_WITHIN_S", 0.3)
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):  # more than its queue has room for: further ones get no answer
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        why = reachability.unreachable_reason("127.0.0.1", server.getsockname()[1])
    assert why and "nothing answers" in why and "firewall" in why


def has_addresses(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every host have these addresses."""

    def answer(host, port, *_, type, **__):
        return [(socket.AF_INET, type, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@contextmanager
def silent_port() -> Iterator[int]:
    """A port of 127.0.0.2 that gives no answer to a connection."""
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.2", free_port()), backlog=0))
        for _ in range(8):  # more than its queue has room for: further ones get no answer
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def test_an_address_that_is_silent_keeps_nobody_from_the_next(monkeypatch):
    """Of a listener of an availability group one address takes connections."""
    monkeypatch.setattr(reachability, "CONNECT_WITHIN_S", 60)
    with silent_port() as port, socket.create_server(("127.0.0.1", port)):
        has_addresses(monkeypatch, "127.0.0.2", "127.0.0.1")
        began = threading.Thread(target=lambda: why.append(reachability.unreachable_reason("listener", port)))
        why: list[str | None] = []
        began.start()
        began.join(30)
    assert why == [None]


@pytest.mark.thorough
def test_of_two_addresses_that_fail_the_one_that_answers_is_told(monkeypatch):
    monkeypatch.setattr(reachability, "CONNECT_WITHIN_S", 0.3)
    with silent_port() as port:
        has_addresses(monkeypatch, "127.0.0.2", "127.0.0.1")
        assert reachability.unreachable_reason("listener", port) == f"port {port} refuses connections"
        has_addresses(monkeypatch, "127.0.0.2", "127.0.0.2")
        assert "nothing answers" in (reachability.unreachable_reason("listener", port) or "")


@pytest.mark.parametrize("ask", [lambda host: reachability.unreachable_reason(host, 1433),
                                 lambda host: reachability.instance_unreachable_reason(host, "PROD")])  # fmt: skip
def test_a_host_that_nobody_knows(monkeypatch, ask):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert ask("db.example") == "the host name db.example is unknown here (Name or service not known)"


def test_a_host_name_that_cannot_be_one():
    assert "is unknown here" in (reachability.unreachable_reason("a" * 64 + ".example", 1433) or "")


# Named instances


@contextmanager
def browser(answer: bytes | None) -> Iterator[tuple[int, list[bytes]]]:
    """A SQL Server Browser, which answers anything so; None: not at all. Its port, and what it was asked."""
    asked: list[bytes] = []
    with socket.socket(type=socket.SOCK_DGRAM) as its:
        its.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                question, sender = its.recvfrom(1 << 16)
                if question == b"end":
                    return
                asked.append(question)
                if answer is not None:
                    its.sendto(answer, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        yield its.getsockname()[1], asked
        with socket.socket(type=socket.SOCK_DGRAM) as end:
            end.sendto(b"end", its.getsockname())
        thread.join()


def svr_resp(port: int) -> bytes:
    """As MC-SQLR has it."""
    text = f"ServerName;DB;InstanceName;PROD;IsClustered;No;Version;16.0.1000.6;tcp;{port};np;\\\\DB\\pipe\\sql;;"
    return b"\x05" + len(text).to_bytes(2, "little") + text.encode()


def test_the_port_of_an_instance_is_the_one_that_the_browser_gives(monkeypatch, closed_port: int):
    with browser(svr_resp(closed_port)) as (port, asked):
        monkeypatch.setattr(reachability, "BROWSER_PORT", port)
        why = reachability.instance_unreachable_reason("127.0.0.1", "PROD")
    assert asked == [b"\x04PROD\0"]
    assert why == f"port {closed_port} refuses connections"


def test_an_instance_that_takes_connections(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server, browser(svr_resp(server.getsockname()[1])) as (port, _):
        monkeypatch.setattr(reachability, "BROWSER_PORT", port)
        assert reachability.instance_unreachable_reason("127.0.0.1", "PROD") is None


@pytest.mark.parametrize("answer", [None, b"\x05\0\0", svr_resp(0)], ids=["silent", "empty", "no TCP/IP"])
def test_an_instance_whose_port_nobody_tells(monkeypatch, answer: bytes | None):
    monkeypatch.setattr(reachability, "BROWSER_ANSWERS_WITHIN_S", 0.05)
    with browser(answer) as (port, asked):
        monkeypatch.setattr(reachability, "BROWSER_PORT", port)
        why = reachability.instance_unreachable_reason("127.0.0.1", "PROD")
    assert why and "does not tell the TCP port of PROD" in why
    assert len(asked) == (reachability.BROWSER_ASKED if answer is None else 1)


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "is silent"])
def test_a_browser_that_listens_at_one_address(monkeypatch, is_silent: bool):
    """As on IPv4 alone, when the host's IPv6 address comes first."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        browser(svr_resp(server.getsockname()[1])) as (port, asked),
        ExitStack() as sockets,
    ):
        if is_silent:
            sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM)).bind(("127.0.0.2", port))
        monkeypatch.setattr(reachability, "BROWSER_PORT", port)
        has_addresses(monkeypatch, "127.0.0.2", "127.0.0.1")
        assert reachability.instance_unreachable_reason("localhost", "PROD") is None
    assert asked == [b"\x04PROD\0"]


def test_an_instance_where_no_browser_listens(monkeypatch):
    with socket.socket(type=socket.SOCK_DGRAM) as its:
        its.bind(("127.0.0.1", 0))
        port = its.getsockname()[1]
    monkeypatch.setattr(reachability, "BROWSER_PORT", port)
    assert "does not tell the TCP port of PROD" in (reachability.instance_unreachable_reason("127.0.0.1", "PROD") or "")


@given(st.integers(1, 65535))
def test_a_port_in_an_answer(port: int):
    assert reachability._port_in(svr_resp(port)) == port


@given(st.binary() | st.binary().map(lambda rest: b"\x05\0\0tcp;" + rest))
def test_any_answer_has_a_port_or_none(answer: bytes):
    port = reachability._port_in(answer)
    assert port is None or 0 < port < 65536


# PostgreSQL, whose driver waits for a login in Python


def test_a_signal_is_heard_while_a_login_to_postgresql_waits():
    heard, ended_in_time = threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as silent, signals_as_before():

        def stop() -> None:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                ended_in_time.append(heard.wait(5))

        stopping.listen()
        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(stopping.StopSignal):
            open_engine(f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/bank").connect()
        heard.set()
        stopper.join()
    assert ended_in_time == [True]


# A URL of the wrong kind is answered with the right one


@pytest.mark.parametrize(
    ("scheme", "port", "meant"),
    [
        ("mssql", 5432, "postgresql://"), ("postgresql", 1433, "mssql://"),
        ("mssql", 1433, None), ("postgresql", 5432, None), ("mssql", None, None), ("postgresql", 6432, None),
    ],
)  # fmt: skip
def test_the_port_of_the_other_engine(scheme: str, port: int | None, meant: str | None):
    said = did_you_mean(scheme, port)
    assert (said is None) if meant is None else said.endswith(meant)


@pytest.mark.parametrize(("port", "meant"), [(1433, True), (5432, False)])
def test_it_is_said_where_there_is_no_connection(monkeypatch, port: int, meant: bool):
    def refuse(*_, **__):
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refuse)
    with pytest.raises(NoConnection) as error:
        open_engine(f"postgresql://me@db.example:{port}/bank").connect()
    assert ("write mssql://" in str(error.value)) is meant is ("Is the server running" not in str(error.value))


def test_it_is_said_of_sql_server_too():
    sql_server = open_engine("mssql://me@db.example:5432/bank")
    assert sql_server.no_connection_reason(Exception("HYT00", "Login timeout expired")).endswith("write postgresql://")


@pytest.mark.parametrize(
    ("url", "meant"), [("postgress://x", "postgresql://?"), ("sqlserver://x", "mssql://?"), ("msql://x", "mssql:")]
)
def test_a_misspelt_scheme(url: str, meant: str):
    with pytest.raises(StallmarkError, match="did you mean") as error:
        open_engine(url)
    assert meant in str(error.value)
