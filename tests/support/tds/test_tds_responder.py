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
from support.tds.answers import Count, Cut, Error, Hold, Info, Rows, Status, Wait
from support.tds.datatypes import (
    BIGINT,
    BIT,
    DATE,
    FLOAT,
    INT,
    REAL,
    SMALLINT,
    TINYINT,
    UNIQUEIDENTIFIER,
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
    (REAL, 0.5),
    (decimal(38, 6), Decimal("-12345678901234567890123456789012.345678")),
    (varchar(20), "é"),
    (nvarchar(20), "日本"),
    (nvarchar(), "x" * 20_000),
    (varbinary(20), b"\x00\xff"),
    (varbinary(), b"\x01" * 20_000),
    (datetime2(3), MOMENT),
    (DATE, datetime.date(1, 1, 1)),
    (UNIQUEIDENTIFIER, uuid.UUID(int=1)),
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


@pytest.mark.parametrize("encryption", ["none", "login", "required"])
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
        everything = encrypt == "yes" or encryption == "required"
        assert login.encrypted == ("all" if everything else "login" if encryption == "login" else "not")
    assert not server.faults


def test_a_wrong_password_and_an_unknown_database(pyodbc, server):
    with pytest.raises(pyodbc.InterfaceError, match="18456") as failure:
        pyodbc.connect(odbc.connection_string(server.port, password="wrong"))
    assert failure.value.args[0] == "28000"
    with pytest.raises(pyodbc.Error, match="4060"):
        pyodbc.connect(odbc.connection_string(server.port, database="elsewhere"))
    assert not server.requests


def test_a_login_that_fails_once(pyodbc, script, server):
    script.login(Error(18401, "in script upgrade mode", severity=14), times=1)
    with pytest.raises(pyodbc.Error, match="18401"):
        pyodbc.connect(odbc.connection_string(server.port))
    pyodbc.connect(odbc.connection_string(server.port)).close()


def test_a_server_that_dies_at_the_login(pyodbc, script, server):
    script.login(Cut())
    with pytest.raises(pyodbc.OperationalError, match=r"08S01|08001"):
        pyodbc.connect(odbc.connection_string(server.port, LoginTimeout=5, ConnectRetryCount=0))


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


@pytest.mark.parametrize(
    ("number", "severity", "state"), [(1205, 13, "40001"), (2627, 14, "23000"), (50001, 16, "42000")]
)
def test_errors_by_number(pyodbc, script, connection, number, severity, state):
    script.procedure("dbo.p", Error(number, "so it is", severity, 3, "dbo.p", 17), Status(-6), times=1)
    script.procedure("dbo.p", Count(1))
    with pytest.raises(pyodbc.Error, match=rf"so it is \({number}\)") as failure:
        connection.execute("{CALL dbo.p(?)}", 1)
    assert failure.value.args[0] == state
    assert connection.execute("{CALL dbo.p(?)}", 1).rowcount == 1


def test_a_fatal_error_ends_the_connection(pyodbc, script, server, connection):
    script.sql("broken", Error(823, "I/O error", severity=24))
    with pytest.raises(pyodbc.Error, match="823"):
        connection.execute("select broken")
    with pytest.raises(pyodbc.OperationalError, match="08S01"):
        connection.execute("select broken")
    assert server.open_connections == 0


def test_what_the_script_does_not_know(pyodbc, connection):
    with pytest.raises(pyodbc.Error, match="the script has no answer to: select nothing"):
        connection.execute("select nothing")


def test_what_any_server_knows(server, connection):
    assert "SQL Server 2022" in connection.execute("SELECT @@VERSION").fetchval()
    query = "SELECT CAST(SERVERPROPERTY('EngineEdition') AS int), SERVERPROPERTY(N'Edition')"
    assert values(connection.execute(query)) == [("3", "Developer Edition (64-bit)")]
    connection.execute("SET NOCOUNT ON; SET XACT_ABORT ON")
    connection.execute("USE other")


def test_an_answer_from_what_was_asked(script, connection):
    script.procedure("double", lambda request: [Rows(ONE, [(2 * request.values[0],)])])
    assert connection.execute("{CALL double(?)}", 21).fetchval() == 42
    assert connection.execute("EXEC double ?", 4).fetchval() == 8


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


def test_a_statement_with_parameters_is_prepared(script, server, connection):
    script.procedure("dbo.p", Count(1))
    with closing(connection.cursor()) as cursor:
        for number in range(3):
            cursor.execute("EXEC dbo.p ?", number)
    assert [it.procedure for it in server.requests] == ["sp_prepexec"] * 3 + ["sp_unprepare"]
    assert [it.values for it in server.requests[:3]] == [(0,), (1,), (2,)]
    assert {it.text for it in server.requests[:3]} == {"EXEC dbo.p @P1"}


def test_a_null_of_unknown_type_is_asked_about_first(script, server, connection):
    script.parameters("dbo.p", [INT, nvarchar(20)])
    script.procedure("dbo.p", Count(1))
    cursor = connection.cursor()
    cursor.execute("{CALL dbo.p(?,?)}", 1, None)
    assert [it.procedure for it in server.requests] == ["sp_describe_undeclared_parameters", "sp_prepexecrpc"]
    assert server.requests[1].values == (1, None)
    assert server.round_trips == 2


def test_long_parameters_travel_in_many_packets(script, server, connection):
    script.sql("long", Count(1))
    connection.execute("update long set a = ?", "é" * 50_000)
    prepare, execute = server.requests[:2]
    assert (prepare.procedure, execute.procedure, execute.text) == ("sp_prepare", "sp_execute", prepare.text)
    assert execute.values == ("é" * 50_000,)


@pytest.mark.parametrize(
    ("inside", "text", "counts"),
    [
        (False, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRAN; EXEC dbo.p ?", "0, current count = 1"),
        (True, "EXEC dbo.p ?; COMMIT", "1, current count = 0"),
        (True, "EXEC dbo.p ?; ROLLBACK", "1, current count = 0"),
        (False, "BEGIN TRAN; EXEC dbo.p ?; COMMIT", None),
        (True, "BEGIN TRAN; EXEC dbo.p ?; COMMIT", None),
        (True, "EXEC dbo.p ?", None),
    ],
)
def test_what_has_parameters_ends_with_as_many_transactions_as_it_began_with(
    pyodbc, script, server, connection, inside, text, counts
):
    script.procedure("dbo.p", Rows(ONE, [(1,)]))
    if inside:
        connection.execute("BEGIN TRAN")
    with closing(connection.cursor()) as cursor:
        assert cursor.execute(text, 1).fetchval() == 1
        if counts:
            with pytest.raises(pyodbc.Error, match=rf"Previous count = {counts}.* \(266\)"):
                cursor.nextset()
        else:
            assert not cursor.nextset()
    assert server.requests[-2].procedure == "sp_prepexec"  # and sp_unprepare


def test_a_batch_without_parameters_may_begin_and_another_may_commit(script, server, connection):
    script.procedure("dbo.p", Rows(ONE, [(1,)]))
    for text in ("BEGIN TRAN; EXEC dbo.p", "EXEC dbo.p; COMMIT"):
        cursor = connection.execute(text)
        assert cursor.fetchval() == 1 and not cursor.nextset()
    assert [it.kind for it in server.requests] == ["batch", "batch"]


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


# What goes wrong


@pytest.mark.parametrize("reset", [True, False])
def test_cut_at_commit(pyodbc, script, server, connection, reset):
    script.procedure("dbo.p", Cut(reset=reset))
    with pytest.raises(pyodbc.OperationalError, match="08S01"):
        connection.execute("EXEC dbo.p; COMMIT")
    assert sent(server) == [("batch", "EXEC dbo.p; COMMIT")]


def test_cut_at_the_drivers_own_commit(pyodbc, script, server, connection):
    script.sql("^update", Count(1))
    script.sql("COMMIT", Cut())
    connection.autocommit = False
    connection.execute("update t")
    with pytest.raises(pyodbc.OperationalError, match="08S01"):
        connection.commit()
    assert sent(server)[-1] == ("transaction", "COMMIT TRANSACTION")


@pytest.mark.parametrize("after", [0, 3, 8, 20, 1000])
def test_cut_in_the_middle_of_an_answer(pyodbc, script, connection, after):
    script.sql("many", Rows(ONE, [(number,) for number in range(1000)]), Cut(after=after))
    with pytest.raises(pyodbc.OperationalError, match="08S01"):
        connection.execute("select many").fetchall()


def test_cut_while_idle(pyodbc, server, connection):
    server.cut_all()
    with pytest.raises(pyodbc.OperationalError, match="08S01"):
        connection.execute("select 1")


def test_a_slow_answer(script, connection):
    hold = Hold()
    script.sql("slow", Rows(ONE, [(1,)]), Wait(0.01), hold, Rows(ONE, [(2,)]))
    threading.Thread(target=lambda: hold.reached.wait() and hold.release()).start()
    cursor = connection.execute("select slow")
    assert values(cursor) == [(1,)]
    assert cursor.nextset() and values(cursor) == [(2,)]


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


def test_a_call_that_takes_too_long(pyodbc, script, server, connection):
    script.sql("slow", Hold())
    connection.timeout = 1
    with pytest.raises(pyodbc.OperationalError, match="HYT00"):
        connection.execute("select slow")
    assert [it.kind for it in server.requests] == ["batch", "attention"]


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
