"""PostgreSQL's sessions: values, answers, and that each call is a transaction of its own."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedded_servers import LONG_S

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.engines.postgres.session import PostgresSession
from stallmark.errors import CallFailed, ErrorClass


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("smallint", -32768), ("integer", 2**31 - 1), ("bigint", -(2**63)),
        ("real", 1.5), ("double precision", 0.1), ("boolean", True), ("boolean", False),
        ("text", ""), ("text", "naïve – 数 '\"\\"), ("varchar(5)", "abc"),
        ("integer", None), ("text", None), ("boolean", None),
    ],
)  # fmt: skip
def test_values_come_back_as_they_went(type_name, value, sessions):
    session = sessions(echo=f"SELECT $1::{type_name}")
    [(back,)] = session.call("echo", [value])
    assert back == value and type(back) is type(value)


@given(row=st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_every_integer_and_every_text_round_trips(row, embedded_server):
    session = _kept(embedded_server)
    assert session.call("echo", row) == [row]


_open: dict[int, PostgresSession] = {}


def _kept(server: EmbeddedServer) -> PostgresSession:
    if id(server) not in _open:
        session = _open[id(server)] = EmbeddedEngine(server, "echo").session(LONG_S)
        session.prepare("echo", "SELECT $1::bigint, $2::text")
    return _open[id(server)]


def test_rows_columns_and_nothing(sessions):
    session = sessions(
        rows="SELECT i, i % 2 = 0, NULL, i::text FROM generate_series(1, $1) i",
        none="SELECT 1 WHERE false",
        does="SET work_mem = '1MB'",
    )
    expected = [(i, i % 2 == 0, None, str(i)) for i in range(1, 4)]
    assert session.call("rows", [3]) == expected
    assert session.call("rows", [3]) == expected
    assert session.call("rows", [0]) == []
    assert session.call("none", []) == session.call("does", []) == []


def test_an_answer_is_read_like_a_list(sessions):
    found = sessions(rows="SELECT i, i::text FROM generate_series(1, 4) i").call("rows", [])
    expected = [(i, str(i)) for i in range(1, 5)]
    assert (len(found), bool(found), list(found), list(reversed(found))) == (4, True, expected, expected[::-1])
    for index in (0, 3, -1, -4, slice(1, 3), slice(None, None, -2)):
        assert found[index] == expected[index]
    for index in (4, -5):
        with pytest.raises(IndexError):
            found[index]
    one, *rest = found
    assert (one, rest) == (expected[0], expected[1:])
    assert found != expected[:3]


@pytest.mark.parametrize("error", [None, "division"])
def test_a_call_is_a_transaction_of_its_own(error, database, sessions):
    database.execute("CREATE TABLE t (i integer)")
    session = sessions(put="INSERT INTO t SELECT 1 / $1::integer")
    if error:
        with pytest.raises(CallFailed) as caught:
            session.call("put", [0])
        assert (caught.value.kind, caught.value.code) == (ErrorClass.OTHER, "22012")
        assert "division by zero" in caught.value.message
    else:
        assert session.call("put", [1]) == []
    assert database.query("SELECT count(*) FROM t") == [(0 if error else 1,)]


def test_a_statement_that_cannot_be_parsed_is_a_failed_call(sessions):
    with pytest.raises(CallFailed, match="no_such_table"):
        sessions(bad="SELECT * FROM no_such_table")


def test_the_session_is_known_to_the_collectors(database, sessions):
    session = sessions()
    other = database.session(LONG_S, "stallmark-user-mail")
    asked = "SELECT application_name FROM pg_stat_activity WHERE pid = %s"
    assert database.query(asked, [session.server_pid]) == [("stallmark-user",)]
    assert database.query(asked, [other.server_pid]) == [("stallmark-user-mail",)]
    other.close()


def test_text_is_unicode_whatever_the_database_is_encoded_in(embedded_server):
    admin = EmbeddedEngine(embedded_server, "postgres")
    admin.execute("DROP DATABASE IF EXISTS latin")
    admin.execute("CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0")
    session = EmbeddedEngine(embedded_server, "latin").session(LONG_S)
    session.prepare("echo", "SELECT $1::text || chr(233)")
    assert session.call("echo", ["é"]) == [("éé",)]
    session.close()


def test_threads_have_sessions_of_their_own(sessions):
    """The interpreter's lock is free during a call: two sleeping sessions wait for each other."""
    meet = "SELECT pg_advisory_lock($1)"
    one, other = sessions(lock=meet, free="SELECT pg_advisory_unlock($1)"), sessions(lock=meet)
    one.call("lock", [1])
    thread = threading.Thread(target=other.call, args=("lock", [1]))
    thread.start()
    assert one.call("free", [1]) == [(True,)]
    thread.join(60)
    assert not thread.is_alive()
