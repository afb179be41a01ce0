"""Requests of a client, decoded: batches, procedure calls, transaction requests, bulk loads (MS-TDS 2.2.6)."""

import functools
import re
import struct
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from support.tds.datatypes import MAX, DataType, read_type
from support.tds.packets import RPC, SQL_BATCH, TRANSACTION_MANAGER, Malformed, Message
from support.tds.reading import Reader
from support.tds.tokens import Column

NUMBERED = {
    1: "sp_cursor", 2: "sp_cursoropen", 3: "sp_cursorprepare", 4: "sp_cursorexecute", 5: "sp_cursorprepexec",
    6: "sp_cursorunprepare", 7: "sp_cursorfetch", 8: "sp_cursoroption", 9: "sp_cursorclose", 10: "sp_executesql",
    11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 14: "sp_prepexecrpc", 15: "sp_unprepare",
}  # fmt: skip
_STATEMENT_AT = {"sp_executesql": 0, "sp_prepare": 2, "sp_prepexec": 2, "sp_prepexecrpc": 1}
_VALUES_FROM = {"sp_executesql": 2, "sp_prepare": 4, "sp_prepexec": 3, "sp_prepexecrpc": 2, "sp_execute": 1}
_TRANSACTION_REQUESTS = {5: "BEGIN", 7: "COMMIT", 8: "ROLLBACK", 9: "SAVE"}
_SIZE_AND_USED = struct.Struct("<H5xH")  # of an nvarchar, with the collation between
_BULK = re.compile(r"\s*INSERT\s+BULK\s+([^\s(]+)", re.I)
_EXECUTE = re.compile(r"\bEXEC(?:UTE)?\s+(?:@\w+\s*=\s*)?((?:\[[^\]]+\]|\w+)(?:\.(?:\[[^\]]+\]|\w+))*)", re.I)
_NAME = re.compile(r"\s*((?:\[[^\]]+\]|\w+)(?:\.(?:\[[^\]]+\]|\w+))*)\s*;?\s*")


class Parameter(NamedTuple):
    name: str
    """With its @, or empty."""
    type: DataType
    value: Any
    output: bool


@dataclass
class Request:
    kind: Literal["batch", "rpc", "transaction", "bulk", "attention"]
    connection: int
    """Which login it came after, from 1."""
    trip: int = 0
    """Round trips of that connection since its login, this one included; calls of one message share one."""
    text: str = ""
    """SQL: of a batch, or the statement behind sp_executesql, sp_prepexec and sp_execute. A transaction
    request reads as "COMMIT TRANSACTION" and so on."""
    procedure: str = ""
    """The procedure that an RPC calls, as the client wrote it."""
    parameters: tuple[Parameter, ...] = ()
    """Of an RPC, as sent."""
    resets: bool = False
    """The connection comes from a pool and is to be reset before."""
    table: str = ""
    columns: list[Column] = field(default_factory=list)
    rows: list[tuple] = field(default_factory=list)
    size: int = 0
    """Bytes."""

    @property
    def values(self) -> tuple:
        """Values for the procedure or the statement: without the arguments of sp_executesql and its like."""
        return tuple(p.value for p in self.parameters[_VALUES_FROM.get(self.procedure, 0) :])

    @property
    def called(self) -> tuple[str, ...]:
        """Procedures it calls, by RPC or by EXEC in its text: lower case, without brackets."""
        return called_in(self.text) if self.text else (plain(self.procedure),) if self.procedure else ()


def plain(name: str) -> str:
    return name.replace("[", "").replace("]", "").replace('"', "").lower()


@functools.lru_cache(maxsize=1000)
def called_in(text: str) -> tuple[str, ...]:
    """A text that is a name and no more is a call as well: so sp_prepexecrpc has it, and so T-SQL has it."""
    bare = _NAME.fullmatch(text)
    return tuple(plain(name) for name in ([bare[1]] if bare else _EXECUTE.findall(text)))


def bulk_table(text: str) -> str | None:
    """The table of an INSERT BULK."""
    match = _BULK.match(text)
    return plain(match[1]) if match else None


def after_headers(body: bytes) -> int:
    """Where a request begins, behind ALL_HEADERS."""
    if len(body) < 4:
        raise Malformed("a request without headers")
    return int.from_bytes(body[:4], "little")


