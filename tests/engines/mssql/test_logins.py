"""Connections that are used again: which are, which are not, and in which state."""

import signal
from collections import Counter
from contextlib import contextmanager

import pytest
from support.mssql_server import rows
from support.tds.answers import Count, Cut, Error, Hold
from support.waiting import eventually

from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema import deploy

pytestmark = pytest.mark.thorough

ASK = "SELECT anything"
STATE = "@@LOCK_TIMEOUT"


@pytest.fixture(autouse=True)
def answers(script):
    script.sql("^SELECT anything", rows(["one"], [1]))


class State:
    """The answers about a session's state, asked before and after each use: the `usual` one but where said."""

    usual = (5, 5496, -1)

    def __init__(self, script):
        self.asked, self.otherwise = 0, {}
        script.sql(STATE, self._answer)

    def _answer(self, _):
        self.asked += 1
        return self.otherwise.get(self.asked) or [rows(["database", "options", "timeout"], self.usual)]


def asked(server, text: str = ASK) -> list[int]:
    """Return which connections a statement came through."""
    return [request.connection for request in server.requests if request.text == text]


def test_statements_share_a_connection(engine, server):
    with engine.few_logins():
        assert [engine.query(ASK) for _ in range(20)] == [[(1,)]] * 20
        assert len(server.logins) == 1
        with engine.cursor() as cursor:
            cursor.execute(ASK)
            assert engine.query(ASK) == [(1,)], "beside one that is in use"
        engine.query(ASK)
        assert len(server.logins) == 2
    eventually(lambda: server.open_connections == 0)
    engine.query(ASK)
    assert len(server.logins) == 3
    eventually(lambda: server.open_connections == 0)


def test_the_databases_of_a_server_share_them_too(engine, server):
    with engine.few_logins():
        for _ in range(3):
            engine.query(ASK)
            with engine.on_database("master").few_logins():
                engine.on_database("master").query(ASK)
    assert Counter(login.database for login in server.logins) == {"bank": 1, "master": 1}
    eventually(lambda: server.open_connections == 0)


def test_an_error_ends_no_session(engine, server):
    with engine.few_logins():
        for _ in range(3):
            with pytest.raises(CallFailed, match="no answer to"):
                engine.query("SELECT nothing_that_is_known")
            assert engine.query(ASK) == [(1,)]
    assert len(server.logins) == 1


def test_rows_that_nobody_fetched_do_not_keep_it_busy(engine, script, server):
    script.sql("many", rows(["number"], *([number] for number in range(100_000))))
    with engine.few_logins():
        with engine.cursor() as cursor:
            cursor.execute("SELECT many").fetchone()
        assert engine.query(ASK) == [(1,)]
    assert len(server.logins) == 1


def test_a_session_that_was_lost_while_idle_is_replaced(engine, server):
    with engine.few_logins():
        engine.query(ASK)
        master = engine.on_database("master")
        master.query(ASK)
        server.cut_all()
        assert engine.query(ASK) == [(1,)] and master.query(ASK) == [(1,)]
    assert asked(server) == [1, 2, 3, 4]


def test_a_statement_that_began_is_not_repeated(engine, script, server):
    script.sql("INSERT", Cut())
    with engine.few_logins():
        engine.query(ASK)
        with pytest.raises(CallFailed) as lost:
            engine.execute("INSERT once")
        assert lost.value.kind is ErrorClass.CONNECTION_LOST
        assert engine.query(ASK) == [(1,)]
    assert asked(server, "INSERT once") == [1] and asked(server) == [1, 2]


def test_a_session_that_does_not_answer_is_given_up(engine, script, server, monkeypatch):
    monkeypatch.setattr("stallmark.engines.mssql.server.LOGIN_TIMEOUT_S", 2)
    state, hold = State(script), Hold()
    state.otherwise[3] = [hold]  # of the second use
    with engine.few_logins():
        engine.query(ASK)
        assert engine.query(ASK) == [(1,)]
    hold.release()
    assert asked(server) == [1, 2]


