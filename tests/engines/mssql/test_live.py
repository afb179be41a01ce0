"""On a server that is no responder, where STALLMARK_TEST_SQLSERVER names a database of it: transactions of several
calls, and the lock of a run."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from support import sql_server

from stallmark.engines.base import Isolation
from stallmark.engines.mssql import lock
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.session import MssqlSession
from stallmark.errors import CallFailed, ErrorClass, StallmarkError

pytestmark = [pytest.mark.server, pytest.mark.sqlserver]

DROP = ("DROP PROCEDURE IF EXISTS dbo.stallmark_add", "DROP TABLE IF EXISTS dbo.stallmark_t")
MAKE = (
    "CREATE TABLE dbo.stallmark_t (id integer PRIMARY KEY, n integer NOT NULL)",
    "INSERT INTO dbo.stallmark_t VALUES (1, 0), (2, 0)",
    """CREATE PROCEDURE dbo.stallmark_add @id integer, @more integer AS
    BEGIN
        SET NOCOUNT ON;
        UPDATE dbo.stallmark_t SET n = n + @more WHERE id = @id;
        SELECT n FROM dbo.stallmark_t WHERE id = @id;
    END""",
)
LEVEL = "SELECT transaction_isolation_level FROM sys.dm_exec_sessions WHERE session_id = @@SPID"
Make = Callable[[], MssqlSession]


@pytest.fixture
def database() -> Iterator[MssqlEngine]:
    engine = MssqlEngine(sql_server.URL)
    for statement in (*DROP, *MAKE):
        engine.execute(statement)
    yield engine
    for statement in DROP:
        engine.execute(statement)


@pytest.fixture
def sessions(database: MssqlEngine) -> Iterator[Make]:
    opened: list[MssqlSession] = []

    def make() -> MssqlSession:
        opened.append(database.session(60))
        for name, sql in {"add": "{CALL dbo.stallmark_add(?, ?)}", "level": LEVEL, "divide": "SELECT 1 / ?"}.items():
            opened[-1].prepare(name, sql)
        return opened[-1]

    yield make
    for session in opened:
        session.close()


def numbers(database: MssqlEngine) -> list[int]:
    return [n for (n,) in database.query("SELECT n FROM dbo.stallmark_t ORDER BY id")]


@pytest.mark.parametrize("isolation", Isolation)
def test_two_calls_are_one_transaction_at_its_isolation(database, sessions, isolation):
    session = sessions()
    before = session.call("level", ())
    with session.transaction(isolation):
        level = session.call("level", ())
        assert session.call("add", (1, 5)) == [(5,)]
        assert session.call("add", (2, 6)) == [(6,)]
    assert numbers(database) == [5, 6]
    assert session.call("level", ()) == before
    assert (level == before) == (isolation is Isolation.READ_COMMITTED)


def test_what_is_rolled_back_is_not_there(database, sessions):
    session = sessions()
    with session.transaction(Isolation.SERIALIZABLE):
        session.call("add", (1, 5))
        session.roll_back()
    with pytest.raises(CallFailed), session.transaction(Isolation.READ_COMMITTED):
        session.call("add", (1, 5))
        session.call("divide", (0,))
    with session.transaction(Isolation.READ_COMMITTED):
        session.call("add", (2, 6))
    assert numbers(database) == [0, 6]


@pytest.mark.parametrize("isolation", Isolation)
def test_after_an_error_the_session_goes_on(database, sessions, isolation):
    session = sessions()
    before = session.call("level", ())
    with pytest.raises(CallFailed, match="by zero"), session.transaction(isolation):
        session.call("add", (1, 5))
        session.call("divide", (0,))
    assert not session.is_lost and session.call("level", ()) == before
    assert numbers(database) == [0, 0]


def test_a_deadlock_between_the_calls_leaves_both_sessions_clean(database, sessions):
    pair, both_hold_one = (sessions(), sessions()), Barrier(2)

    def add(session: MssqlSession, first: int, second: int) -> None:
        with session.transaction(Isolation.READ_COMMITTED):
            session.call("add", (first, 1))
            both_hold_one.wait()
            session.call("add", (second, 1))

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(add, pair[0], 1, 2), pool.submit(add, pair[1], 2, 1)]
        [failure] = [error for call in calls if (error := call.exception())]
    assert isinstance(failure, CallFailed) and (failure.kind, failure.code) == (ErrorClass.DEADLOCK, "1205")
    assert numbers(database) == [1, 1]
    for session in pair:
        with session.transaction(Isolation.READ_COMMITTED):
            session.call("add", (1, 1))
    assert numbers(database) == [3, 1]


def test_only_one_run_has_the_lock(database):
    with lock.hold(database), pytest.raises(StallmarkError, match="Another Stallmark drives"), lock.hold(database):
        pass
    with lock.hold(database) as look:
        look()
