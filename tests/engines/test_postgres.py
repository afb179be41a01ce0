"""PostgreSQL by URL: what can be said of a server, its pool, bulk writes, and who holds it."""

import logging
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import Cluster, ClusterEngine
from support.embedded_servers import LONG_S
from support.remote import free_port

from stallmark.engines import open_engine
from stallmark.engines.abilities import required
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.engines.postgres.session import PostgresSession
from stallmark.errors import CallFailed, ErrorClass, StallmarkError


def test_identity_and_settings(cluster: Cluster, engine: ClusterEngine):
    identity = engine.identity()
    assert (identity.product, identity.version[0]) == ("PostgreSQL", cluster.major)
    assert str(identity) == f"PostgreSQL {identity.version[0]}.{identity.version[1]}"
    settings = engine.settings().configuration
    assert settings["shared_buffers"] == "4MB" and settings["autovacuum"] == "off"
    assert ("io_method" in settings) == (cluster.major >= 18)
    assert settings["plan_cache_mode"] == "auto"
    # first reads after a load write WAL with either
    assert (settings["data_checksums"], settings["wal_log_hints"]) == ("on" if cluster.major >= 18 else "off", "off")
    assert engine.buffer_pool_bytes() == 4 * 1024**2
    assert engine.bytes_used() > 1024**2
    assert engine.free_bytes() is None


def test_another_process_opens_the_engine_from_its_spec(engine: ClusterEngine):
    again = open_engine(engine.spec())
    assert again.query("SELECT current_user::text, current_database()::text") == [("stallmark", "postgres")]
    assert type(again) is PostgresEngine


def test_what_a_url_cannot_do_is_a_sentence(engine: ClusterEngine):
    remote = PostgresEngine(engine.spec())
    for ability in (remote.backup, remote.devices, remote.placement):
        assert not ability and len(str(ability.refusal())) > 30
    for restarted in (remote.memory, remote.caches):
        assert "restart" in str(restarted.refusal())
    assert remote.prefill.refusal() is None
    with pytest.raises(StallmarkError, match="files of a server reached by URL"):
        required(remote.backup)
    with pytest.raises(StallmarkError, match="embedded"):
        remote.devices.use({"data": object()})
    remote.devices.use(None)


def test_too_old_a_server_is_refused_with_the_reason(monkeypatch):
    engine = PostgresEngine("postgresql://stallmark:hidden@db.example/x")
    monkeypatch.setattr(engine, "query", lambda sql: [(150_004, "15.4")])
    with pytest.raises(StallmarkError, match=r"db.example:5432/x runs PostgreSQL 15.4; Stallmark needs 16") as caught:
        engine.identity()
    assert "hidden" not in str(caught.value)


def test_a_checkpoint_is_asked_for_or_the_missing_right_is_named(engine: ClusterEngine, cluster: Cluster):
    engine.checkpoint()
    engine.execute("CREATE ROLE limited LOGIN")
    try:
        with pytest.raises(StallmarkError, match="GRANT pg_checkpoint TO limited"):
            PostgresEngine(cluster.url("limited")).checkpoint()
    finally:
        engine.execute("DROP ROLE limited")


def plan_of(engine: PostgresEngine, *sql: str) -> dict[str, Any]:
    """How the last of the statements was executed, with the blocks it read from outside the pool."""
    with engine.cursor() as cursor:
        for setting in sql[:-1]:
            cursor.execute(setting)
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql[-1]}")
        [(plan,)] = cursor.fetchall()
    return plan[0]["Plan"]


def test_prefilling_leaves_tables_and_indexes_in_the_pool(cluster: Cluster, engine: ClusterEngine):
    engine.execute("CREATE SCHEMA warm")
    try:
        engine.execute("CREATE TABLE warm.t AS SELECT i, repeat('x', 90) AS filler FROM generate_series(1, 12000) i")
        engine.execute("ALTER TABLE warm.t ADD PRIMARY KEY (i)")
        engine.execute("VACUUM (FREEZE, ANALYZE) warm.t")
        engine.checkpoint()
        cluster.restart()
        size = engine.query("SELECT pg_relation_size('warm.t') + pg_relation_size('warm.t_pkey')")[0][0]
        assert engine.prefill.fill("warm") == size < engine.buffer_pool_bytes()
        table = plan_of(engine, "SELECT sum(length(filler)) FROM warm.t")
        index = plan_of(engine, "SET enable_seqscan = off", "SELECT count(*) FROM warm.t WHERE i > 0")
        assert table["Shared Read Blocks"] == index["Shared Read Blocks"] == 0
        assert index["Plans"][0]["Index Name"] == "t_pkey"
    finally:
        engine.execute("DROP SCHEMA warm CASCADE")


def test_prefilling_stops_when_the_pool_is_full(cluster: Cluster, engine: ClusterEngine):
    engine.execute("CREATE SCHEMA warm")
    try:
        engine.execute("CREATE TABLE warm.t AS SELECT i, repeat('x', 900) AS f FROM generate_series(1, 9000) i")
        engine.execute("ANALYZE warm.t")
        assert engine.prefill.fill("warm") == engine.buffer_pool_bytes()
    finally:
        engine.execute("DROP SCHEMA warm CASCADE")


