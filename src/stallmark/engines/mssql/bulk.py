"""Bulk load of SQL Server: the bulk copy of `mssql-python`, and INSERT where that is not to be had."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stallmark.engines.mssql.copier import Copier
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows as read_all

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 10_000
PARAMETERS_AT_ONCE = 2_000  # the server takes 2,100


class _Writer:
    """Statements on a connection that is not in autocommit, besides the rows that its kinds write."""

    limited: str | None = None

    def __init__(self, connection: Any):
        self._connection = connection
        self._error = api().Error

    def execute(self, statement: str) -> int:
        try:
            cursor = self._connection.execute(statement)
            changed: int = cursor.rowcount
            read_all(cursor)
        except self._error as error:
            raise failed(error) from None
        return changed

    def commit(self) -> None:
        try:
            self._connection.commit()
        except self._error as error:
            raise failed(error, commits=True) from None


class BulkCopyWriter(_Writer):
    """Bulk copy into a heap under a bulk-update lock, which loaders share.

    It has a connection of its own and commits what it wrote at once, so that a ledger row cannot be in the same
    transaction: see `transactional`.
    """

    transactional = False

    def __init__(self, connection: Any, copier: Copier):
        """`connection` of pyodbc for statements, `copier` for rows."""
        super().__init__(connection)
        self.write = copier.copy


class InsertWriter(_Writer):
    """INSERT of many rows at once, in one transaction with everything else."""

    def __init__(self, connection: Any, fast: bool, instead: str | None = None, *, transactional: bool = True):
        """`fast`: the driver sends parameters as arrays (`fast_executemany`, which crashes a process on FreeTDS).

        Not `transactional` where bulk copy may have begun the same batches: then each is begun in the ledger as
        bulk copy does it. `instead` says why rows are inserted.
        """
        super().__init__(connection)
        self._fast = fast
        self.limited = instead
        self.transactional = transactional

    def write(self, table: str, rows: "pa.Table") -> None:
        columns = ", ".join(f"[{name}]" for name in rows.column_names)
        marks = "(" + ", ".join("?" * rows.num_columns) + ")"
        try:
            cursor = self._connection.cursor()
            cursor.fast_executemany = self._fast
            for batch in rows.to_batches(ROWS_AT_ONCE):
                values = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                if self._fast:
                    cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES {marks}", values)
                else:
                    self._insert_in_groups(cursor, f"INSERT INTO {table} ({columns}) VALUES ", marks, values)
        except self._error as error:
            raise failed(error) from None

    def _insert_in_groups(self, cursor: Any, insert: str, marks: str, values: Sequence[tuple]) -> None:
        size = max(1, min(1000, PARAMETERS_AT_ONCE // len(values[0])))
        for first in range(0, len(values), size):
            group = values[first : first + size]
            cursor.execute(insert + ", ".join([marks] * len(group)), [value for row in group for value in row])
