"""Bulk load of SQL Server: the bulk copy of `mssql-python`, and INSERT where that is not to be had."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from stallmark.engines.mssql.errors import failed
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows as read_all
from stallmark.errors import CallFailed, ErrorClass, StallmarkError

ROWS_AT_ONCE = 10_000
PARAMETERS_AT_ONCE = 2_000  # the server takes 2,100


class _Writer:
    """Statements on a connection that is not in autocommit, besides the rows that its kinds write."""

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

    def __init__(self, connection: Any, copier: Any):
        """`connection` of pyodbc for statements, `copier` of mssql-python for rows."""
        super().__init__(connection)
        self._copier = copier

    def write(self, table: str, rows: pa.Table) -> None:
        cursor = self._copier.cursor()
        try:
            copied = cursor.bulkcopy_arrow(
                table,
                rows,
                timeout=0,
                column_mappings=rows.column_names,
                table_lock=True,
                keep_nulls=True,
                check_constraints=True,  # else SQL Server lets everything in, and trusts them no more
            )
        except Exception as error:  # its Rust core raises RuntimeError for whatever the server says
            raise CallFailed(ErrorClass.OTHER, "", str(error).splitlines()[0]) from None
        finally:
            cursor.close()
        if copied["rows_copied"] != rows.num_rows:
            raise StallmarkError(
                f"Bulk copy into {table} took {copied['rows_copied']} rows of {rows.num_rows}: the batch is not kept."
            )


class InsertWriter(_Writer):
    """INSERT of many rows at once, in one transaction with everything else."""

    transactional = True

    def __init__(self, connection: Any, fast: bool):
        """`fast`: the driver sends parameters as arrays (`fast_executemany`, which crashes a process on FreeTDS)."""
        super().__init__(connection)
        self._fast = fast

    def write(self, table: str, rows: pa.Table) -> None:
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
