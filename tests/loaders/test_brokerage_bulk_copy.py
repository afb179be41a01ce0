"""The brokerage's rows through the bulk copy of mssql-python: what arrives is what was made, in columns of the types
that the schema gives them on SQL Server."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Count, Cut
from support.tds.datatypes import DATE, DataType, char, datetime2, varchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.tsql import parser

from stallmark.engines.mssql.bulk import BulkCopyWriter
from stallmark.errors import CallFailed
from stallmark.loaders import Batch
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.worker import load_batch
from stallmark.schema.brokerage.tables import METADATA

pytestmark = pytest.mark.thorough

SEED = 11
SCALE = LOADER.scale({"customers": 1_000, "days": 0.02})
SOME = 251  # rows of a piece
LONGEST = 100_000  # of an article

DIALECT = mssql.dialect()
DIALECT.server_version_info = (14, 0)

# By name: the type on the wire where NULL may not be, and where it may, as SQL Server describes its columns; bytes;
# and what loaders make of it.
_INTEGERS = {
    "BIGINT": (0x7F, 0x26, 8, pa.int64()),
    "INTEGER": (0x38, 0x26, 4, pa.int32()),
    "SMALLINT": (0x34, 0x26, 2, pa.int16()),
}


def declared(column: sa.Column) -> tuple[str, list[int]]:
    """The type that CREATE TABLE names: its name, and its arguments; none for max."""
    text = column.type.compile(dialect=DIALECT)
    [name] = re.findall(r"^\w+", text)
    return name, [int(number) for number in re.findall(r"\d+", text[len(name) :])]


def on_the_wire(column: sa.Column) -> DataType:
    match declared(column):
        case name, [] if name in _INTEGERS:
            fixed, nullable, size, _ = _INTEGERS[name]
            return DataType(nullable if column.nullable else fixed, size)
        case "BIT", []:
            return DataType(0x68 if column.nullable else 0x32, 1)
        case "NUMERIC", [precision, scale]:
            return DataType(0x6C, 5 if precision <= 9 else 9, precision, scale)
        case "DATE", []:
            return DATE
        case "DATETIME2", [scale]:
            return datetime2(scale)
        case "VARCHAR", length:
            return varchar(*length)
        case "CHAR", [length]:
            return char(length)
    raise AssertionError(f"{column} has no type that SQL Server would know")


@pytest.fixture(scope="module")
def script() -> Script:
    script = Script()
    says_it_is(script)
    script.sql("stallmark.ledger", Count(1))
    for name, table in METADATA.tables.items():
        script.table(name, [Column(it.name, on_the_wire(it), bool(it.nullable)) for it in table.columns])
    return script


@pytest.fixture(scope="module")
def server(script: Script) -> Iterator[Responder]:
    with answering(script) as server:
        yield server


@contextmanager
def opened_writer(server: Responder) -> Iterator[BulkCopyWriter]:
    with engine_at(server).bulk_writer() as writer:
        if not isinstance(writer, BulkCopyWriter):
            pytest.skip("mssql-python is not here: pip install 'stallmark[sqlserver]'")
        yield writer


@pytest.fixture
def writer(server: Responder) -> Iterator[BulkCopyWriter]:
    with opened_writer(server) as writer:
        yield writer


@pytest.fixture(scope="module")
def pieces() -> dict[str, pa.Table]:
    """The largest piece of each table, from all groups."""
    largest: dict[str, pa.Table] = {}
    for group in LOADER.groups(SCALE):
        for table, piece in LOADER.batch(SEED, SCALE, Batch(group.name, 0)):
            if table not in largest or piece.num_rows > largest[table].num_rows:
                largest[table] = piece
    return largest


def arrived(server: Responder, writer: BulkCopyWriter, table: str, rows: pa.Table) -> list[tuple]:
    server.forget()
    writer.write(table, rows)
    insert, load = server.requests[-2:]
    assert insert.text.startswith("INSERT BULK") and "CHECK_CONSTRAINTS" in insert.text
    assert load.table == table
    assert [column.name for column in load.columns] == rows.column_names
    return load.rows


def as_tuples(rows: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize("table", sorted(set(METADATA.tables) - {"brokerage.trade_request"}))
def test_what_is_loaded_arrives(server, writer, pieces, table):
    piece = pieces[table]
    rows = piece
    if piece.num_rows > 2 * SOME:  # its beginning and its end, in place: chunks, one of which begins within a byte
        rows = pa.concat_tables([piece.slice(0, SOME), piece.slice(piece.num_rows - SOME)])
    assert arrived(server, writer, table, rows) == as_tuples(rows)


def extremes(column: sa.Column) -> tuple[pa.DataType, list[Any]]:
    """The values at the ends of what the column takes, in Arrow's type that loaders give it."""
    values: list[Any]
    match declared(column):
        case "NUMERIC", [precision, scale]:
            kind = pa.decimal128(precision, scale)
            values = [Decimal(units).scaleb(-scale) for units in (10**precision - 1, 1 - 10**precision, 0, 1, -1)]
        case "VARCHAR", length:
            [longest] = length or [LONGEST]
            kind, values = pa.string(), ["", "a", "z" * longest, "~" * (longest - 1) + " "]
        case "CHAR", [length]:
            kind, values = pa.string(), ["A" * length, " " * length, "~" * length]
        case "BIT", []:
            kind, values = pa.bool_(), [True, False]
        case "DATE", []:
            kind, values = (pa.date32(), [date(1, 1, 1), date(1753, 1, 1), date(2024, 2, 29), date(9999, 12, 31)])
        case "DATETIME2", [3]:
            kind = pa.timestamp("ms")
            values = [datetime(1, 1, 1), datetime(2005, 1, 3, 9), datetime(9999, 12, 31, 23, 59, 59, 999000)]
        case name, []:
            _, _, size, kind = _INTEGERS[name]
            bits = 8 * size
            values = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1]
        case other:
            raise AssertionError(other)
    return kind, values + [None] * bool(column.nullable)


