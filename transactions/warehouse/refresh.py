"""The refresh functions of the warehouse: RF1 inserts new orders, RF2 deletes as many old ones.

Refresh sets are consumed in sequence. Which one is next is a row of the database, `warehouse.refresh`, which changes in
the transaction of the function itself: after a kill the set is either in or not, and the database knows.
"""

from dataclasses import dataclass

import pyarrow as pa
import sqlalchemy as sa

from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.schema import warehouse
from stallmark.schema.deploy import connected
from stallmark.schema.warehouse.tables import REFRESH

KEYS_AT_ONCE = 500
"""The number of keys as literals in one statement: SQL Server slows down with longer lists."""


@dataclass(frozen=True)
class RefreshResult:
    """The number of a refresh set, from 1, and how many orders and lineitems it inserted or deleted."""

    set: int
    rows: int


@dataclass(frozen=True)
class RefreshState:
    """The last set begun (0: none), and which of its two functions are done."""

    set: int
    inserted: bool
    deleted: bool


class Refresh:
    """The refresh functions on one database, executed one at a time. Each has its own connection and is one
    transaction.

    They raise CallFailed when the server fails, and have then changed nothing. If the connection broke during the
    commit itself, `state` shows whether the commit took place.
    """

    def __init__(self, engine: Engine, factor: float):
        self._engine = engine
        self._factor = factor
        self._next: tuple[int, tuple[pa.Table, pa.Table]] | None = None

    def state(self) -> RefreshState:
        """Return the state. Raise StallmarkError if its row is missing or has values that no refresh writes."""
        with connected(self._engine) as connection:
            rows = connection.execute(sa.select(REFRESH)).all()
        if len(rows) != 1 or not rows[0].inserted:
            raise StallmarkError(
                "warehouse.refresh does not identify the last refresh set, as it was changed by others: drop the "
                "database and build it again."
            )
        return RefreshState(rows[0].refresh_set, rows[0].inserted, rows[0].deleted)

    def pending(self) -> str | None:
        """Return a sentence when a run ended between RF1 and RF2, so that `repair` is needed; None otherwise."""
        return _undone(self.state())

    def repair(self) -> RefreshResult | None:
        """Execute the RF2 that a run has left undone; return None if nothing is undone."""
        return None if self.state().deleted else self.delete()

    def check_left(self, sets: int) -> None:
        """Raise StallmarkError when fewer than `sets` refresh sets are left."""
        left = warehouse.most_sets(self._factor) - self.state().set
        if sets > left:
            raise StallmarkError(
                f"The run needs {sets:,} refresh sets, and {left:,} are left in this database: restore it as it was "
                "loaded, build it again, or run without refresh."
            )

    def prepare(self) -> None:
        """Make the rows that the next `insert` writes, so that it spends no time on making them.

        Raise StallmarkError when there is no further set.
        """
        self._rows_of(self.state().set + 1)

    def insert(self) -> RefreshResult:
        """Execute RF1 of the next set. Raise StallmarkError without a next set, or if the RF2 of the last one is still
        to come.
        """
        state = self.state()
        if reason := _undone(state):
            raise StallmarkError(f"{reason} These are to be deleted before others are inserted.")
        number = state.set + 1
        orders, lineitem = self._rows_of(number)
        with self._engine.transactional_writer() as writer:
            writer.write("warehouse.orders", orders)
            writer.write("warehouse.lineitem", lineitem)
            writer.execute(self._sql(f"rf1.{self._engine.dialect}").replace(":set", str(number)))
            writer.commit()
        self._next = None
        return RefreshResult(number, orders.num_rows + lineitem.num_rows)

    def delete(self) -> RefreshResult:
        """Execute RF2 of the set that RF1 has inserted. Raise StallmarkError without such a set."""
        state = self.state()
        if state.deleted:
            raise StallmarkError(
                f"Refresh set {state.set} has deleted its orders already: RF1 of the next one comes first."
            )
        keys = warehouse.deletes(self._factor, state.set)
        rows = 0
        with self._engine.transactional_writer() as writer:
            for table in ("lineitem", "orders"):
                statement = self._sql(f"rf2_{table}")
                for first in range(0, len(keys), KEYS_AT_ONCE):
                    few = ", ".join(map(str, keys[first : first + KEYS_AT_ONCE]))
                    rows += writer.execute(statement.replace(":keys", few))
            writer.execute(self._sql(f"rf2.{self._engine.dialect}"))
            writer.commit()
        return RefreshResult(state.set, rows)

    def _rows_of(self, number: int) -> tuple[pa.Table, pa.Table]:
        if self._next is None or self._next[0] != number:
            self._next = number, warehouse.inserts(self._factor, number)
        return self._next[1]

    def _sql(self, name: str) -> str:
        return sql_file.read(__package__, name)


def _undone(state: RefreshState) -> str | None:
    if state.deleted:
        return None
    return (
        f"A run ended between the two functions of refresh set {state.set}: its orders are in, and the old ones that "
        "go with it are still there."
    )