def read_requests(message: Message, connection: int, trip: int) -> list[Request]:
    """One, or for parameter arrays one for each row of parameters."""
    request = functools.partial(
        Request, connection=connection, trip=trip, size=message.size, resets=bool(message.status & 0x18)
    )
    if message.kind == SQL_BATCH:
        return [request("batch", text=message.body[after_headers(message.body) :].decode("utf-16-le"))]
    reader = Reader(message.body, after_headers(message.body))
    if message.kind == TRANSACTION_MANAGER:
        number = reader.u16()
        verb = _TRANSACTION_REQUESTS.get(number)
        if verb is None:
            raise Malformed(f"transaction request {number}")
        return [request("transaction", text=f"{verb} TRANSACTION")]
    if message.kind == RPC:
        calls = []
        while reader.left:
            procedure, parameters = _read_call(reader)
            text = ""
            if (place := _STATEMENT_AT.get(procedure)) is not None and place < len(parameters):
                text = parameters[place].value
            calls.append(request("rpc", procedure=procedure, parameters=parameters, text=text))
        return calls
    raise Malformed(f"message of kind {message.kind}")


def _read_call(reader: Reader) -> tuple[str, tuple[Parameter, ...]]:
    length = reader.u16()
    if length == 0xFFFF:
        number = reader.u16()
        procedure = NUMBERED.get(number, f"procedure {number}")
    else:
        procedure = reader.characters(length)
    reader.u16()  # options
    parameters = []
    while reader.left:
        length = reader.byte()
        if length in (0x80, 0xFE, 0xFF):  # no name is that long: another call follows
            break
        name = reader.characters(length)
        status = reader.byte()
        kind = read_type(reader)
        parameters.append(Parameter(name, kind, kind.read(reader), bool(status & 1)))
    return procedure, tuple(parameters)


def read_bulk(body: bytes) -> tuple[list[Column], list[tuple]]:
    """The columns and rows of a bulk load (MS-TDS 2.2.6.1)."""
    reader = Reader(body)
    if reader.byte() != 0x81:
        raise Malformed("a bulk load without columns")
    described = [_read_column(reader) for _ in range(reader.u16())]
    rows = []
    while (token := reader.byte()) in (0xD1, 0xD2):
        absent = reader.take((len(described) + 7) // 8) if token == 0xD2 else b""
        rows.append(
            tuple(
                None if absent and absent[n // 8] >> n % 8 & 1 else column.type.read(reader)
                for n, column in enumerate(described)
            )
        )
    if token != 0xFD:
        raise Malformed(f"token 0x{token:02x} in a bulk load")
    return described, rows


def _read_column(reader: Reader) -> Column:
    reader.u32()
    flags = reader.u16()
    kind = read_type(reader)
    if kind.name in ("text", "ntext", "image"):
        for _ in range(reader.byte()):
            reader.text()
    return Column(reader.short_text(), kind, bool(flags & 1), bool(flags & 0x10))


def short_key(message: Message) -> bytes | None:
    """The part of a request that decides what a script without conditions answers; cheap, for benchmarks.

    The text of a batch; of an RPC the procedure's name, or the statement or the handle in its place.
    """
    body = message.body
    start = int.from_bytes(body[:4], "little")
    if message.kind == SQL_BATCH:
        return body[start:]
    if message.kind != RPC:
        return None
    length = int.from_bytes(body[start : start + 2], "little")
    if length != 0xFFFF:
        return body[start : start + 2 + 2 * length]
    number = body[start + 2]
    first = start + 6
    if number == 10:  # sp_executesql: the statement
        end = _text_end(body, first)
    elif number == 12:  # sp_execute: the handle
        end = _handle_end(body, first)
    elif number == 13:  # sp_prepexec: types and statement; the handle is the one to forget
        first = _handle_end(body, first)
        end = _text_end(body, _text_end(body, first))
    elif number == 14:  # sp_prepexecrpc: the procedure
        first = _handle_end(body, first)
        end = _text_end(body, first)
    else:
        return None
    return bytes([number]) + body[first:end] if end else None


def _handle_end(body: bytes, place: int) -> int:
    """Behind a parameter that is an int without a name; 0 if it is something else."""
    if body[place] or body[place + 2] != 0x26:
        return 0
    return place + 5 + body[place + 4]


def _text_end(body: bytes, place: int) -> int:
    """Behind a parameter that is an nvarchar without a name; 0 if it is something else."""
    if not place or body[place] or body[place + 2] != 0xE7:
        return 0
    size, used = _SIZE_AND_USED.unpack_from(body, place + 3)
    if size != MAX:
        return 0 if used == 0xFFFF else place + 12 + used
    place += 18  # in pieces, behind their total
    while piece := int.from_bytes(body[place : place + 4], "little"):
        place += 4 + piece
    return place + 4
