"""The bulk copy of `mssql-python`: a TDS stack of its own, written in Rust, beside the ODBC driver's.

It has failed to log in where the ODBC driver could (mssql-python #600, #750) and under concurrent loads (#595), and its
`bulkcopy_arrow` logs in for every table that it is given. So it logs in once for all pieces, with the connection that
`bulkcopy_arrow` itself would make and drop: an internal of mssql-python, without which there is no bulk copy.
"""

from typing import TYPE_CHECKING, Any

from stallmark.engines.mssql.server import Server
from stallmark.errors import CallFailed, ErrorClass, StallmarkError

if TYPE_CHECKING:
    import pyarrow as pa

LOGIN_WITHIN_S = 60  # many loaders log in at once
SWITCH = "?BulkCopy=no at the end of the URL"
INSERTED_INSTEAD = "rows are inserted instead, which takes several times as long"


class NoBulkCopy(Exception):
    """There is no bulk copy into this server; a clause says why, without a full stop."""


class Copier:
    """One login, in which Arrow tables are copied into tables of the server."""

    def __init__(self, server: Server):
        """Raise NoBulkCopy."""
        if server.is_babelfish:  # its bulk copy fills one column and says nothing
            raise NoBulkCopy(f"the bulk copy of {server.identity().product} is not trusted")
        if not server.address.bulk_copy:
            raise NoBulkCopy("it is switched off (?BulkCopy=no)")
        try:
            import mssql_py_core
            import mssql_python
        except ImportError:
            raise NoBulkCopy("mssql-python is missing: pip install 'stallmark[sqlserver]'") from None
        mssql_python.pooling(enabled=False)  # else the session that only names the server would stay
        try:
            connection = mssql_python.connect(server.address.copier_string(), timeout=LOGIN_WITHIN_S)
            try:
                connection.timeout = LOGIN_WITHIN_S  # of the login that follows
                known = connection.cursor()._build_pycore_context()
            finally:
                connection.close()
            self._connection = mssql_py_core.PyCoreConnection(known)
        except AttributeError:
            raise NoBulkCopy(
                f"mssql-python {mssql_python.__version__} is not known: pip install 'mssql-python==1.16.*'"
            ) from None
        except Exception as error:  # of many kinds: its own, and RuntimeError for whatever the server says
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
                check_constraints=True,  # else SQL Server lets everything in, and trusts them no more
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


def version() -> Any:
    import mssql_python

    return mssql_python.__version__
