"""Packets and messages: a message is cut into packets, each with a header of eight bytes (MS-TDS 2.2.3)."""

import struct
from typing import NamedTuple

SQL_BATCH = 0x01
RPC = 0x03
REPLY = 0x04
ATTENTION = 0x06
BULK_LOAD = 0x07
TRANSACTION_MANAGER = 0x0E
LOGIN7 = 0x10
PRELOGIN = 0x12
_KNOWN = frozenset([SQL_BATCH, RPC, REPLY, ATTENTION, BULK_LOAD, TRANSACTION_MANAGER, LOGIN7, PRELOGIN])

END_OF_MESSAGE = 0x01
IGNORE = 0x02  # with END_OF_MESSAGE: the client gives up a message it had begun
RESET_CONNECTION = 0x08

HEADER = struct.Struct(">BBHHBx")  # type, status, length with header, server process id, packet number
SMALLEST_PACKET, LARGEST_PACKET = 512, 32767


class Malformed(Exception):
    """Bytes that are not TDS."""


class Message(NamedTuple):
    kind: int
    status: int
    """Of all its packets, or-ed."""
    body: bytes
    size: int
    """Bytes of the body; more than `len(body)` where the bodies of this kind are swallowed."""


def frame(kind: int, body: bytes, packet_size: int, *, finished: bool = True) -> bytes:
    """One message as packets. Without `finished` the reader waits for more."""
    room = packet_size - HEADER.size
    if len(body) <= room:
        return HEADER.pack(kind, finished, HEADER.size + len(body), 0, 1) + body
    packets = bytearray()
    for number, start in enumerate(range(0, len(body), room), 1):
        part = body[start : start + room]
        last = finished and start + room >= len(body)
        packets += HEADER.pack(kind, last, HEADER.size + len(part), 0, number & 0xFF)
        packets += part
    return bytes(packets)


class Assembler:
    """Puts messages together again, from bytes that arrive cut at any place."""

    def __init__(self, swallowed_kind: int | None = None):
        """Bodies of `swallowed_kind` are counted and dropped."""
        self._swallowed_kind = swallowed_kind
        self._pending = bytearray()
        self._start_message()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are now complete."""
        size = len(data)
        if not self._pending and not self._status and size >= HEADER.size:
            # The usual case, and the hot one: one packet is one message.
            kind, status, length, _, _ = HEADER.unpack_from(data)
            if length == size and status & END_OF_MESSAGE and not status & IGNORE:
                return [Message(kind, status, data[HEADER.size :], size - HEADER.size)]
        self._pending += data
        messages = []
        position = 0
        while (message := self._next(position)) is not None:
            position, complete = message
            if complete:
                messages.append(complete)
        del self._pending[:position]
        return messages

    def feed_one(self, data: bytes) -> Message | None:
        """As `feed`, but what follows the first complete message stays behind, for `rest`."""
        self._pending += data
        while (message := self._next(0)) is not None:
            position, complete = message
            del self._pending[:position]
            if complete:
                return complete
        return None

    def rest(self) -> bytes:
        """Takes out the bytes that belong to no message yet."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest

    @property
    def in_a_message(self) -> bool:
        return bool(self._pending) or bool(self._status)

    @property
    def size(self) -> int:
        """Bytes so far of the message that is arriving."""
        return self._size

    def _start_message(self) -> None:
        self._body = bytearray()
        self._size = 0
        self._status = 0

    def _next(self, position: int) -> tuple[int, Message | None] | None:
        """Takes the packet at `position`: the place after it, and the message when it was the last of one."""
        if len(self._pending) - position < HEADER.size:
            return None
        kind, status, length, _, _ = HEADER.unpack_from(self._pending, position)
        if kind not in _KNOWN or length < HEADER.size:
            raise Malformed(f"a packet of kind {kind} with {length} bytes")
        end = position + length
        if end > len(self._pending):
            return None
        self._size += length - HEADER.size
        if kind != self._swallowed_kind:
            self._body += self._pending[position + HEADER.size : end]
        self._status |= status | 0x100  # beyond the byte: a message has begun, even with status 0
        if not status & END_OF_MESSAGE:
            return end, None
        message = Message(kind, self._status & 0xFF, bytes(self._body), self._size)
        self._start_message()
        return end, None if status & IGNORE else message
