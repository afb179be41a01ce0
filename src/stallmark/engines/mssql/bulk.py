"""Bulk load of SQL Server: the bulk copy of `mssql-python`, and INSERT where that is not to be had."""

from typing import TYPE_CHECKING, Any

from stallmark.engines.mssql.copier import Copier
from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows as read_all

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 10_000


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

    fast_executemany = True
    """The driver sends the rows of a call together, and holds the interpreter meanwhile."""

    def __init__(self, connection: Any, instead: str | None = None, *, transactional: bool = True):
        """Not `transactional` where bulk copy may have begun the same batches: then each is begun in the ledger as
        bulk copy does it. `instead` says why rows are inserted.
        """
        super().__init__(connection)
        self.limited = instead
        self.transactional = transactional

    def write(self, table: str, rows: "pa.Table") -> None:
        columns = ", ".join(f"[{name}]" for name in rows.column_names)
        marks = "(" + ", ".join("?" * rows.num_columns) + ")"
        try:
            cursor = self._connection.cursor()
            cursor.fast_executemany = self.fast_executemany
            for batch in rows.to_batches(ROWS_AT_ONCE):
                values = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES {marks}", values)
        except self._error as error:
            raise failed(error) from None
