"""Messages between our processes: length-prefixed msgpack over a socket pair."""

import socket
import struct
import threading
from typing import Any

import msgpack

_LENGTH = struct.Struct("!I")


class Closed(Exception):
    """The other side has gone."""


class Channel:
    """Sends and receives whole messages. Sending is safe from several threads; receiving is for one."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, kind: str, **fields: Any) -> None:
        body = msgpack.packb((kind, fields))
        with self._sending:
            try:
                self._socket.sendall(_LENGTH.pack(len(body)) + body)
            except OSError as error:
                raise Closed from error

    def receive(self) -> tuple[str, dict[str, Any]]:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        kind, fields = msgpack.unpackb(self._exactly(length), strict_map_key=False)
        return kind, fields

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


def inherited_channel(argument: str) -> Channel:
    """The channel whose file descriptor a parent passed on the command line."""
    connection = socket.socket(fileno=int(argument))
    connection.setblocking(True)  # a parent patched by gevent hands over a non-blocking one
    return Channel(connection)
