"""The lock of a run on PostgreSQL: who has it is named, and what became of a server with which it went."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.clusters import ClusterEngine
from support.remote import Remote, remote
from support.waiting import eventually

from stallmark.engines.postgres import lock
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.engines.postgres.lock import RUN_LOCK, _difference, _Server, holders
from stallmark.errors import CallFailed, ErrorClass, RunLockTaken, ServerLost, StallmarkError

__all__ = ["remote"]

TAKE = f"SELECT pg_advisory_lock(hashtext('{RUN_LOCK}'))"


@pytest.fixture
def own(remote: Remote) -> Iterator[Remote]:
    """The server, which runs again afterwards."""
    yield remote
    if remote.process is None:
        remote.start()


def test_another_run_is_named_by_its_session(engine: ClusterEngine):
    with engine.hold():
        [holder] = engine.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'stallmark-run'")
        with pytest.raises(RunLockTaken) as caught, engine.hold():
            pass
    said = str(caught.value)
    assert f"Another Stallmark drives {engine.location} by session {holder[0]} (stallmark-run, of stallmark)" in said
    assert f"SELECT pg_terminate_backend({holder[0]})" in said


def test_a_holder_that_is_not_stallmark_is_not_called_one(remote: Remote):
    with psycopg.connect(remote.url(), application_name="psql") as other:
        other.execute(TAKE)
        with pytest.raises(RunLockTaken) as caught, PostgresEngine(remote.url()).hold():
            pass
        pid = other.info.backend_pid
    assert f"is held by session {pid} (psql, of boss, from 127.0.0.1), which is not Stallmark's" in str(caught.value)
    assert "Another Stallmark" not in str(caught.value)


def test_holders_of_other_locks_and_of_other_databases_are_none(remote: Remote):
    engine = PostgresEngine(remote.url())
    with (
        psycopg.connect(remote.url().replace("/work", "/postgres")) as elsewhere,
        psycopg.connect(remote.url()) as here,
    ):
        elsewhere.execute(TAKE)
        here.execute("SELECT pg_advisory_lock(hashtext('another'))")
        assert holders(engine) == []
        with engine.hold():
            assert [one.application for one in holders(engine)] == ["stallmark-run"]


def test_an_unlock_that_answers_false_is_an_error(engine: ClusterEngine, monkeypatch):
    connect, opened = engine.connect, []
    monkeypatch.setattr(engine, "connect", lambda *given: opened.append(connect(*given)) or opened[-1])
    unlock = f"SELECT pg_advisory_unlock(hashtext('{RUN_LOCK}'))"
    with pytest.raises(StallmarkError, match=r"was lost before the end.*do not rely on these figures"), engine.hold():
        opened[0].execute(unlock)
    opened.clear()
    with pytest.raises(ValueError, match="the reason") as caught, engine.hold():
        opened[0].execute(unlock)
        raise ValueError("the reason")
    assert "was lost before the end" in caught.value.__notes__[0]


def test_a_server_that_was_restarted_is_told_from_one_that_is_away(own: Remote):
    engine = PostgresEngine(own.url())
    with engine.hold() as look:
        own.stop()
        own.start()
        with pytest.raises(
            StallmarkError, match=r"The lock on .* is gone \(.*\): the server was restarted, and another"
        ):
            look()
    with engine.hold() as look:
        own.stop()
        with pytest.raises(StallmarkError, match=r"is gone \(.*\): the server is away, and another run may have begun"):
            look()


def test_a_server_that_has_become_read_only_ends_the_run(remote: Remote):
    """As services set it if the disk is full."""
    engine = PostgresEngine(remote.url())
    writable = "-c default_transaction_read_only=off"
    with psycopg.connect(remote.url(), autocommit=True, options=writable) as boss, engine.hold() as look:
        look()
        boss.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        boss.execute("SELECT pg_reload_conf()")
        try:
            said = eventually(lambda: lost(look))
            with pytest.raises(CallFailed) as refused:
                engine.execute("CREATE TABLE never (n integer)")
        finally:
            boss.execute("ALTER SYSTEM RESET default_transaction_read_only")
            boss.execute("SELECT pg_reload_conf()")
        assert refused.value.kind is ErrorClass.CONNECTION_LOST
        assert said == (
            f"127.0.0.1:{remote.port}/work has become read-only (default_transaction_read_only is on), "
            "so this run ends: run again when it can be written."
        )
        eventually(lambda: lost(look) is None)


def lost(look: Callable[[], None]) -> str | None:
    try:
        look()
    except ServerLost as error:
        return str(error)
    return None


@contextmanager
def session_hangs(engine: PostgresEngine) -> Iterator[None]:
    """Stop the session that has the lock, as a network that drops every packet does for us."""
    [(pid,)] = engine.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'stallmark-run'")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_server_that_hangs_is_not_waited_for(remote: Remote, monkeypatch):
    monkeypatch.setattr(lock, "ANSWERS_WITHIN_S", 0.1)
    engine = PostgresEngine(remote.url())
    with engine.hold() as look:
        with session_hangs(engine):
            look()
            look()
        monkeypatch.setattr(lock, "ANSWERS_WITHIN_S", 60)
        look()
        look()
        engine.query(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'stallmark-run'"
        )
        with pytest.raises(StallmarkError, match="somebody ended our session"):
            look()


def test_a_run_ends_though_the_server_hangs(remote: Remote, monkeypatch):
    monkeypatch.setattr(lock, "ANSWERS_WITHIN_S", 0.1)
    engine = PostgresEngine(remote.url())
    held = engine.hold()
    look = held.__enter__()
    with session_hangs(engine):
        look()
        held.__exit__(None, None, None)


BEFORE = _Server(1000.0, False, "10.0.0.5:5432", "00000001")


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (BEFORE, "ended our session, a process of the server crashed, or the network was interrupted"),
        (BEFORE._replace(started=2000.0), "the server was restarted"),
        (BEFORE._replace(started=900.0, timeline="00000002"), "a server that was a standby until then"),
        (BEFORE._replace(started=900.0, timeline=None), "the server was restarted"),
        (BEFORE._replace(started=900.0, is_standby=True, timeline=None), "to a standby since, as after a failover"),
        (BEFORE._replace(address="10.0.0.6:5432"), "led to 10.0.0.5:5432 and leads to 10.0.0.6:5432 since"),
    ],
)
def test_what_became_of_a_server(now, says):
    assert says in _difference(BEFORE, now)


# Aurora


@pytest.fixture
def aurora(database: EmbeddedEngine) -> PostgresEngine:
    """A server that refuses the functions of the log and of standbys, as Aurora does."""
    database.execute("CREATE SCHEMA aurora")
    refused = {"pg_current_wal_lsn": ("pg_lsn", "55000"), "pg_stat_get_wal_receiver": ("record", "0A000")}
    for function, (kind, code) in refused.items():
        database.execute(
            f"CREATE FUNCTION aurora.{function}() RETURNS {kind} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
            f"'Function {function}() is currently not supported for Aurora' USING ERRCODE = '{code}'; END $$"
        )
    database.execute(
        "CREATE VIEW aurora.pg_stat_wal_receiver AS SELECT s.sender_host, s.sender_port "
        "FROM aurora.pg_stat_get_wal_receiver() AS s (sender_host text, sender_port integer)"
    )
    return PostgresEngine(f"{database.spec()}&options=-c%20search_path%3Daurora%2Cpg_catalog")


def test_a_server_that_refuses_functions_of_its_log_is_driven(aurora: PostgresEngine):
    for statement in ("SELECT pg_current_wal_lsn()", "SELECT * FROM pg_stat_wal_receiver"):
        with pytest.raises(CallFailed, match="not supported for Aurora"):
            aurora.query(statement)
    with aurora.hold() as look:
        look()
    assert aurora.not_writable_reason(["bank"]) is None
    assert not [one for one in aurora.examine() if one.state != "ok"]


def test_a_server_that_has_become_a_standby_ends_the_run(aurora: PostgresEngine):
    with aurora.hold() as look:
        look()
        aurora.execute("CREATE FUNCTION aurora.pg_is_in_recovery() RETURNS boolean RETURN true")
        assert "has become read-only (it is a standby now), so this run ends" in (lost(look) or "")


def test_a_standby_whose_primary_is_not_told_is_one(aurora: PostgresEngine):
    aurora.execute("CREATE FUNCTION aurora.pg_is_in_recovery() RETURNS boolean RETURN true")
    assert (aurora.not_writable_reason(["bank"]) or "").endswith("is a standby, which only reads: name its primary.")
    with aurora.hold():
        pass
