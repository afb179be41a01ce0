"""SQL Server's data types on the wire: TYPE_INFO, and values there and back (MS-TDS 2.2.5.4 to 2.2.5.6).

Answers use the nullable form of each type, as SQL Server does for columns that may be NULL.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from typing import Any, Literal

from support.tds.packets import Malformed
from support.tds.reading import Reader

LATIN1 = bytes.fromhex("0904d00034")  # SQL_Latin1_General_CP1_CI_AS
_UTF8_COLLATION = 0x04  # bit 26 of the collation's first four bytes
MAX = 0xFFFF  # the size of varchar(max), nvarchar(max), varbinary(max)
_NULL16, _NULL64, _UNKNOWN64 = 0xFFFF, 2**64 - 1, 2**64 - 2

# How long a value is: by its type; said in 1 or 2 bytes before it; in pieces.
Length = Literal["fixed", "byte", "short"]


@dataclass(frozen=True)
class DataType:
    """`size` is in bytes. The collation belongs to text that is not Unicode."""

    token: int
    size: int = 0
    precision: int = 0
    scale: int = 0
    collation: bytes = LATIN1

    @property
    def name(self) -> str:
        return _KINDS[self.token].name

    def info(self) -> bytes:
        """TYPE_INFO."""
        kind = _KINDS[self.token]
        token = bytes([self.token])
        if kind.length == "fixed" or self.token == 0x28:
            return token
        if self.token in _SCALED:
            return token + bytes([self.scale])
        if self.token in _DECIMALS:
            return token + bytes([self.size, self.precision, self.scale])
        if kind.length == "byte":
            return token + bytes([self.size])
        return token + struct.pack("<H", self.size) + (self.collation if self.token in _COLLATED else b"")

    def encode(self, value: Any) -> bytes:
        """The value with its length in front. None is NULL."""
        kind = _KINDS[self.token]
        if self.size == MAX:
            return _in_pieces(None if value is None else kind.encode(self, value))
        if value is None:
            if kind.length == "fixed":
                raise ValueError(f"{kind.name} without a nullable form")
            return b"\0" if kind.length == "byte" else b"\xff\xff"
        encoded = kind.encode(self, value)
        if kind.length == "fixed":
            return encoded
        if kind.length == "byte":
            return bytes([len(encoded)]) + encoded
        if len(encoded) > self.size:
            raise ValueError(f"{len(encoded)} bytes do not fit {kind.name}({self.size})")
        return struct.pack("<H", len(encoded)) + encoded

    def read(self, reader: Reader) -> Any:
        kind = _KINDS[self.token]
        if kind.length == "fixed":
            return kind.decode(self, reader.take(self.size))
        if kind.length == "byte":
            size = reader.byte()
            return kind.decode(self, reader.take(size)) if size else None
        if self.size == MAX:
            pieces = _from_pieces(reader)
            return None if pieces is None else kind.decode(self, pieces)
        size = reader.u16()
        return None if size == _NULL16 else kind.decode(self, reader.take(size))


def read_type(reader: Reader) -> DataType:
    """TYPE_INFO."""
    token = reader.byte()
    kind = _KINDS.get(token)
    if kind is None:
        raise Malformed(f"data type 0x{token:02x}")
    if kind.length == "fixed":
        return DataType(token, kind.size)
    if token == 0x28:
        return DataType(token, 3)
    if token in _SCALED:
        return DataType(token, scale=reader.byte())
    if token in _DECIMALS:
        return DataType(token, *reader.take(3))
    if kind.length == "byte":
        return DataType(token, reader.byte())
    return DataType(token, reader.u16(), collation=reader.take(5) if token in _COLLATED else LATIN1)


def _in_pieces(encoded: bytes | None) -> bytes:
    """Partially length-prefixed: the total, pieces with their lengths, an empty one."""
    if encoded is None:
        return struct.pack("<Q", _NULL64)
    piece = struct.pack("<I", len(encoded)) + encoded if encoded else b""
    return struct.pack("<Q", len(encoded)) + piece + b"\0\0\0\0"


def _from_pieces(reader: Reader) -> bytes | None:
    total = reader.u64()
    if total == _NULL64:
        return None
    pieces = bytearray()
    while size := reader.u32():
        pieces += reader.take(size)
    if total not in (_UNKNOWN64, len(pieces)):
        raise Malformed(f"{len(pieces)} bytes in pieces, {total} announced")
    return bytes(pieces)


_FIRST_DAY = date(1, 1, 1)
_EXACT = Context(prec=80)  # Python's own 28 digits are fewer than SQL Server's 38
_BY_SIZE = {1: "<B", 2: "<h", 4: "<i", 8: "<q"}  # tinyint has no sign


def _encode_int(kind: DataType, value: int) -> bytes:
    return struct.pack(_BY_SIZE[kind.size], value)


def _decode_int(kind: DataType, data: bytes) -> int:
    return struct.unpack(_BY_SIZE[len(data)], data)[0]


def _encode_float(kind: DataType, value: float) -> bytes:
    return struct.pack("<d", value)


def _decode_float(kind: DataType, data: bytes) -> float:
    return struct.unpack("<d", data)[0]


def _encode_decimal(kind: DataType, value: Decimal) -> bytes:
    units = int(Decimal(value).scaleb(kind.scale, _EXACT))
    if abs(units) >= 10**kind.precision:
        raise ValueError(f"{value} does not fit decimal({kind.precision}, {kind.scale})")
    return bytes([units >= 0]) + abs(units).to_bytes(kind.size - 1, "little")


def _decode_decimal(kind: DataType, data: bytes) -> Decimal:
    units = int.from_bytes(data[1:], "little")
    sign, digits = (0 if data[0] else 1), tuple(map(int, str(units)))
    return Decimal((sign, digits, -kind.scale))


def _encoding(kind: DataType) -> str:
    return "utf-8" if kind.collation[3] & _UTF8_COLLATION else "cp1252"


def _encode_time(kind: DataType, value: time) -> bytes:
    microseconds = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    ticks = microseconds * 10 ** (kind.scale - 6) if kind.scale > 6 else microseconds // 10 ** (6 - kind.scale)
    return ticks.to_bytes(3 if kind.scale <= 2 else 4 if kind.scale <= 4 else 5, "little")


def _decode_time(kind: DataType, data: bytes) -> time:
    ticks = int.from_bytes(data, "little")
    # seven digits are one more than Python's time has
    microseconds = ticks // 10 ** (kind.scale - 6) if kind.scale > 6 else ticks * 10 ** (6 - kind.scale)
    return (datetime.min + timedelta(microseconds=microseconds)).time()


def _encode_date(kind: DataType, value: date) -> bytes:
    return (value.toordinal() - 1).to_bytes(3, "little")


def _decode_date(kind: DataType, data: bytes) -> date:
    return _FIRST_DAY + timedelta(days=int.from_bytes(data, "little"))


def _encode_datetime2(kind: DataType, value: datetime) -> bytes:
    return _encode_time(kind, value.time()) + _encode_date(kind, value)


def _decode_datetime2(kind: DataType, data: bytes) -> datetime:
    return datetime.combine(_decode_date(kind, data[-3:]), _decode_time(kind, data[:-3]))


def _encode_offset(kind: DataType, value: datetime) -> bytes:
    minutes = (value.utcoffset() or timedelta()) // timedelta(minutes=1)
    return _encode_datetime2(kind, value.astimezone(timezone.utc)) + struct.pack("<h", minutes)  # noqa: UP017


def _decode_offset(kind: DataType, data: bytes) -> datetime:
    zone = timezone(timedelta(minutes=struct.unpack("<h", data[-2:])[0]))
    return _decode_datetime2(kind, data[:-2]).replace(tzinfo=timezone.utc).astimezone(zone)  # noqa: UP017


@dataclass(frozen=True)
class _Kind:
    name: str
    length: Length
    encode: Callable[[DataType, Any], bytes]
    decode: Callable[[DataType, bytes], Any]
    size: int = 0


_INT = (_encode_int, _decode_int)
_BOOL = (lambda kind, value: bytes([bool(value)]), lambda kind, data: bool(data[0]))
_FLOAT = (_encode_float, _decode_float)
_DECIMAL = (_encode_decimal, _decode_decimal)
_TEXT = (lambda kind, value: value.encode(_encoding(kind)), lambda kind, data: data.decode(_encoding(kind), "replace"))
_UNICODE = (lambda kind, value: value.encode("utf-16-le"), lambda kind, data: data.decode("utf-16-le"))
_BYTES = (lambda kind, value: bytes(value), lambda kind, data: bytes(data))

_KINDS = {
    0x30: _Kind("tinyint", "fixed", *_INT, 1), 0x32: _Kind("bit", "fixed", *_BOOL, 1),
    0x34: _Kind("smallint", "fixed", *_INT, 2), 0x38: _Kind("int", "fixed", *_INT, 4),
    0x7F: _Kind("bigint", "fixed", *_INT, 8), 0x3E: _Kind("float", "fixed", *_FLOAT, 8),
    0x26: _Kind("int", "byte", *_INT), 0x68: _Kind("bit", "byte", *_BOOL), 0x6D: _Kind("float", "byte", *_FLOAT),
    0x6A: _Kind("decimal", "byte", *_DECIMAL), 0x6C: _Kind("numeric", "byte", *_DECIMAL),
    0x28: _Kind("date", "byte", _encode_date, _decode_date), 0x29: _Kind("time", "byte", _encode_time, _decode_time),
    0x2A: _Kind("datetime2", "byte", _encode_datetime2, _decode_datetime2),
    0x2B: _Kind("datetimeoffset", "byte", _encode_offset, _decode_offset), 0xA7: _Kind("varchar", "short", *_TEXT),
    0xAF: _Kind("char", "short", *_TEXT), 0xE7: _Kind("nvarchar", "short", *_UNICODE),
    0xEF: _Kind("nchar", "short", *_UNICODE), 0xA5: _Kind("varbinary", "short", *_BYTES),
    0xAD: _Kind("binary", "short", *_BYTES),
}  # fmt: skip
_SCALED = (0x29, 0x2A, 0x2B)
_DECIMALS = (0x6A, 0x6C)
_COLLATED = (0xA7, 0xAF, 0xE7, 0xEF)

TINYINT = DataType(0x26, 1)
SMALLINT = DataType(0x26, 2)
INT = DataType(0x26, 4)
BIGINT = DataType(0x26, 8)
BIT = DataType(0x68, 1)
FLOAT = DataType(0x6D, 8)
DATE = DataType(0x28, 3)


def decimal(precision: int, scale: int = 0) -> DataType:
    size = 5 if precision <= 9 else 9 if precision <= 19 else 13 if precision <= 28 else 17
    return DataType(0x6A, size, precision, scale)


def datetime2(scale: int = 7) -> DataType:
    return DataType(0x2A, scale=scale)


def varchar(length: int = MAX) -> DataType:
    """Without a length: varchar(max)."""
    return DataType(0xA7, length)


def char(length: int) -> DataType:
    return DataType(0xAF, length)


def nvarchar(length: int = MAX) -> DataType:
    """`length` in characters; without one: nvarchar(max)."""
    return DataType(0xE7, length if length == MAX else 2 * length)


def varbinary(length: int = MAX) -> DataType:
    return DataType(0xA5, length)
