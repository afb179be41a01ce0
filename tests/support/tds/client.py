"""A client's messages, as bytes: for tests of the responder itself, where no driver is."""

import struct
from typing import Any

from support.tds.datatypes import DataType
from support.tds.login import write_prelogin
from support.tds.packets import LOGIN7, PRELOGIN, RPC, SQL_BATCH, Message, frame
from support.tds.reading import short_text

HEADERS = bytes.fromhex("16000000120000000200000000000000000001000000")  # ALL_HEADERS: no transaction


def login_bytes(**fields: str) -> bytes:
    names = ["host", "user", "password", "application", "server", "extension", "library", "language", "database"]
    data = bytearray(94)
    places = bytearray()
    for name in names:
        text = fields.get(name, "").encode("utf-16-le")
        if name == "password":
            text = bytes(((byte << 4 | byte >> 4) & 0xFF) ^ 0xA5 for byte in text)
        places += struct.pack("<HH", len(data), len(text) // 2)
        data += text
    data[36 : 36 + len(places)] = places
    struct.pack_into("<III", data, 0, len(data), 0x74000004, 8000)
    return bytes(data)


def parameter(kind: DataType, value: Any, name: str = "", status: int = 0) -> bytes:
    return short_text(name) + bytes([status]) + kind.info() + kind.encode(value)


def call(name: str | int, *parameters: bytes) -> bytes:
    if isinstance(name, int):
        return struct.pack("<HHH", 0xFFFF, name, 0) + b"".join(parameters)
    return struct.pack("<H", len(name)) + name.encode("utf-16-le") + b"\0\0" + b"".join(parameters)


def rpc(*calls: bytes, status: int = 1) -> Message:
    body = HEADERS + b"\xff".join(calls)
    return Message(RPC, status, body, len(body))


def batch(text: str) -> bytes:
    return frame(SQL_BATCH, HEADERS + text.encode("utf-16-le"), 512)


OPENING = frame(PRELOGIN, write_prelogin({0: b"\0" * 6, 1: b"\2"}), 4096) + frame(LOGIN7, login_bytes(user="u"), 4096)
