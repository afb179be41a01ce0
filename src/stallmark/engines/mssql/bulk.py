"""Bulk load of SQL Server: by `mssql-python`, tried first, or by INSERT."""

from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stallmark.engines import sql_file
from stallmark.engines.abilities import Examined
from stallmark.engines.mssql.odbc import api, failed
from stallmark.engines.mssql.odbc import rows as read_all
from stallmark.engines.mssql.server import Server
from stallmark.errors import CallFailed, ErrorClass, StallmarkError

# The bulk copy of `mssql-python`: a TDS stack of its own, written in Rust, beside the ODBC driver's.
#
# It has failed to log in where the ODBC driver could (mssql-python #600, #750) and under concurrent loads (#595),
# and its `bulkcopy_arrow` logs in for every table that it is given. So it logs in once for all pieces, with the
# connection that `bulkcopy_arrow` itself would make and drop: an internal of mssql-python, without which there is no
# bulk copy.


LOGIN_WITHIN_S = 60  # many loaders log in at once
SWITCH = "?BulkCopy=no at the end of the URL"
INSERTED_INSTEAD = "rows are inserted instead, which takes several times as long"


class NoBulkCopy(Exception):
    """An error: bulk copy into this server is impossible. The message is a clause with the reason, without a full
    stop."""


class Copier:
    """One login, in which Arrow tables are copied into tables of the server."""

    def __init__(self, server: Server):
        """Raise NoBulkCopy."""
        if server.is_babelfish:  # the bulk copy silently fills one column
            raise NoBulkCopy(f"the bulk copy of {server.identity().product} is not trusted")
        if not server.address.bulk_copy:
            raise NoBulkCopy("it is switched off (?BulkCopy=no)")
        try:
            import mssql_py_core
            import mssql_python
        except ImportError:
            raise NoBulkCopy("mssql-python is missing: pip install 'stallmark[sqlserver]'") from None
        # Pooled, the session that only names the server would stay.
        mssql_python.pooling(enabled=False)
        try:
            connection = mssql_python.connect(server.address.copier_string(), timeout=LOGIN_WITHIN_S)
            try:
                connection.timeout = LOGIN_WITHIN_S  # timeout of the login that follows
                known = connection.cursor()._build_pycore_context()
            finally:
                connection.close()
            self._connection = mssql_py_core.PyCoreConnection(known)
        except AttributeError:
            raise NoBulkCopy(
                f"mssql-python {mssql_python.__version__} is not known: pip install 'mssql-python==1.16.*'"
            ) from None
        except Exception as error:  # the driver's own kinds, and RuntimeError for the server's errors
            raise NoBulkCopy(f"mssql-python cannot log in ({_sentence(error)})") from None

    def copy(self, table: str, rows: "pa.Table") -> None:
        """Copy the rows, which are in for good as they arrive. Raise CallFailed, or StallmarkError when some are
        not in."""
        cursor = self._connection.cursor()
        try:
            copied = cursor.bulkcopy_arrow(
                table,
                rows,
                timeout=0,
                column_mappings=rows.column_names,
                table_lock=True,
                keep_nulls=True,
                # Otherwise SQL Server lets every row in, and no longer trusts its constraints.
                check_constraints=True,
            )
        except Exception as error:
            raise CallFailed(ErrorClass.OTHER, "", f"{_sentence(error)} ({SWITCH} inserts rows instead)") from None
        finally:
            cursor.close()
        if copied["rows_copied"] != rows.num_rows:
            raise StallmarkError(
                f"Bulk copy into {table} took {copied['rows_copied']} rows of {rows.num_rows}: the batch is not kept."
            )

    def close(self) -> None:
        self._connection.close()


def _sentence(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")


# A trial of bulk copy: rows of every type go into a table that is gone afterwards, and are read back.

WHAT = "bulk copy"

ROWS = pa.table(
    {
        "key": pa.array([1, 2, 3], pa.int32()),
        "big": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
        "small": pa.array([-32_768, None, 32_767], pa.int16()),
        "flag": pa.array([True, None, False], pa.bool_()),
        "ratio": pa.array([0.1, None, -1e300], pa.float64()),
        "price": pa.array([Decimal("9999999999999.99"), None, Decimal("-0.01")], pa.decimal128(15, 2)),
        "rate": pa.array([Decimal("0.12345"), None, Decimal("-9.99999")], pa.decimal128(6, 5)),
        "day": pa.array([date(2000, 2, 29), None, date(1800, 1, 1)], pa.date32()),
        "at": pa.array([datetime(2005, 1, 3, 9, 0, 0, 123_000), None, datetime(1999, 12, 31)], pa.timestamp("ms")),
        "moment": pa.array([datetime(2005, 1, 3, 9, 0, 0, 123_456), None, datetime(1999, 12, 31)], pa.timestamp("us")),
        "code": pa.array(["ABCDEFGHIJ", None, "0123456789"]),
        "name": pa.array(["O'Neill; {x}", None, ""]),
        "article": pa.array(["word " * 4000, None, "\n"]),
    }
)
"""The largest and the smallest of each type, and NULL."""


def try_bulk_copy(server: Server) -> Examined:
    """Try a bulk copy, and return the line for the doctor."""
    try:
        copier = Copier(server)
    except NoBulkCopy as why:
        return Examined(WHAT, "limited", f"{why}, so {INSERTED_INSTEAD}.")
    try:
        with closing(copier), server.cursor("stallmark-loader") as cursor:
            [(spid,)] = read_all(cursor.execute("SELECT @@SPID"))
            table = f"##stallmark_{spid}"
            read_all(cursor.execute(sql_file.statement(__name__, "bulk_probe").format(table=table)))
            copier.copy(table, ROWS)
            columns = ", ".join(f"[{name}]" for name in ROWS.column_names)
            stored = read_all(cursor.execute(f"SELECT {columns} FROM {table} ORDER BY [key]"))
    except CallFailed as error:
        return Examined(WHAT, "missing", f"it failed when it was tried: {error.message}.")
    except StallmarkError as error:
        return Examined(WHAT, "missing", str(error))
    changed = [
        name
        for column, name in enumerate(ROWS.column_names)
        if ROWS[name].to_pylist() != [row[column] for row in stored]
    ]
    if changed:
        return Examined(
            WHAT,
            "missing",
            f"rows did not come back as they were written ({', '.join(changed)}), so nothing that it loads is to be "
            f"trusted: {SWITCH} inserts rows instead.",
        )
    import mssql_python

    return Examined(
        WHAT, "ok", f"by mssql-python {mssql_python.__version__}: rows of every type were written and read back."
    )


# Bulk load of SQL Server: the bulk copy of `mssql-python`, and INSERT where that is not to be had.

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
        """The connections of a bulk load: `connection` of pyodbc for statements, `copier` for rows."""
        super().__init__(connection)
        self.write = copier.copy


class InsertWriter(_Writer):
    """INSERT of many rows at once, in one transaction with everything else."""

    fast_executemany = True
    """The driver sends the rows of a call together, and holds the interpreter meanwhile."""

    def __init__(self, connection: Any, instead: str | None = None, *, transactional: bool = True):
        """Not `transactional` if bulk copy may have begun the same batches: then each is begun in the ledger as bulk
        copy does it. `instead` is the reason why rows are inserted.
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
