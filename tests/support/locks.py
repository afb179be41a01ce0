"""Sessions of others whose locks keep ours waiting."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg

from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.schema.deploy import SAY_AFTER_S
from support.waiting import eventually


@contextmanager
def in_the_way(database: PostgresEngine, statement: str) -> Iterator[int]:
    """A session of psql in a transaction with a statement, until it has kept one of ours from a lock for some seconds;
    yields its number."""
    with psycopg.connect(database.spec(), application_name="psql") as other, ThreadPoolExecutor() as pool:

        def let_go() -> None:
            eventually(database.blockers, "a session that is kept from a lock")
            time.sleep(2 * SAY_AFTER_S)
            other.rollback()

        other.execute(statement)
        released = pool.submit(let_go)
        yield other.info.backend_pid
        released.result()
