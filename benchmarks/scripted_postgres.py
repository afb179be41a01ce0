"""A server that speaks PostgreSQL's protocol and answers at once: it costs little, so that the client is the limit.

    python -m benchmarks.scripted_postgres     # prints its port, and serves until its standard input ends

Everybody is let in. Every call is answered with one row that holds one number. It calls itself 17, which tells no
session's own I/O.
"""

import asyncio
import struct
import sys

BACKLOG = 4096


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


_READY = _message(b"Z", b"I")
_COLUMN = b"number\0" + struct.pack("!IhIhih", 0, 0, 20, 8, -1, 0)  # a bigint, as text
_ROW = _message(b"D", struct.pack("!hi", 1, 1) + b"1")
_DONE = _message(b"C", b"SELECT 1\0")
_COLUMNS = _message(b"T", struct.pack("!h", 1) + _COLUMN)
_PARAMETERS = {"server_version": "17.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}
_WELCOME = b"".join(
    [
        _message(b"R", struct.pack("!I", 0)),
        *(_message(b"S", f"{name}\0{value}\0".encode()) for name, value in _PARAMETERS.items()),
        _message(b"K", struct.pack("!II", 1, 1)),
        _READY,
    ]
)
_NO_ENCRYPTION = {80877103, 80877104}  # SSLRequest, GSSENCRequest
_ANSWERS = {
    b"P": _message(b"1"),
    b"B": _message(b"2"),
    b"D": _COLUMNS,
    b"E": _ROW + _DONE,
    b"S": _READY,
    b"Q": _COLUMNS + _ROW + _DONE + _READY,
}


class Session(asyncio.Protocol):
    """A client's session."""

    def __init__(self) -> None:
        self._left = b""
        self._let_in = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data, at, answers = self._left + data, 0, []
        while True:
            start = at if not self._let_in else at + 1
            if len(data) < start + 4 or len(data) < start + (length := int.from_bytes(data[start : start + 4])):
                break
            if self._let_in:
                if (kind := data[at:start]) == b"X":
                    self._transport.close()
                answers.append(_ANSWERS.get(kind, b""))
            else:
                asked = int.from_bytes(data[start + 4 : start + 8])
                self._let_in = asked not in _NO_ENCRYPTION
                answers.append(_WELCOME if self._let_in else b"N")
            at = start + length
        self._left = data[at:]
        if answers:
            self._transport.write(b"".join(answers))


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Session, "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
