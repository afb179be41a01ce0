"""The channel between two processes of one machine: whole messages, length-prefixed over a socket pair."""

import os
import socket
import struct
import subprocess
import sys
import threading
from typing import Any, TypeVar

from stallmark.driver.messages import Malformed, Message, NotUnderstood, decode, encode
from stallmark.processes import start_module

Expected = TypeVar("Expected", bound=Message)


class Closed(Exception):
    """An error: the other side has gone."""


_LENGTH = struct.Struct("!I")
LONGEST = 1 << 28
"""The most bytes of a message. A longer length is not one of ours: the start of the next message is then unknown."""


class Channel:
    """A channel for whole messages. Sending is safe from several threads; receiving is for one."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send a message. Raise Closed."""
        body = encode(message)
        with self._sending:
            try:
                self._socket.sendall(_LENGTH.pack(len(body)) + body)
            except OSError as error:
                raise Closed from error

    def receive(self) -> Message:
        """Return the next message, or NotUnderstood if the bytes are not a message. Raise Closed, also if the channel
        is out of step.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > LONGEST:
            self._socket.close()
            raise Closed
        try:
            return decode(self._exactly(length))
        except Malformed:
            return NotUnderstood()

    def expect(self, *kinds: type[Expected]) -> Expected:
        """Return the next message that makes sense, which is of one of these kinds. Raise Closed or Malformed."""
        while isinstance(message := self.receive(), NotUnderstood):
            pass
        if not isinstance(message, kinds):
            known = " or ".join(kind.__name__ for kind in kinds)
            raise Malformed(f"{type(message).__name__} came where only {known} makes sense")
        return message

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(size - len(parts))
            except OSError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)


_SHARED = "shared"
_OWN_GROUP = 0x200  # subprocess.CREATE_NEW_PROCESS_GROUP, which other systems' modules do not have


def _start_on_windows(module: str, theirs: Any) -> subprocess.Popen:
    with theirs:
        process = start_module(module, _SHARED, stdin=subprocess.PIPE, creationflags=_OWN_GROUP, env=dict(os.environ))
        assert process.stdin
        with process.stdin as described:
            described.write(theirs.share(process.pid))
    return process


def inherited_channel(argument: str) -> Channel:
    """Return the channel whose file descriptor a parent passed on the command line. Windows inherits no descriptor:
    there the standard input holds a description of the socket.
    """
    if argument == _SHARED:
        connection = socket.fromshare(sys.stdin.buffer.read())  # type: ignore[attr-defined]
    else:
        connection = socket.socket(fileno=int(argument))
    # A parent that gevent has patched hands over a non-blocking socket.
    connection.setblocking(True)
    return Channel(connection)


# For glibc; other systems' allocators read neither. By default it gives threads arenas of their own, which users fill
# ever more, and keeps large blocks in them once there was one: 2 % more memory after half an hour, with no more in it.
_STEADY_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


def start_child(module: str) -> tuple[subprocess.Popen, Channel]:
    """Run `module` with `python -m`; its only argument is the file descriptor of its end of the channel.

    The child has a session of its own: Ctrl-C reaches the parent alone, which then stops its children in order.
    """
    ours, theirs = socket.socketpair()
    if sys.platform == "win32":
        return _start_on_windows(module, theirs), Channel(ours)
    with theirs:
        process = start_module(
            module,
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=_STEADY_MEMORY | os.environ,
        )
    return process, Channel(ours)
