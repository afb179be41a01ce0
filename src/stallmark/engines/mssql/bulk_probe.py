"""A trial of bulk copy: rows of every type go into a table that is gone afterwards, and are read back."""

from contextlib import closing
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from stallmark.engines import sql_file
from stallmark.engines.examined import Examined
from stallmark.engines.mssql.copier import INSERTED_INSTEAD, SWITCH, Copier, NoBulkCopy, version
from stallmark.engines.mssql.server import Server
from stallmark.engines.mssql.sql import rows as read_all
from stallmark.errors import CallFailed, StallmarkError

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


def tried(server: Server) -> Examined:
    """Try a bulk copy; return what the doctor says of it."""
    try:
        copier = Copier(server)
    except NoBulkCopy as why:
        return Examined(WHAT, "limited", f"{why}, so {INSERTED_INSTEAD}.")
    try:
        with closing(copier), server.cursor("stallmark-loader") as cursor:
            [(spid,)] = read_all(cursor.execute("SELECT @@SPID"))
            table = f"##stallmark_{spid}"
            read_all(cursor.execute(sql_file.read(__package__, "bulk_probe").format(table=table)))
            copier.copy(table, ROWS)
            columns = ", ".join(f"[{name}]" for name in ROWS.column_names)
            found = read_all(cursor.execute(f"SELECT {columns} FROM {table} ORDER BY [key]"))
    except CallFailed as error:
        return Examined(WHAT, "missing", f"it failed when it was tried: {error.message}.")
    except StallmarkError as error:
        return Examined(WHAT, "missing", str(error))
    changed = [
        name for at, name in enumerate(ROWS.column_names) if ROWS[name].to_pylist() != [row[at] for row in found]
    ]
    if changed:
        return Examined(
            WHAT,
            "missing",
            f"rows did not come back as they were written ({', '.join(changed)}), so nothing that it loads is to be "
            f"trusted: {SWITCH} inserts rows instead.",
        )
    return Examined(WHAT, "ok", f"by mssql-python {version()}: rows of every type were written and read back.")
