"""The processes of a server that was reached by URL, if it runs on this machine.

An address of this machine is not enough: a tunnel may begin there. So the process must have begun when the server says
that it started.
"""

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

START_APART_S = 5.0
"""Seconds by which the start of a process and of its server may differ: the machine's start, from which the kernel
counts, is known to a second, and a server notes its start a little later."""
SLOW_START_S = 60.0
"""The same of SQL Server, which notes its start after its platform was loaded."""


def is_here(hosts: Sequence[str]) -> bool:
    """Return whether all hosts are addresses of this machine. An empty one, or a path, is that of a Unix socket."""
    return all(map(_is_here, hosts))


def _is_here(host: str) -> bool:
    if not host or host.startswith(("/", "@")):
        return True
    with suppress(ValueError):
        return _is_own(host)
    with suppress(OSError, UnicodeError):
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
        return bool(addresses) and all(map(_is_own, addresses))
    return False


def _is_own(address: str) -> bool:
    """Return whether an IP address is of this machine. Raise ValueError if it is not an IP address."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    own = (one.address.partition("%")[0] for several in psutil.net_if_addrs().values() for one in several)
    return address.partition("%")[0] in own


def find_server(
    names: Sequence[str], started: float, session: int | None = None, apart_s: float = START_APART_S
) -> int | None:
    """Return the first process of a server that started at `started` (since 1970), or None if it is not seen here.

    `names`: those of its programs. `session`: the process of a session that is open, as the server numbers it. Without
    one, a server is not known if another of its kind started within `apart_s`.
    """
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() in names and session in (None, _own_number(process.pid)):
                root = _root(process, names)
                if abs(started - root.create_time()) <= apart_s:
                    found.add(root.pid)
    return found.pop() if len(found) == 1 else None


def _root(process: psutil.Process, names: Sequence[str]) -> psutil.Process:
    while (parent := process.parent()) is not None and parent.name() in names:
        process = parent
    return process


def shares_paths(pid: int) -> bool:
    """Return whether a process sees the files of this machine: one in a container sees its own."""
    return _own_number(pid) == pid


def _own_number(pid: int) -> int:
    """Return a process's number as it sees itself: in a container that is another one."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid
