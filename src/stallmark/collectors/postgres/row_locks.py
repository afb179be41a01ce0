"""Which tables' rows the virtual users wait for, seen by looking at their locks ten times a second."""

from collections import Counter

from stallmark.collectors.base import Row
from stallmark.collectors.polled import Polled, polled_columns
from stallmark.collectors.postgres.connection import CollectorConnection
from stallmark.collectors.postgres.counters import PostgresCollector
from stallmark.engines.base import Engine


class RowLocks(PostgresCollector):
    name = "row_locks"
    title = "Waits for rows"
    help = (
        "How many users waited for a row that another transaction had changed or locked, by table, seen at a random "
        "instant of every tenth of a second and counted per second (pg_locks). Samples / polls is a mean number of "
        "users. The table is unknown of who waits for a key being inserted or for a newer version of his row. Looks at "
        "which nobody waited are a row without a table."
    )
    interval_s = 0.1
    polling = True
    columns = polled_columns("relation")  # "brokerage.last_trade"

    def __init__(self, engine: Engine, connection: CollectorConnection | None = None):
        super().__init__(engine, connection)
        self._polled = Polled("relation")

    def sample(self, now: float) -> list[Row]:
        waiting = {row["relation"]: row["users"] for row in self.connection.rows(self.sql)} or {None: 0}
        return self._polled.add(now, Counter({(relation,): users for relation, users in waiting.items()}))

    def finish(self) -> list[Row]:
        return self._polled.finish()
