"""The counts of a profile, on versions of PostgreSQL that count differently."""

from collections.abc import Iterator

import psycopg
import pytest
from support.clusters import Cluster

from stallmark.profile.postgres import statement

pytestmark = pytest.mark.server
COMMITS, QUERIES, WORKERS = 300, 20, 2


@pytest.fixture
def session(cluster: Cluster) -> Iterator[psycopg.Connection]:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE sold AS SELECT i AS id, 0 AS price FROM generate_series(1, 1000) i")
        connection.execute("ANALYZE sold")
        yield connection
        connection.execute("DROP TABLE sold")


def counts(session: psycopg.Connection, major: int, name: str) -> dict[str, tuple]:
    """Return the rows of a query of the profile, by their first column."""
    session.execute("SELECT pg_stat_force_next_flush()")
    return {row[0]: row for row in session.execute(statement(name, major))}


def test_bytes_of_the_log_are_those_written(cluster: Cluster, session: psycopg.Connection):
    """A commit of one row writes a page, whatever the length of its records. 18 counts what is written itself."""
    # A new segment is filled with zeros, and the first change of a page after a checkpoint is logged as a page.
    session.execute("SELECT pg_switch_wal()")
    session.execute("UPDATE sold SET price = 1")
    before = counts(session, cluster.major, "files")["log"]
    for number in range(COMMITS):
        session.execute("UPDATE sold SET price = 2 WHERE id = %s", [number])
    after = counts(session, cluster.major, "files")["log"]
    write_bytes = after[6] - before[6]
    assert write_bytes / COMMITS == pytest.approx(8192, rel=0.1)
    assert write_bytes / (after[5] - before[5]) == pytest.approx(8192, rel=0.1)


def test_each_parallel_worker_is_two_transactions(cluster: Cluster, session: psycopg.Connection):
    for name, value in (("max_parallel_workers_per_gather", WORKERS), ("parallel_setup_cost", 0)):
        session.execute(f"SET {name} = {value}")
    session.execute("SET min_parallel_table_scan_size = 0")
    session.execute("SET parallel_tuple_cost = 0")

    def both() -> dict[str, int]:
        rows = counts(session, cluster.major, "databases") | counts(session, cluster.major, "counters")
        return {name: row[2] for name, row in rows.items()}

    before = both()
    for _ in range(QUERIES):
        session.execute("SELECT sum(price) FROM sold")
    rises = {name: value - before[name] for name, value in both().items()}
    workers = rises.get("parallel_workers", QUERIES * WORKERS)
    assert workers == QUERIES * WORKERS
    assert rises["transactions"] - 2 * workers == pytest.approx(QUERIES, abs=8)
