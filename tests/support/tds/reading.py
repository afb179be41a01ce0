"""Reading fields from a body, one after the other."""

import struct

from support.tds.packets import Malformed

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Reader:
    def __init__(self, data: bytes, position: int = 0):
        self.data = data
        self.position = position

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise Malformed(f"{size} bytes wanted at {self.position} of {len(self.data)}")
        part = self.data[self.position : end]
        self.position = end
        return part

    def byte(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return _U16.unpack(self.take(2))[0]

    def u32(self) -> int:
        return _U32.unpack(self.take(4))[0]

    def u64(self) -> int:
        return _U64.unpack(self.take(8))[0]

    def characters(self, count: int) -> str:
        return self.take(2 * count).decode("utf-16-le")

    def short_text(self) -> str:
        """B_VARCHAR: the number of characters in one byte."""
        return self.characters(self.byte())

    def text(self) -> str:
        """US_VARCHAR: the number of characters in two bytes."""
        return self.characters(self.u16())


def short_text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return bytes([len(encoded) // 2]) + encoded


def long_text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return _U16.pack(len(encoded) // 2) + encoded