def test_bulk_writes_are_there_when_committed_and_not_before(database):
    database.execute("CREATE SCHEMA s; CREATE TABLE s.t (i bigint)")
    rows = pa.table({"i": list(range(1000))})
    with database.bulk_writer() as writer:
        writer.write("s.t", rows)
        writer.execute("INSERT INTO s.t VALUES (-1)")
    assert database.query("SELECT count(*) FROM s.t") == [(0,)]
    with database.bulk_writer() as writer:
        writer.write("s.t", rows)
        writer.execute("INSERT INTO s.t VALUES (-1)")
        writer.commit()
    assert database.query("SELECT count(*), min(i) FROM s.t") == [(1001, -1)]
    with pytest.raises(CallFailed) as caught, database.bulk_writer() as writer:
        writer.execute("SELECT 1 / 0")
    assert (caught.value.kind, caught.value.code) == (ErrorClass.OTHER, "22012")


def test_only_one_run_at_a_time_holds_a_database(engine: ClusterEngine):
    with engine.hold(), pytest.raises(StallmarkError, match="Another Stallmark drives"), engine.hold():
        pass
    with engine.hold() as look:
        look()


def test_a_lock_whose_session_was_ended_is_said(database: EmbeddedEngine):
    end = (
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        " WHERE application_name = 'stallmark-run' AND datname = current_database()"
    )
    with PostgresEngine(database.spec()).hold() as look:
        look()
        assert database.query(end) == [(True,)]
        with pytest.raises(StallmarkError, match=r"The lock on .* is gone.*another run may have begun"):
            look()


def test_schemas_in_use_are_of_users_and_not_of_extensions(database: EmbeddedEngine):
    database.execute("CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA empty")
    assert database.schemas_in_use() == {}
    database.execute("CREATE FUNCTION a.f() RETURNS integer RETURN 1")
    database.execute("CREATE TABLE public.t (n integer PRIMARY KEY)")
    database.execute("CREATE FUNCTION b.brought_along() RETURNS integer RETURN 1")
    database.execute("ALTER EXTENSION plpgsql ADD FUNCTION b.brought_along()")
    assert database.schemas_in_use() == {"a": ["f"], "public": ["t"]}


def test_the_indexes_of_a_table_are_rebuilt_beside_users(database):
    database.execute("CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY); INSERT INTO s.t VALUES (1)")
    before = database.query("SELECT relfilenode FROM pg_class WHERE relname = 't_pkey'")
    work = database.maintenance["rebuild"].open("s.t")
    work.execute()
    work.close()
    assert database.query("SELECT relfilenode FROM pg_class WHERE relname = 't_pkey'") != before
    assert "no statement" in database.maintenance["backup"].refusal()


# PostgreSQL servers that are not there, URLs that are none, and the password, which nothing says


SECRET = "pa55-w0rd"


def everything_said(action: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((StallmarkError, CallFailed)) as caught:
        action()
    said = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert len(str(caught.value).splitlines()) == 1
    return said.replace(repr(action), "")


def no_server_url() -> str:
    return f"postgresql://me:{SECRET}@127.0.0.1:1/db"


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.connect(),
        lambda engine: engine.session(1.0),
        lambda engine: engine.bulk_writer().__enter__(),
        lambda engine: engine.identity(),
    ],
    ids=["connect", "session", "bulk", "identity"],
)
def test_a_closed_port_is_named_and_the_password_is_not(ask, caplog):
    engine = PostgresEngine(no_server_url())
    said = everything_said(lambda: ask(engine), caplog)
    assert "127.0.0.1" in said and "refused" in said.lower()
    assert SECRET not in said


def test_a_wrong_password_is_not_repeated(make_server, caplog):
    server = make_server(port=free_port())
    server.start()
    engine = PostgresEngine(f"postgresql://stallmark:{SECRET}@127.0.0.1:{server.port}/postgres")
    for ask in (engine.connect, lambda: engine.session(1.0)):
        said = everything_said(ask, caplog)
        assert "password authentication failed" in said and SECRET not in said


def test_an_engine_shows_where_it_is_and_no_password():
    engine = PostgresEngine(no_server_url())
    assert engine.location == "127.0.0.1:1/db"
    assert SECRET not in repr(engine) + str(engine)
    assert SECRET in str(engine.spec())  # the one place it may be: a pipe to a process of ours


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:{SECRET}/more@host/db",
        f"postgresql://me:{SECRET} more@host/db",
        f"postgresql://me:{SECRET}@host:{SECRET}/db",
        f"postgresql://me@host/db?pass={SECRET}",
        "not a url",
    ],
)
def test_an_unreadable_url_is_refused_without_repeating_it(url, caplog):
    said = everything_said(lambda: PostgresEngine(url), caplog)
    assert "postgresql://user@host:5432/database" in said
    assert SECRET not in said


def test_the_url_of_sqlalchemy_is_understood():
    engine = PostgresEngine("postgresql+psycopg://me@host:5433,other:5434/db")
    assert engine.location == "host,other:5433,5434/db"


# PostgreSQL's sessions: values, answers, and that each call is a transaction of its own


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
