"""Two databases of one PostgreSQL, both ours: seen together, told apart by name, and nobody else's."""

import threading
from collections.abc import Iterator
from functools import cached_property

import psycopg
import pyarrow as pa
import pytest
from support.clusters import Cluster, ClusterEngine, one
from support.collecting import opened, read
from support.waiting import eventually

from stallmark.collectors import collectors_for
from stallmark.collectors.postgres.counters import Database, LoadIO, Relations, RowLocks, UserWaits
from stallmark.engines.postgres.engine import OF_EACH_DATABASE, PostgresEngine
from stallmark.errors import StallmarkError

NAMES = ("first", "it's second")


class Two(ClusterEngine):
    """The engine is in a database of nobody's, as that of a scenario with several databases may be."""

    names = NAMES

    def databases(self) -> tuple[PostgresEngine, ...]:
        return self._databases

    @cached_property
    def _databases(self) -> tuple[PostgresEngine, ...]:
        return tuple(PostgresEngine(psycopg.conninfo.make_conninfo(self.spec(), dbname=name)) for name in self.names)


@pytest.fixture(scope="module")
def two(cluster: Cluster) -> Iterator[Two]:
    """The second is a copy of the first: their tables have the same numbers."""
    engine = Two(cluster)
    engine.execute('CREATE DATABASE "first"')
    first, second = engine.databases()
    first.execute(
        "CREATE TABLE hot (i int PRIMARY KEY, v int); INSERT INTO hot SELECT i, 0 FROM generate_series(1, 9) i"
    )
    engine.execute('CREATE DATABASE "it\'s second" TEMPLATE "first"')
    second.execute("ALTER TABLE hot RENAME TO hotter")
    yield engine
    for name in NAMES:
        engine.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def users(two: Two) -> Iterator[list[psycopg.Connection]]:
    """One in each of our databases, and one in that of nobody."""
    connections = [engine.connect("stallmark-user") for engine in (*two.databases(), two)]
    yield connections
    for connection in connections:
        connection.close()


def test_all_can_be_measured_and_have_the_columns_they_declare(two: Two, users) -> None:
    for collector in collectors_for(two):
        if collector.unavailable():
            continue
        with opened(collector):
            rows = [*collector.sample(0.0), *collector.finish()]
        for row in rows:
            assert list(row) == collector.columns.names
        assert pa.RecordBatch.from_pylist(rows, schema=collector.columns).to_pylist() == rows


def test_both_are_ours_and_no_other_is(two: Two) -> None:
    own = {row["database"]: row["own"] for row in read(Database(two))}
    assert {name for name, ours in own.items() if ours} == set(NAMES)
    assert own["postgres"] is False and own["(shared by all)"] is False


def test_tables_bear_the_name_of_their_database(two: Two) -> None:
    first, _ = two.databases()
    with opened(Relations(two)) as relations:
        before = relations.sample(0.0)
        with first.connect() as user:
            user.execute("SELECT count(*) FROM hot")
            user.execute("SELECT pg_stat_force_next_flush()")
        after = relations.sample(5.0)
    read = {row["relation"]: row["heap_reads"] + row["heap_hits"] for row in after}
    assert read.keys() == {"first.public.hot", "it's second.public.hotter"}
    for row in before:
        read[row["relation"]] -= row["heap_reads"] + row["heap_hits"]
    assert read["first.public.hot"] >= 1 and read["it's second.public.hotter"] == 0
    assert len({row["epoch"] for row in after}) == 2  # though both have the same number


def test_one_alone_bears_no_name(two: Two) -> None:
    alone = Two(two.cluster)
    alone.names = NAMES[:1]
    [relations] = [collector for collector in collectors_for(alone) if collector.name == "relations"]
    assert [row["relation"] for row in read(relations)] == ["public.hot"]


def test_connections_are_left_for_the_collectors_of_each(two: Two) -> None:
    assert two.most_users() == two.databases()[0].most_users() - OF_EACH_DATABASE


def test_users_of_both_are_seen_and_those_of_others_are_not(two: Two, users) -> None:
    with opened(UserWaits(two)) as waits:
        waits.sample(5.0)
        assert sum(row["samples"] for row in waits.finish()) == 2


def test_the_reads_of_a_load_are_those_in_both(two: Two, users, cluster: Cluster) -> None:
    collector = LoadIO(two)
    if collector.unavailable():
        assert cluster.major < 18
        return
    [row] = read(collector)
    assert row["sessions"] == 2


def test_waits_for_rows_name_the_tables_of_either(two: Two, users) -> None:
    """Though both have the same number, and the server knows of the tables of one database at a time."""
    holders = [engine.connect("stallmark-user") for engine in two.databases()]
    waiting = []
    for holder, user, table in zip(holders, users, ("hot", "hotter"), strict=False):
        holder.execute(f"BEGIN; UPDATE {table} SET v = 1 WHERE i = 1")
        statement = f"UPDATE {table} SET v = 2 WHERE i = 1"
        waiting.append(threading.Thread(target=_until_cancelled, args=(user, statement)))
        waiting[-1].start()
    try:
        eventually(lambda: two.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(2,)])
        with opened(RowLocks(two)) as locks:
            locks.sample(5.0)
            locks.sample(5.2)
            found = {row["relation"]: row["samples"] for row in locks.finish()}
        assert found == {"first.public.hot": 2, "it's second.public.hotter": 2}
    finally:
        for user in users[:2]:
            user.cancel()
        for thread in waiting:
            thread.join()
        for holder in holders:
            holder.close()


def _until_cancelled(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


def test_one_that_is_gone_is_named(two: Two) -> None:
    gone = Two(two.cluster)
    gone.names = ("first", "third")
    two.execute("CREATE DATABASE third")
    with opened(Relations(gone)) as relations:
        assert one(relations.sample(0.0), relation="first.public.hot")
        two.execute("DROP DATABASE third WITH (FORCE)")
        with pytest.raises(StallmarkError, match="third: the connection to the server was lost"):
            relations.sample(5.0)
        with pytest.raises(StallmarkError, match='database "third" does not exist'):
            relations.open()
    own = {row["database"]: row["own"] for row in read(Database(gone))}
    assert own["first"] is True and "third" not in own


def test_a_right_that_is_missing_in_one_is_said_of_it(two: Two) -> None:
    _, second = two.databases()
    two.execute("CREATE ROLE limited LOGIN")
    second.execute("REVOKE SELECT ON pg_statio_user_tables FROM PUBLIC")
    try:
        engine = Two(two.cluster, "limited")
        assert str(Relations(engine).unavailable()).startswith("In it's second: The role limited may not see this")
    finally:
        second.execute("GRANT SELECT ON pg_statio_user_tables TO PUBLIC")
        two.execute("DROP ROLE limited")
