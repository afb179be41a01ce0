"""How errors of PostgreSQL are counted: by their codes, and as they really happen."""

import os
import signal
import socket
import threading

import psycopg
import pytest
from support.clusters import ClusterEngine
from support.embedded_servers import LONG_S
from support.waiting import eventually

from stallmark.engines.base import Isolation
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.engines.postgres.session import PostgresSession, as_call_failed, classify
from stallmark.errors import CallFailed, ErrorClass, StallmarkError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("40P01", ErrorClass.DEADLOCK),
        ("55P03", ErrorClass.LOCK_TIMEOUT),
        ("40001", ErrorClass.SERIALIZATION),
        ("57014", ErrorClass.TIMEOUT),
        ("53100", ErrorClass.OUT_OF_SPACE),
        ("53200", ErrorClass.OUT_OF_MEMORY),
        ("53300", ErrorClass.RESOURCE_LIMIT),
        ("53400", ErrorClass.RESOURCE_LIMIT),
        ("58030", ErrorClass.STORAGE),
        ("XX001", ErrorClass.STORAGE),
        ("XX002", ErrorClass.STORAGE),
        ("57P01", ErrorClass.CONNECTION_LOST),
        ("57P03", ErrorClass.CONNECTION_LOST),
        ("25006", ErrorClass.CONNECTION_LOST),
        ("08006", ErrorClass.CONNECTION_LOST),
        ("08P01", ErrorClass.CONNECTION_LOST),
        ("40002", ErrorClass.OTHER),
        ("23505", ErrorClass.OTHER),
        ("XX000", ErrorClass.OTHER),
        ("42P01", ErrorClass.OTHER),
    ],
)
def test_sqlstates_are_counted_under_the_words_of_every_engine(code, kind):
    assert classify(code) is kind


def test_a_connection_that_is_lost_without_a_word_has_a_code_too():
    with pytest.raises(CallFailed) as raised, as_call_failed():
        raise psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")
    assert (raised.value.kind, raised.value.code) == (ErrorClass.CONNECTION_LOST, "08006")


def test_only_what_the_server_undid_is_tried_again():
    assert {kind for kind in ErrorClass if kind.retryable} == {
        ErrorClass.DEADLOCK, ErrorClass.LOCK_TIMEOUT, ErrorClass.SERIALIZATION,
    }  # fmt: skip
    assert [kind for kind in ErrorClass if kind.fatal] == [ErrorClass.STORAGE]


def test_an_error_survives_the_way_to_another_process():
    import pickle

    error = pickle.loads(pickle.dumps(CallFailed(ErrorClass.DEADLOCK, "40P01", "in a circle")))
    assert (error.kind, error.code, error.message) == (ErrorClass.DEADLOCK, "40P01", "in a circle")
    assert str(error) == "deadlock (40P01): in a circle"


@pytest.fixture
def two_rows(database: EmbeddedEngine) -> None:
    database.execute("CREATE TABLE two (id integer PRIMARY KEY, n integer); INSERT INTO two VALUES (1, 0), (2, 0)")


UPDATE = "UPDATE two SET n = n + 1 WHERE id = $1"


def test_a_deadlock(two_rows, database, sessions, aside):
    control = {"begin": "BEGIN", "settle": "SET LOCAL deadlock_timeout = '10ms'", "update": UPDATE, "end": "ROLLBACK"}
    one, other = sessions(**control), sessions(**control)
    for session, row in ((one, 1), (other, 2)):
        session.call("begin", [])
        session.call("settle", [])
        session.call("update", [row])
    waiting = [aside(one.call, "update", [2]), aside(other.call, "update", [1])]
    failed = [future.exception() for future in waiting if future.exception()]
    [error] = failed
    assert isinstance(error, CallFailed)
    assert (error.kind, error.code) == (ErrorClass.DEADLOCK, "40P01")
    for session in (one, other):
        session.call("end", [])


def test_a_lock_timeout(two_rows, database, sessions):
    blocker, session = (
        sessions(begin="BEGIN", update=UPDATE),
        sessions(set="SET lock_timeout = '10ms'", update=UPDATE),
    )
    blocker.call("begin", [])
    blocker.call("update", [1])
    session.call("set", [])
    with pytest.raises(CallFailed) as caught:
        session.call("update", [1])
    assert caught.value.kind is ErrorClass.LOCK_TIMEOUT


def test_a_serialization_failure(two_rows, sessions):
    control = {"begin": "BEGIN ISOLATION LEVEL REPEATABLE READ", "read": "SELECT n FROM two", "update": UPDATE}
    session, other = sessions(**control), sessions(**control)
    session.call("begin", [])
    session.call("read", [])
    other.call("update", [1])
    with pytest.raises(CallFailed) as caught:
        session.call("update", [1])
    assert caught.value.kind is ErrorClass.SERIALIZATION


def test_the_call_timeout_is_the_servers(sessions):
    session = sessions(0.05, sleep="SELECT pg_sleep($1)", one="SELECT 1")
    with pytest.raises(CallFailed) as caught:
        session.call("sleep", [60])
    assert caught.value.kind is ErrorClass.TIMEOUT
    assert session.call("one", []) == [(1,)]


def test_options_in_the_url_stay_beside_the_timeout(database):
    engine = PostgresEngine(database.spec() + "&options=-c%20work_mem%3D3MB")
    session = engine.session(12)
    session.prepare("ask", "SELECT current_setting('work_mem'), current_setting('statement_timeout')")
    assert session.call("ask", []) == [("3MB", "12s")]
    session.close()


def sleeping(database: PostgresEngine, session: PostgresSession) -> bool:
    return database.query(
        "SELECT wait_event FROM pg_stat_activity WHERE pid = %s AND state = 'active'", [session.server_pid]
    ) == [("PgSleep",)]


