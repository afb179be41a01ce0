"""Transactions of several calls on PostgreSQL; SQL Server's are in mssql/test_session.py."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.waiting import eventually

from stallmark.engines.base import Isolation
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.session import PostgresSession
from stallmark.errors import CallFailed, ErrorClass

STATEMENTS = {
    "level": "SELECT current_setting('transaction_isolation')",
    "add": "UPDATE t SET n = n + $2::int WHERE id = $1::int RETURNING n",
    "total": "SELECT sum(n)::int FROM t",
    "divide": "SELECT 1 / $1::int",
    "echo": "SELECT $1::text, $2::int, $3::boolean",
    "end": "SELECT pg_terminate_backend(pg_backend_pid())",
}
SLOW_COMMIT = """
CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sleep()
"""


@pytest.fixture
def sessions(database: EmbeddedEngine) -> Iterator[Callable[[], PostgresSession]]:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)")
    opened: list[PostgresSession] = []

    def make() -> PostgresSession:
        opened.append(database.session(60))
        for name, sql in STATEMENTS.items():
            opened[-1].prepare(name, sql)
        return opened[-1]

    yield make
    for session in opened:
        session.close()


def in_this_way(way: str, session: PostgresSession, name: str, parameters: list[int]) -> None:
    """Make a call between others, as the last one or to finish without its rows."""
    if way == "finish":
        session.finish(name, parameters)
    else:
        session.call(name, parameters, last=way == "last")


def numbers(database: EmbeddedEngine) -> list[int]:
    return [n for (n,) in database.query("SELECT n FROM t ORDER BY id")]


@pytest.mark.parametrize("isolation", Isolation)
def test_calls_inside_are_one_transaction_at_its_isolation(database, sessions, isolation):
    session = sessions()
    with session.transaction(isolation):
        assert session.call("level", []) == [(isolation.lower(),)]
        session.call("add", [1, 5])
        assert numbers(database) == [0, 0]
        session.call("add", [2, 6])
    assert numbers(database) == [5, 6]
    assert session.call("level", []) == [("read committed",)]


def test_the_last_call_commits_what_all_have_done(database, sessions):
    session = sessions()
    with session.transaction(Isolation.REPEATABLE_READ):
        session.call("add", [1, 5])
        assert session.call("add", [2, 6], last=True) == [(6,)]
        assert numbers(database) == [5, 6]
    with session.transaction(Isolation.SERIALIZABLE):
        assert session.call("level", [], last=True) == [("serializable",)]
    assert session.call("level", []) == [("read committed",)]


def test_a_call_alone_at_the_default_isolation_is_a_transaction_by_itself(database, sessions, monkeypatch):
    name = database.query("SELECT current_database()")[0][0]
    database.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    session = sessions()
    monkeypatch.setattr(session, "_trips", None)  # by which texts of several statements go
    with session.transaction(Isolation.READ_COMMITTED):
        assert session.call("level", [], last=True) == [("read committed",)]
    with session.transaction(Isolation.READ_COMMITTED):
        assert session.call("add", [1, 5], last=True) == [(5,)]
        assert numbers(database) == [5, 0]


@pytest.mark.parametrize("isolation", Isolation)
def test_a_transaction_is_finished_without_the_rows_of_its_last_call(isolation, database, sessions):
    session = sessions()
    with session.transaction(isolation):
        session.call("add", [1, 5])
        session.finish("add", [2, 6])
        assert numbers(database) == [5, 6]
    with session.transaction(isolation):
        session.finish("add", [2, 1])
    assert numbers(database) == [5, 7]
    assert session.call("level", []) == [("read committed",)]


@pytest.mark.parametrize("setting", ["on", "off"])
def test_values_come_back_as_they_went_from_the_first_call_and_the_last(setting, sessions):
    session = sessions()
    session.prepare("strings", f"SET standard_conforming_strings = {setting}")
    session.call("strings", [])
    for row in [("it's \\ a 'quoted\\' %s; --", -7, True), ("", 0, False), (None, None, None), ("naïve – 数", 1, True)]:
        for last in (False, True):
            with session.transaction(Isolation.READ_COMMITTED):
                assert session.call("echo", row, last=last) == [row]


def test_the_ends_take_no_trip_where_calls_say_so(sessions, monkeypatch):
    session = sessions()
    monkeypatch.setattr(session, "_execute", None)  # by which plain statements go
    with session.transaction(Isolation.READ_COMMITTED):
        session.call("add", [1, 5])
        session.call("add", [1, 5], last=True)
    with session.transaction(Isolation.READ_COMMITTED):
        session.roll_back()


def test_a_single_call_may_have_its_own_isolation(database, sessions):
    """As transactions/workload.py says: in one round trip."""
    database.execute("""
        CREATE PROCEDURE alone(INOUT level text) LANGUAGE plpgsql AS $$
        BEGIN
            ROLLBACK;
            SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
            level := current_setting('transaction_isolation');
        END $$""")
    session = sessions()
    session.prepare("alone", "CALL alone(NULL)")
    assert session.call("alone", []) == [("serializable",)]
    assert session.call("level", []) == [("read committed",)]


def test_of_several_calls_that_are_transactions_by_themselves_one_fails_alone(database, sessions):
    session = sessions()
    first, failed, last = session.call_each("divide", [[1], [0], [-1]])
    assert (first, last) == ([(1,)], [(-1,)])
    assert isinstance(failed, CallFailed) and failed.kind is ErrorClass.OTHER
    assert session.call_each("add", [[1, 5], [2, 6]]) == [[(5,)], [(6,)]]
    assert numbers(database) == [5, 6]
    assert session.call_each("add", []) == []


def test_of_several_calls_that_are_refused_at_their_commit_each_is_told(database, sessions):
    database.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';"
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "WHEN (NEW.id = 1) EXECUTE FUNCTION refuse()"
    )
    refused, done = sessions().call_each("add", [[1, 5], [2, 6]])
    assert isinstance(refused, CallFailed) and refused.kind is ErrorClass.OTHER
    assert done == [(6,)] and numbers(database) == [0, 6]


def test_of_several_calls_those_after_a_lost_connection_are_of_unknown_outcome(database, sessions):
    session = sessions()
    session.prepare("maybe", "SELECT CASE WHEN $1 THEN pg_terminate_backend(pg_backend_pid()) END")
    done, *lost = session.call_each("maybe", [[False], [True], [False]])
    assert done == [(None,)] or isinstance(done, CallFailed)
    assert [failure.kind for failure in lost] == [ErrorClass.UNKNOWN_OUTCOME] * 2
    [refused] = session.call_each("maybe", [[False], [False]])
    assert refused.kind is ErrorClass.CONNECTION_LOST


def test_a_transaction_may_decide_to_roll_back(database, sessions):
    session = sessions()
    with session.transaction(Isolation.SERIALIZABLE):
        session.call("add", [1, 5])
        session.roll_back()
    assert numbers(database) == [0, 0]


def test_a_fault_between_the_calls_rolls_back(database, sessions):
    session = sessions()
    with pytest.raises(ZeroDivisionError), session.transaction(Isolation.READ_COMMITTED):
        session.call("add", [1, 5])
        1 / 0  # noqa: B018
    assert numbers(database) == [0, 0]
    session.call("add", [1, 7])
    assert numbers(database) == [7, 0]


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize("first", [["add"], []], ids=["after others", "first"])
@pytest.mark.parametrize("way", ["between", "last", "finish"])
def test_after_an_error_in_a_call_the_session_is_clean(way, first, isolation, database, sessions):
    session = sessions()
    with pytest.raises(CallFailed, match="division by zero") as raised, session.transaction(isolation):
        for call in first:
            session.call(call, [1, 5])
        in_this_way(way, session, "divide", [0])
    assert raised.value.kind is ErrorClass.OTHER
    sessions().call("add", [1, 1])  # its locks are gone, too
    with session.transaction(Isolation.READ_COMMITTED):
        session.call("add", [2, 6])
    assert numbers(database) == [1, 6]


@pytest.mark.parametrize("way", ["between", "last", "finish"])
def test_of_two_that_read_what_the_other_writes_one_is_refused_at_its_commit(way, database, sessions):
    one, two = sessions(), sessions()
    with pytest.raises(CallFailed) as raised, one.transaction(Isolation.SERIALIZABLE):
        one.call("total", [])
        one.call("add", [1, 1])
        with two.transaction(Isolation.SERIALIZABLE):
            two.call("total", [])
            in_this_way(way, two, "add", [2, 1])
        in_this_way(way, one, "level", [])
    assert raised.value.kind is ErrorClass.SERIALIZATION and raised.value.kind.retryable
    assert numbers(database) == [0, 1]
    with one.transaction(Isolation.SERIALIZABLE):
        one.call("add", [1, 1])
    assert numbers(database) == [1, 1]


def test_a_deadlock_between_the_calls_leaves_both_sessions_clean(database, sessions):
    one, two = sessions(), sessions()

    def add(session: PostgresSession, *ids: int) -> None:
        with session.transaction(Isolation.READ_COMMITTED):
            session.call("add", [ids[0], 1])
            if session is one:
                other.append(pool.submit(add, two, 2, 1))
                eventually(lambda: bool(database.query("SELECT FROM pg_locks WHERE NOT granted")))
            session.call("add", [ids[1], 1])

    other: list = []
    with ThreadPoolExecutor() as pool:
        mine = pool.submit(add, one, 1, 2)
        failures = [f for f in (mine.exception(), other[0].exception()) if f]
    [failure] = failures
    assert isinstance(failure, CallFailed) and failure.kind is ErrorClass.DEADLOCK
    assert numbers(database) == [1, 1]
    for session in (one, two):
        with session.transaction(Isolation.READ_COMMITTED):
            session.call("add", [1, 1])
    assert numbers(database) == [3, 1]


@pytest.mark.parametrize("calls", [["add", "end"], ["end"]], ids=["after others", "first"])
def test_a_connection_lost_between_the_calls_has_committed_nothing(calls, database, sessions):
    session = sessions()
    with pytest.raises(CallFailed) as raised, session.transaction(Isolation.READ_COMMITTED):
        for call in calls:
            session.call(call, [1, 5] if call == "add" else [])
    assert raised.value.kind is ErrorClass.CONNECTION_LOST and "administrator command" in raised.value.message
    assert session.is_lost
    assert numbers(database) == [0, 0]


def test_a_connection_known_to_be_lost_sends_nothing(sessions):
    session = sessions()
    with pytest.raises(CallFailed):
        session.call("end", [])
    for way in ("between", "last", "finish"):
        with pytest.raises(CallFailed) as raised, session.transaction(Isolation.READ_COMMITTED):
            in_this_way(way, session, "add", [1, 5])
        assert raised.value.kind is ErrorClass.CONNECTION_LOST


@pytest.mark.parametrize("way", ["last", "finish"])
def test_a_connection_lost_during_the_last_call_is_of_unknown_outcome(way, database, sessions):
    session = sessions()
    with pytest.raises(CallFailed) as raised, session.transaction(Isolation.READ_COMMITTED):
        session.call("add", [1, 5])
        in_this_way(way, session, "end", [])
    assert raised.value.kind is ErrorClass.UNKNOWN_OUTCOME and "administrator command" in raised.value.message
    assert numbers(database) == [0, 0]


@pytest.mark.parametrize("way", ["between", "last", "finish"])
def test_a_connection_lost_at_the_commit_is_of_unknown_outcome(way, database, sessions):
    database.execute(SLOW_COMMIT)
    session = sessions()

    def add() -> None:
        with session.transaction(Isolation.REPEATABLE_READ):
            in_this_way(way, session, "add", [1, 5])

    with ThreadPoolExecutor() as pool:
        failure = pool.submit(add)
        eventually(
            lambda: bool(
                database.query("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%COMMIT'")
            )
        )
        database.query("SELECT pg_terminate_backend(%s, 60000)", [session.server_pid])
        error = failure.exception()
    assert isinstance(error, CallFailed) and error.kind is ErrorClass.UNKNOWN_OUTCOME
