"""The TDS responder in conversation with Microsoft's drivers: ODBC Driver 18 through pyodbc, and bulk copy."""

import datetime
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.tds import odbc
from support.tds.answers import Count, Hold, Info, Rows
from support.tds.datatypes import (
    BIGINT,
    BIT,
    DATE,
    FLOAT,
    INT,
    SMALLINT,
    TINYINT,
    datetime2,
    decimal,
    nvarchar,
    varbinary,
    varchar,
)
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

ONE = [Column("n", INT)]
MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
EVERY_TYPE = [
    (TINYINT, 255),
    (SMALLINT, -32768),
    (INT, -(2**31)),
    (BIGINT, 2**63 - 1),
    (BIT, True),
    (FLOAT, 0.1),
    (decimal(38, 6), Decimal("-12345678901234567890123456789012.345678")),
    (varchar(20), "é"),
    (nvarchar(20), "日本"),
    (nvarchar(), "x" * 20_000),
    (varbinary(20), b"\x00\xff"),
    (varbinary(), b"\x01" * 20_000),
    (datetime2(3), MOMENT),
    (DATE, datetime.date(1, 1, 1)),
]


@pytest.fixture
def pyodbc() -> ModuleType:
    if reason := odbc.missing():
        pytest.skip(reason)
    return pytest.importorskip("pyodbc")


@pytest.fixture
def script() -> Script:
    return Script(password="not a secret", databases=["stallmark"])


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    with Responder(script) as server:
        yield server
    assert not server.faults


@pytest.fixture
def connection(pyodbc: Any, server: Responder) -> Iterator[Any]:
    with closing(pyodbc.connect(odbc.connection_string(server.port), autocommit=True)) as connection:
        server.forget()
        yield connection


def values(cursor: Any) -> list[tuple]:
    return [tuple(row) for row in cursor.fetchall()]


def sent(server: Responder) -> list[tuple[str, str]]:
    return [(it.kind, it.text or it.procedure) for it in server.requests]


# Login


@pytest.mark.parametrize("encryption", ["none", "required"])
@pytest.mark.parametrize("encrypt", ["no", "yes"])
def test_every_way_to_encrypt(pyodbc, script, encrypt, encryption):
    script.sql("long", Rows([Column("text", nvarchar())], [("x" * 100_000,)]))
    with (
        Responder(script, encryption=encryption) as server,
        closing(pyodbc.connect(odbc.connection_string(server.port, encrypt=encrypt, APP="tests"))) as connection,
    ):
        assert values(connection.execute("select long")) == [("x" * 100_000,)]
        [login] = server.logins
        assert (login.user, login.database, login.application) == ("tester", "stallmark", "tests")
        assert login.has_password("not a secret")
        assert login.encrypted == (encrypt == "yes" or encryption == "required")
    assert not server.faults


# Answers


def test_every_type_and_null(script, connection):
    columns = [Column(f"c{number}", kind) for number, (kind, _) in enumerate(EVERY_TYPE)]
    row = [value for _, value in EVERY_TYPE]
    script.sql("everything", Rows(columns, [row, [None] * len(row)]))
    cursor = connection.execute("select everything")
    first, second = values(cursor)
    assert list(first) == [str(value).upper() if isinstance(value, uuid.UUID) else value for value in row]
    assert set(second) == {None}
    assert [it[0] for it in cursor.description] == [column.name for column in columns]


def test_several_results_counts_and_messages(script, connection):
    script.sql("both", Rows(ONE, [(1,)]), Info("half way"), Count(7), Rows(ONE, []))
    cursor = connection.execute("select both")
    assert values(cursor) == [(1,)]
    assert cursor.nextset() and cursor.rowcount == 7
    assert cursor.nextset() and values(cursor) == []
    assert not cursor.nextset()
    script.sql("print", Info("hello"))
    assert "hello" in connection.execute("print").messages[0][1]


# Requests


def test_a_call_is_an_rpc(script, server, connection):
    script.procedure("dbo.p", Count(1))
    arguments = (1, "text", 2.5, Decimal("1.50"), True, MOMENT, b"\x01")
    with closing(connection.cursor()) as cursor:
        cursor.execute("{CALL dbo.p(?,?,?,?,?,?,?)}", arguments)
        [request] = server.requests
        assert (request.kind, request.procedure, request.called) == ("rpc", "sp_prepexecrpc", ("dbo.p",))
        assert request.values == arguments
    server.forget()
    connection.execute("{CALL dbo.p}")
    assert sent(server) == [("rpc", "dbo.p")]


def test_long_parameters_travel_in_many_packets(script, server, connection):
    script.sql("long", Count(1))
    connection.execute("update long set a = ?", "é" * 50_000)
    prepare, execute = server.requests[:2]
    assert (prepare.procedure, execute.procedure, execute.text) == ("sp_prepare", "sp_execute", prepare.text)
    assert execute.values == ("é" * 50_000,)


def test_without_autocommit_begin_and_commit_are_requests_of_their_own(script, server, connection):
    script.sql("^update", Count(1))
    connection.autocommit = False
    connection.execute("update t")
    connection.commit()
    assert sent(server) == [
        ("transaction", "BEGIN TRANSACTION"),
        ("batch", "update t"),
        ("transaction", "COMMIT TRANSACTION"),
    ]
    server.forget()
    connection.commit()
    assert not server.requests


# Bulk copy


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


# Several at once


def test_a_call_that_is_cancelled(pyodbc, script, server, connection):
    hold = Hold()
    script.sql("slow", hold)
    script.sql("quick", Rows(ONE, [(1,)]))
    cursor = connection.cursor()
    cancels = threading.Thread(target=lambda: hold.reached.wait() and cursor.cancel())
    cancels.start()
    with pytest.raises(pyodbc.Error, match="HY008"):
        cursor.execute("select slow")
    cancels.join()  # a statement that begins before SQLCancel has returned would be cancelled as well
    hold.release()
    assert cursor.execute("select quick").fetchval() == 1
    assert [it.kind for it in server.requests] == ["batch", "attention", "batch"]
    assert server.round_trips == 2


def test_thirty_users(pyodbc, script, server):
    script.procedure("echo", lambda request: [Rows(ONE, [request.values])])
    answers: dict[int, list[int]] = {}

    def user(number: int) -> None:
        with closing(pyodbc.connect(odbc.connection_string(server.port), autocommit=True)) as mine:
            answers[number] = [mine.execute("{CALL echo(?)}", number * 1000 + n).fetchval() for n in range(20)]

    threads = [threading.Thread(target=user, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [number * 1000 + n for n in range(20)] for number in range(30)}


# A process of its own


def test_as_a_process(pyodbc, tmp_path):
    (tmp_path / "answers.py").write_text(
        "from support.tds.answers import Count\nfrom support.tds.script import Script\n"
        "script = Script()\nscript.procedure('dbo.p', Count(3))\n"
    )
    argv = [sys.executable, "-m", "support.tds.responder", "--port", "0", "--script", str(tmp_path / "answers.py")]
    folder = Path(__file__).parents[2]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline())
            with closing(pyodbc.connect(odbc.connection_string(port), autocommit=True)) as connection:
                for number in range(3):
                    assert connection.execute("{CALL dbo.p(?)}", number).rowcount == 3
        finally:
            process.terminate()