def test_an_open_transaction_is_rolled_back_before_anybody_else_comes(engine, server):
    with engine.few_logins():
        engine.execute("BEGIN TRAN")
        after = server.requests[-1]
        assert after.connection == 1 and "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION" in after.text
        engine.query(ASK)
    assert asked(server) == [1]


def test_a_transaction_that_cannot_be_rolled_back_ends_with_its_session(engine, script, server):
    state = State(script)
    state.otherwise[2] = [Error(3314, "The log is not available.", severity=17)]
    with engine.few_logins():
        engine.execute("BEGIN TRAN")
        eventually(lambda: server.open_connections == 0)
        engine.query(ASK)
    assert asked(server) == [2]


@pytest.mark.parametrize("left", [(1, 5496, -1), (5, 5432, -1), (5, 5496, 5000)])
def test_a_session_that_is_in_another_state_is_not_used_again(engine, script, server, left):
    """Another database, as after USE; other options, as after SET; another lock timeout."""
    state = State(script)
    state.otherwise[2] = [rows(["database", "options", "timeout"], left)]
    with engine.few_logins():
        engine.query(ASK)
        eventually(lambda: server.open_connections == 0)
        engine.query(ASK)
    assert asked(server) == [1, 2]


def test_a_server_that_does_not_tell_the_state_gets_a_login_each(engine, script, server):
    script.sql(STATE, Error(102, "Incorrect syntax near 'OPTIONS'."))
    with engine.few_logins():
        assert [engine.query(ASK) for _ in range(2)] == [[(1,)]] * 2
    assert len(server.logins) == 2


def test_a_session_that_was_broken_off_is_not_used_again(engine, server):
    with engine.few_logins():
        with pytest.raises(KeyboardInterrupt), engine.cursor() as cursor:
            cursor.execute(ASK)
            signal.raise_signal(signal.SIGINT)
        engine.query(ASK)
    assert asked(server) == [1, 2]


def test_a_session_as_of_a_user_is_always_new(engine, server):
    """Resource Governor sorts it when it logs in, and a variant may have changed that meanwhile."""
    with engine.few_logins():
        for _ in range(2):
            with engine.cursor("stallmark-user") as cursor:
                cursor.execute(ASK)
    assert Counter(login.application for login in server.logins) == {"stallmark-user": 2}


def test_the_lock_of_a_build_ends_with_its_session(engine, script, server):
    script.sql("sp_getapplock", Count(0))
    with engine.few_logins():
        with deploy.exclusive(engine, lambda: None):
            engine.query(ASK)
        eventually(lambda: server.open_connections == 1)
        engine.query(ASK)
    assert asked(server) == [2, 2]


@contextmanager
def idle_in(engine, *databases):
    with engine.few_logins():
        for name in databases:
            engine.on_database(name).query(ASK)
        yield


def test_row_versioning_is_set_while_no_session_of_ours_is_in_the_database(engine, script, server):
    there = []

    def change(_):
        there.append(server.open_connections)
        return [Count(0)]

    script.sql("is_read_committed_snapshot_on", lambda _: [rows(["name", "is_on"], ["bank", bool(there)])])
    script.sql("^ALTER DATABASE", change)
    with idle_in(engine, "bank", "master"):
        with engine.cursor() as cursor:
            cursor.execute(ASK)
            engine.query(ASK)  # so that two are idle
        engine.variant_settings["row_versioning"].make(True)
        assert there == [1]
        engine.query(ASK)
        engine.variant_settings["row_versioning"].give_back()


def test_a_database_goes_offline_while_no_session_of_ours_is_in_it(engine, script, server):
    there = []

    def change(_):
        there.append(server.open_connections)
        return [Count(0)]

    script.sql("state_desc, user_access_desc", rows(["state", "access", "closes"], ["ONLINE", "MULTI_USER", 0]))
    script.sql("^ALTER DATABASE|^RESTORE", change)
    with idle_in(engine, "bank"):
        engine.backup.restore()
        assert there == [1, 1]
