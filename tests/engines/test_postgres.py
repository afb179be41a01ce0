"""PostgreSQL by URL: what can be said of a server, its pool, bulk writes, and who holds it."""

from typing import Any

import pyarrow as pa
import pytest
from support.clusters import Cluster, ClusterEngine

from stallmark.engines import open_engine
from stallmark.engines.abilities import required
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError


def test_identity_and_settings(cluster: Cluster, engine: ClusterEngine):
    identity = engine.identity()
    assert (identity.product, identity.version[0]) == ("PostgreSQL", cluster.major)
    assert str(identity) == f"PostgreSQL {identity.version[0]}.{identity.version[1]}"
    settings = engine.settings().configuration
    assert settings["shared_buffers"] == "4MB" and settings["autovacuum"] == "off"
    assert ("io_method" in settings) == (cluster.major >= 18)
    assert engine.buffer_pool_bytes() == 4 * 1024**2
    assert engine.bytes_used() > 1024**2
    assert engine.free_bytes() is None


def test_another_process_opens_the_engine_from_its_spec(engine: ClusterEngine):
    again = open_engine(engine.spec())
    assert again.query("SELECT current_user::text, current_database()::text") == [("stallmark", "postgres")]
    assert type(again) is PostgresEngine


def test_what_a_url_cannot_do_is_a_sentence(engine: ClusterEngine):
    remote = PostgresEngine(engine.spec())
    for ability in (remote.memory, remote.caches, remote.backup, remote.devices, remote.placement):
        assert not ability and len(str(ability.refusal())) > 30
    assert remote.prefill.refusal() is None
    with pytest.raises(StallmarkError, match="restart"):
        required(remote.memory)
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