@pytest.mark.parametrize("table", METADATA.tables)
def test_the_ends_of_every_column_arrive(server, writer, table):
    ends = {column.name: extremes(column) for column in METADATA.tables[table].columns}
    most = max(len(values) for _, values in ends.values())
    rows = pa.table({name: pa.array(islice(cycle(values), most), kind) for name, (kind, values) in ends.items()})
    assert arrived(server, writer, table, rows) == as_tuples(rows)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("t_s_symb", "z" * 16, "exceeds"),
        ("t_st_id", "CMPLT", "exceeds"),
        *((column, None, column) for column in ("t_exec_name", "t_is_cash", "t_qty", "t_chrg", "t_dts")),
    ],
)
def test_what_does_not_fit_a_column_is_refused(server, writer, pieces, column, value, reason):
    rows = pieces["brokerage.trade"].slice(0, 3)
    place = rows.schema.get_field_index(column)
    wrong = pa.array([*rows[column].to_pylist()[:2], value], rows.schema.types[place])
    with pytest.raises(CallFailed, match=reason):
        writer.write("brokerage.trade", rows.set_column(place, column, wrong))


class Begun(NamedTuple):
    """A batch that was cut: its group, the text that began it, and the tables it came to."""

    group: str
    text: str
    tables: set[str | None]


@pytest.fixture(scope="module", params=[("market", "security"), ("trade", "settlement")])
def begun(request, script, server) -> Begun:
    group, cut_at = request.param
    script.bulk(f"brokerage.{cut_at}", Cut(), after_bytes=10, times=1)
    server.forget()
    with opened_writer(server) as writer, pytest.raises(CallFailed):
        load_batch(writer, LOADER, SCALE, Batch(group, 0), LOADER.batch(SEED, SCALE, Batch(group, 0)))
    [text] = [request.text for request in server.requests if "stallmark.ledger" in request.text]
    return Begun(group, text, {request.table for request in server.requests if request.kind == "bulk"})


def test_a_batch_that_is_cut_has_begun_and_its_begin_removes_all_of_it(begun):
    removed = set(re.findall(r"DELETE FROM (\S+) WHERE \w+ (?:BETWEEN|IN) ", begun.text))
    [filled] = [set(of.rows) for of in LOADER.groups(SCALE) if of.name == begun.group]
    assert begun.tables < filled == removed


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_takes_the_begin(begun):
    assert not parser.errors(begun.text)
