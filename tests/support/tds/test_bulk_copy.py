"""The bulk copy of mssql-python into the responder: what arrives, and what goes wrong."""

import datetime
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from support.tds import odbc
from support.tds.answers import Cut, Error
from support.tds.datatypes import BIGINT, BIT, DATE, FLOAT, SMALLINT, datetime2, decimal, nvarchar, varbinary, varchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
TABLE = [
    Column("id", BIGINT, nullable=False),
    Column("small", SMALLINT),
    Column("flag", BIT),
    Column("ratio", FLOAT),
    Column("amount", decimal(12, 2)),
    Column("name", nvarchar(40)),
    Column("code", varchar(40)),
    Column("at", datetime2(6)),
    Column("day", DATE),
    Column("raw", varbinary(40)),
]


@pytest.fixture
def script() -> Script:
    return Script(password="not a secret", databases=["stallmark"])


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    with Responder(script) as server:
        yield server
    assert not server.faults


ROWS = [
    (1, -5, True, 0.5, Decimal("1.50"), "日本", "é", MOMENT, datetime.date(2024, 2, 29), b"\x00\x01"),
    (2, *[None] * 9),
    (3, 7, False, -1.0, Decimal("-9999999999.99"), "", "z" * 40, MOMENT, datetime.date(1, 1, 1), b""),
]


def bulk_copy(server: Responder, rows: list[tuple] = ROWS, **options: Any) -> dict:
    if reason := odbc.missing():
        pytest.skip(reason)
    mssql_python = pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    pa = pytest.importorskip("pyarrow")
    types = [pa.int64(), pa.int16(), pa.bool_(), pa.float64(), pa.decimal128(12, 2), pa.string(), pa.string(),
             pa.timestamp("us"), pa.date32(), pa.binary()]  # fmt: skip
    names = [column.name for column in TABLE]
    table = pa.table([pa.array(it, kind) for it, kind in zip(zip(*rows, strict=True), types, strict=True)], names)
    where = f"SERVER=tcp:127.0.0.1,{server.port};DATABASE=stallmark;UID=tester;PWD=not a secret;"
    encryption = f"Encrypt={options.pop('encrypt', 'no')};TrustServerCertificate=yes"
    with closing(mssql_python.connect(where + encryption, autocommit=True)) as connection:
        server.forget()
        return connection.cursor().bulkcopy_arrow("dbo.trade", table, **options)


@pytest.mark.parametrize("encrypt", ["no", "yes"])
def test_rows_of_bulk_copy(script, server, encrypt):
    script.table("dbo.trade", TABLE)
    assert bulk_copy(server, encrypt=encrypt)["rows_copied"] == 3
    asked, insert, load = [request for request in server.requests if request.connection == 2]
    assert "fmtonly on" in asked.text.lower()
    assert insert.text.startswith("INSERT BULK [dbo].[trade] ([id] bigint")
    assert (load.kind, load.table, load.rows) == ("bulk", "dbo.trade", ROWS)
    assert [column.name for column in load.columns] == [column.name for column in TABLE]


def test_batches_of_bulk_copy(script, server):
    script.table("dbo.trade", TABLE)
    rows = [(number, *ROWS[0][1:]) for number in range(250)]
    assert bulk_copy(server, rows, batch_size=100)["rows_copied"] == 250
    assert [len(it.rows) for it in server.requests if it.kind == "bulk"] == [100, 100, 50]


def test_a_bulk_copy_that_fails(script, server):
    script.table("dbo.trade", TABLE)
    script.bulk("dbo.trade", Error(2627, "duplicate key", severity=14))
    with pytest.raises(Exception, match="2627"):
        bulk_copy(server)


@pytest.mark.parametrize("after_bytes", [None, 10_000])
def test_a_bulk_copy_that_is_cut(script, server, after_bytes):
    script.table("dbo.trade", TABLE)
    script.bulk("dbo.trade", Cut(), after_bytes=after_bytes)
    with pytest.raises(Exception, match=r"(?i)connection|reset|closed|error"):
        bulk_copy(server, [(number, *ROWS[0][1:]) for number in range(5_000)])
    assert ("bulk" in [it.kind for it in server.requests]) == (after_bytes is None)
