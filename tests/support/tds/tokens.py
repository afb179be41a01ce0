"""The tokens an answer is made of (MS-TDS 2.2.7)."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from support.tds.datatypes import LATIN1, DataType
from support.tds.reading import long_text, short_text

SERVER_NAME = "responder"
VERSION = bytes([16, 0, 0x10, 0x09])  # SQL Server 2022
TDS_7_4 = bytes.fromhex("74000004")
TRANSACTION = bytes.fromhex("0100000035000000")  # one descriptor for all: nobody compares them

DONE, DONE_PROCEDURE, DONE_IN_PROCEDURE = 0xFD, 0xFE, 0xFF
MORE, ERROR_BIT, COUNT, ATTENTION_BIT = 0x01, 0x02, 0x10, 0x20

SELECT, UPDATE = 0xC1, 0xC5  # the command that is done

DATABASE, PACKET_SIZE, COLLATION, BEGAN, COMMITTED, ROLLED_BACK, WAS_RESET = 1, 4, 7, 8, 9, 10, 18


class Column(NamedTuple):
    name: str
    type: DataType
    nullable: bool = True
    identity: bool = False


def done(token: int, status: int, count: int = 0, command: int = 0) -> bytes:
    """`command`: the driver ignores the count of anything it does not know to change rows."""
    return struct.pack("<BHHQ", token, status, command, count)


def columns(described: Sequence[Column]) -> bytes:
    parts = [struct.pack("<BH", 0x81, len(described))]
    for name, kind, nullable, identity in described:
        flags = nullable | 0x08 | identity << 4  # 0x08: may be written to
        parts.append(struct.pack("<IH", 0, flags) + kind.info())
        if kind.name in ("text", "ntext", "image"):
            parts.append(b"\x01" + long_text("t"))
        parts.append(short_text(name))
    return b"".join(parts)


def row(types: Sequence[DataType], values: Iterable[Any]) -> bytes:
    return b"\xd1" + b"".join(kind.encode(value) for kind, value in zip(types, values, strict=True))


def message(token: int, number: int, severity: int, state: int, text: str, procedure: str = "", line: int = 1) -> bytes:
    """ERROR (0xAA) and INFO (0xAB) have the same fields."""
    body = struct.pack("<iBB", number, state, severity) + long_text(text)
    body += short_text(SERVER_NAME) + short_text(procedure) + struct.pack("<i", line)
    return struct.pack("<BH", token, len(body)) + body


def error(number: int, severity: int, state: int, text: str, procedure: str = "", line: int = 1) -> bytes:
    return message(0xAA, number, severity, state, text, procedure, line)


def info(number: int, severity: int, state: int, text: str, procedure: str = "", line: int = 1) -> bytes:
    return message(0xAB, number, severity, state, text, procedure, line)


def return_status(value: int) -> bytes:
    return struct.pack("<Bi", 0x79, value)


def return_value(ordinal: int, name: str, kind: DataType, value: Any) -> bytes:
    """An output parameter."""
    head = struct.pack("<BH", 0xAC, ordinal) + short_text(name) + b"\x01"
    return head + struct.pack("<IH", 0, 1) + kind.info() + kind.encode(value)


def changed(what: int, new: bytes, old: bytes = b"\0") -> bytes:
    """ENVCHANGE; `new` and `old` with their lengths."""
    return struct.pack("<BHB", 0xE3, 1 + len(new) + len(old), what) + new + old


def changed_text(what: int, new: str, old: str) -> bytes:
    return changed(what, short_text(new), short_text(old))


def transaction_began() -> bytes:
    return changed(BEGAN, b"\x08" + TRANSACTION)


def transaction_ended(how: int) -> bytes:
    return changed(how, b"\0", b"\x08" + TRANSACTION)


def logged_in(database: str, packet_size: int, features: dict[int, bytes]) -> bytes:
    """Everything the server says to a login it accepts. `features`: what it acknowledges of the client's wishes."""
    program = short_text("Microsoft SQL Server\0\0")
    acknowledgement = b"\x01" + TDS_7_4 + program + VERSION
    parts = [
        changed_text(DATABASE, database, "master"),
        info(5701, 10, 2, f"Changed database context to '{database}'."),
        changed(COLLATION, bytes([len(LATIN1)]) + LATIN1),
        changed_text(2, "us_english", ""),
        info(5703, 10, 1, "Changed language setting to us_english."),
        struct.pack("<BH", 0xAD, len(acknowledgement)) + acknowledgement,
        changed_text(PACKET_SIZE, str(packet_size), "4096"),
    ]
    if features:
        acknowledged = b"".join(struct.pack("<BI", key, len(data)) + data for key, data in features.items())
        parts.append(b"\xae" + acknowledged + b"\xff")
    parts.append(done(DONE, 0))
    return b"".join(parts)