def test_a_call_can_be_cancelled_from_another_thread(database, sessions, aside):
    session = sessions(sleep="SELECT pg_sleep(60)", one="SELECT 1")
    call = aside(session.call, "sleep", [])
    eventually(lambda: sleeping(database, session))
    session.cancel()
    error = call.exception()
    assert isinstance(error, CallFailed) and error.kind is ErrorClass.TIMEOUT
    assert session.call("one", []) == [(1,)]


def test_a_commit_that_is_cancelled_while_it_waits_for_a_standby_has_committed(engine: ClusterEngine, aside):
    """So that a call that ends as cancelled has not: its class is no unknown outcome."""

    def waits(session: PostgresSession) -> bool:
        waiting = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
        return engine.query(waiting, [session.server_pid]) == [("SyncRep",)]

    engine.execute("DROP TABLE IF EXISTS awaited")
    engine.execute("CREATE TABLE awaited (n integer)")
    session = engine.session(LONG_S)
    session.prepare("put", "INSERT INTO awaited VALUES ($1) RETURNING n")
    engine.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    engine.execute("SELECT pg_reload_conf()")
    try:
        eventually(lambda: engine.query("SHOW synchronous_standby_names") == [("nobody",)])
        engine.execute("CHECKPOINT")  # commits wait once the checkpointer has read the setting as well
        call = aside(session.call, "put", [7])
        eventually(lambda: waits(session))
        session.cancel()
        assert call.result() == [(7,)]
        session.begin(Isolation.READ_COMMITTED)
        session.call("put", [8])
        call = aside(session.commit)
        eventually(lambda: waits(session))
        session.cancel()
        call.result()
    finally:
        engine.execute("ALTER SYSTEM RESET synchronous_standby_names")
        engine.execute("SELECT pg_reload_conf()")
        session.close()
    assert engine.query("SELECT n FROM awaited ORDER BY n") == [(7,), (8,)]
    engine.execute("DROP TABLE awaited")


COMMITS = pytest.mark.parametrize(
    ("commits", "kind"), [(True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.CONNECTION_LOST)]
)


@COMMITS
@pytest.mark.parametrize("under_way", [True, False], ids=["during a call", "between calls"])
def test_a_session_that_the_server_ends_is_lost(under_way, commits, kind, database, sessions, aside):
    session = sessions(sleep="SELECT pg_sleep(60)")
    if under_way:
        call = aside(lambda: session.call("sleep", [], commits=commits))
        eventually(lambda: sleeping(database, session))
    database.query("SELECT pg_terminate_backend(%s, 60000)", [session.server_pid])
    if not under_way:
        call = aside(lambda: session.call("sleep", [], commits=commits))
    error = call.exception()
    assert isinstance(error, CallFailed) and error.kind is kind
    if under_way:  # else the reset may overtake the server's last message
        assert "administrator command" in error.message
    refuses_further_calls(session)


def test_a_session_that_was_idle_for_too_long_is_lost(database, sessions):
    session = sessions(set="SET idle_session_timeout = '1ms'", one="SELECT 1")
    session.call("set", [])
    eventually(
        lambda: database.query("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [session.server_pid]) == [(0,)]
    )
    with pytest.raises(CallFailed) as caught:  # the reset may overtake the server's last message, but not the kind
        session.call("one", [], commits=False)
    assert caught.value.kind is ErrorClass.CONNECTION_LOST
    refuses_further_calls(session)


def refuses_further_calls(session: PostgresSession) -> None:
    """A broken session says so in the words a virtual user understands, whatever is asked of it."""
    for action in (lambda: session.call("one", []), lambda: session.prepare("two", "SELECT 2")):
        with pytest.raises(CallFailed) as caught:
            action()
        assert caught.value.kind is ErrorClass.CONNECTION_LOST
    session.cancel()
    session.close()
    session.cancel()
    with pytest.raises(CallFailed) as caught:
        session.prepare("two", "SELECT 2")
    assert caught.value.kind is ErrorClass.CONNECTION_LOST


@COMMITS
@pytest.mark.parametrize("victim", ["backend", "postmaster"])
def test_a_server_killed_during_a_call_leaves_its_outcome_unknown(victim, commits, kind, server, aside):
    engine = EmbeddedEngine(server, "postgres")
    session = engine.session(LONG_S)
    session.prepare("sleep", "SELECT pg_sleep(60)")
    call = aside(lambda: session.call("sleep", [], commits=commits))
    eventually(lambda: sleeping(engine, session))
    postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(session.server_pid if victim == "backend" else postmaster, signal.SIGKILL)
    error = call.exception()
    assert isinstance(error, CallFailed) and error.kind is kind
    refuses_further_calls(session)
    if victim == "postmaster":
        eventually(lambda: not server.running)
        server.close()
        server.start()  # which removes the shared memory that the killed one has left
    # PostgreSQL 18 sometimes does not hear a shutdown that is asked for while it recovers.
    eventually(lambda: answers(engine))


def answers(engine: PostgresEngine) -> bool:
    try:
        return engine.query("SELECT 1") == [(1,)]
    except (StallmarkError, CallFailed):
        return False


def test_a_login_that_is_not_answered_holds_nobody_else_up():
    """One that kept the interpreter to itself would end by its own time limit: nobody could close the connection."""
    failures = []

    def log_in() -> None:
        with pytest.raises(CallFailed) as failed:
            PostgresEngine(f"postgresql://nobody@127.0.0.1:{port}/nowhere").session(LONG_S)
        failures.append(failed.value)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        user = threading.Thread(target=log_in)
        user.start()
        accepted, _ = listening.accept()
        accepted.close()
    user.join()
    assert failures[0].kind is ErrorClass.CONNECTION_LOST and "timeout" not in str(failures[0])
