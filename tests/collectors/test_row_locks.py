"""Which tables' rows the users are seen to wait for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.clusters import ClusterEngine
from support.collecting import opened
from support.waiting import eventually

from stallmark.collectors.postgres.waits import RowLocks


@pytest.fixture
def rows(engine: ClusterEngine) -> Iterator[None]:
    engine.execute("CREATE TABLE hot (i int PRIMARY KEY, v int); INSERT INTO hot VALUES (1, 0), (2, 0)")
    engine.execute('CREATE SCHEMA "Odd"; CREATE TABLE "Odd".cold (i int); INSERT INTO "Odd".cold VALUES (1)')
    yield
    engine.execute('DROP TABLE hot; DROP SCHEMA "Odd" CASCADE')


def _until_cancelled(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


@contextmanager
def waiting(engine: ClusterEngine, *statements: str) -> Iterator[None]:
    """A user for each statement, all of whom wait."""
    users = [engine.connect(f"stallmark-user-{number}") for number, _ in enumerate(statements)]
    threads = [threading.Thread(target=_until_cancelled, args=pair) for pair in zip(users, statements, strict=True)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: engine.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(len(users),)])
        yield
    finally:
        for user in users:
            user.cancel()
        for thread in threads:
            thread.join()
        for user in users:
            user.close()


def looked(engine: ClusterEngine) -> dict[str | None, int]:
    """Samples by table, of three looks."""
    with opened(RowLocks(engine)) as collector:
        for tick in range(3):
            assert collector.sample(5 + tick / 10) == []
        found = collector.finish()
        assert {(row["second"], row["polls"]) for row in found} == {(5, 3)}
        return {row["relation"]: row["samples"] for row in found}


def test_every_user_in_the_queue_for_a_row_is_counted_with_its_table(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute('BEGIN; UPDATE hot SET v = 1; SELECT FROM "Odd".cold FOR UPDATE')
        with waiting(
            engine,
            *["UPDATE hot SET v = 2 WHERE i = 1"] * 3,
            "SELECT FROM hot WHERE i = 2 FOR SHARE",
            'DELETE FROM "Odd".cold',
        ):
            assert looked(engine) == {"public.hot": 12, '"Odd".cold': 3}
        holder.rollback()


def test_who_waits_for_a_key_that_another_inserts_waits_for_no_known_row(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute("BEGIN; INSERT INTO hot VALUES (3, 0)")
        with waiting(engine, "INSERT INTO hot VALUES (3, 1)"):
            assert looked(engine) == {"unknown": 3}
        holder.rollback()


def test_who_waits_for_a_whole_table_waits_for_no_row_and_nobody_is_a_row_too(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute("BEGIN; LOCK hot")
        with waiting(engine, "UPDATE hot SET v = 2"):
            assert looked(engine) == {None: 0}
        holder.rollback()


def test_others_than_the_users_are_left_out(engine, rows) -> None:
    with engine.connect("somebody") as holder, engine.connect("somebody else") as other:
        holder.execute("BEGIN; UPDATE hot SET v = 1")
        thread = threading.Thread(target=_until_cancelled, args=(other, "UPDATE hot SET v = 2"))
        thread.start()
        eventually(lambda: engine.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)])
        assert looked(engine) == {None: 0}
        other.cancel()
        thread.join()
        holder.rollback()
