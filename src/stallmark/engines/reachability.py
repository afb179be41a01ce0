"""The way to a server: a plain TCP connect, and its processes if it runs on this machine."""

import errno
import ipaddress
import os
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

# A plain TCP connect to a server: it fails at once, with the reason, where a login would only time out.
#
# All addresses of a host are tried together: of a listener of an availability group only one takes connections, and a
# host may have an IPv6 address that leads nowhere.


CONNECT_WITHIN_S = 5  # the SYN is sent three times in it
BROWSER_PORT = 1434
BROWSER_ANSWERS_WITHIN_S = 1
BROWSER_ASKED = 3  # UDP may be lost

_ASK_FOR_INSTANCE, _ANSWER = 4, 5  # MC-SQLR, CLNT_UCAST_INST and SVR_RESP


def unreachable_reason(host: str, port: int) -> str | None:
    """Return the reason why a port takes no connection, as a clause without a full stop; None if it does."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return _unknown(host, error)
    errors = _connect(addresses)
    if errors is None:
        return None
    if errno.ECONNREFUSED in errors:
        return f"port {port} refuses connections"
    if errno.ETIMEDOUT in errors:
        return f"nothing answers on port {port} within {CONNECT_WITHIN_S} s (is a firewall between, or the host off?)"
    return f"port {port} cannot be reached ({os.strerror(errors[0])})"


def instance_unreachable_reason(host: str, instance: str) -> str | None:
    """Return the reason why a named instance of SQL Server takes no connection, as `unreachable_reason` does.

    SQL Server Browser is asked for its port.
    """
    try:
        port = _instance_port(host, instance)
    except (socket.gaierror, UnicodeError) as error:
        return _unknown(host, error)
    if port is None:
        return (
            f"SQL Server Browser (UDP port {BROWSER_PORT}) does not tell the TCP port of {instance}: start it there, "
            f"or write {host}:1433 with the instance's port"
        )
    return unreachable_reason(host, port)


def _connect(addresses: Iterable[tuple[Any, ...]]) -> list[int] | None:
    """Connect to all addresses together, for CONNECT_WITHIN_S at most. Return None as soon as one takes it, else the
    number of the error of each."""
    errors: list[int] = []
    until = time.monotonic() + CONNECT_WITHIN_S
    with ExitStack() as sockets:
        waiting = sockets.enter_context(selectors.DefaultSelector())
        for family, kind, protocol, _, address in addresses:
            try:
                trial = sockets.enter_context(socket.socket(family, kind, protocol))
            except OSError as error:  # such as an IPv6 address on a machine without IPv6
                errors.append(error.errno or 0)
                continue
            trial.setblocking(False)
            number = trial.connect_ex(address)
            if number in (0, errno.EINPROGRESS):
                waiting.register(trial, selectors.EVENT_WRITE, trial)
            else:
                errors.append(number)
        while waiting.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                number = key.data.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if number == 0:
                    return None
                waiting.unregister(key.data)
                errors.append(number)
        return errors + [errno.ETIMEDOUT] * len(waiting.get_map())


def _unknown(host: str, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else error
    return f"the host name {host} is unknown here ({reason})"


def _instance_port(host: str, instance: str) -> int | None:
    """Return the TCP port that SQL Server Browser gives for an instance; None without an answer that has one. It is
    asked at every address of the host: it may listen at one."""
    question = bytes([_ASK_FOR_INSTANCE]) + instance.encode(errors="replace") + b"\0"
    with ExitStack() as sockets:
        asked = sockets.enter_context(selectors.DefaultSelector())
        for family, kind, protocol, _, address in socket.getaddrinfo(host, BROWSER_PORT, type=socket.SOCK_DGRAM):
            with suppress(OSError):  # such as an IPv6 address on a machine without IPv6
                browser = sockets.enter_context(socket.socket(family, kind, protocol))
                browser.connect(address)  # so that a refusal is heard
                browser.setblocking(False)
                asked.register(browser, selectors.EVENT_READ, browser)
        for _ in range(BROWSER_ASKED):
            for key in asked.get_map().values():
                with suppress(OSError):  # a refusal, which is heard below
                    key.data.send(question)
            until = time.monotonic() + BROWSER_ANSWERS_WITHIN_S
            while asked.get_map() and (left := until - time.monotonic()) > 0:
                for key, _ in asked.select(left):
                    asked.unregister(key.data)
                    with suppress(OSError):
                        if port := _port_in(key.data.recv(1 << 16)):
                            return port
    return None


def _port_in(answer: bytes) -> int | None:
    """Return the TCP port in an answer of SQL Server Browser: names and values, each ended by a semicolon."""
    if answer[:1] != bytes([_ANSWER]):
        return None
    words = answer[3:].decode(errors="replace").split(";")
    values = dict(zip(words[::2], words[1::2], strict=False))
    port = values.get("tcp", "")
    return int(port) if port.isdecimal() and 0 < int(port) < 1 << 16 else None


# The processes of a server that was reached by URL, if it runs on this machine.
#
# An address of this machine is not enough: a tunnel may begin there. So the process must have begun when the server
# says that it started.

START_APART_S = 5.0
"""Seconds by which the start of a process and of its server may differ: the machine's start, from which the kernel
counts, is known to a second, and a server notes its start a little later."""
SLOW_START_S = 60.0
"""The same of SQL Server, which notes its start after its platform was loaded."""


def is_here(hosts: Sequence[str]) -> bool:
    """Return True if all hosts are addresses of this machine. An empty host, or a path, is a Unix socket."""
    return all(map(_is_here, hosts))


def _is_here(host: str) -> bool:
    if not host or host.startswith(("/", "@")):
        return True
    with suppress(ValueError):
        return _is_own(host)
    with suppress(OSError, UnicodeError):
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        return bool(addresses) and all(map(_is_own, addresses))
    return False


def _is_own(address: str) -> bool:
    """Return True if an IP address is of this machine. Raise ValueError for other text."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    own = (interface.address.partition("%")[0] for several in psutil.net_if_addrs().values() for interface in several)
    return address.partition("%")[0] in own


def find_server(
    names: Sequence[str], started: float, session: int | None = None, apart_s: float = START_APART_S
) -> int | None:
    """Return the first process of a server that started at `started` (since 1970), or None if it is not seen here.

    `names`: those of its programs. `session`: the process of a session that is open, as the server numbers it. Without
    one, a server is not known if another of its kind started within `apart_s`.
    """
    servers = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() in names and session in (None, _pid_in_namespace(process.pid)):
                root = _root(process, names)
                if abs(started - root.create_time()) <= apart_s:
                    servers.add(root.pid)
    return servers.pop() if len(servers) == 1 else None


def _root(process: psutil.Process, names: Sequence[str]) -> psutil.Process:
    while (parent := process.parent()) is not None and parent.name() in names:
        process = parent
    return process


def shares_paths(pid: int) -> bool:
    """Return True if a process sees the files of this machine: one in a container sees its own."""
    return _pid_in_namespace(pid) == pid


def _pid_in_namespace(pid: int) -> int:
    """Return a process's number as it sees itself: in a container that is another one."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid
