"""The types that parameters are sent as: those that the procedure declares, the same at every call.

pyodbc takes them from each value: 5 is an integer and 5,000,000,000 a bigint, a text is an nvarchar of its own length
(pyodbc #213). Then the driver prepares a call anew, and of a batch the plan cache keeps a plan for every combination.
"""

import re
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.mssql.odbc import api
from stallmark.engines.mssql.sql import rows

Size = tuple[int, int, int]
_CALLED = re.compile(r"(?:\{\s*CALL|\bEXEC(?:UTE)?)\s+([\w.\[\]]+)", re.IGNORECASE)
_MOMENT = 27  # letters of the longest time; it goes as text, which no setting of a session reads in another way


class ParameterTypes:
    """For `Cursor.setinputsizes`, by procedure; each is asked for once, whatever the session."""

    def __init__(self) -> None:
        self._known: dict[str, list[Size | None]] = {}

    def of(self, statement: str, cursor: Any) -> list[Size | None] | None:
        """Return the types of the statement's parameters; None where the server does not tell them, or they are not
        those of the one procedure that it calls."""
        if not (called := _CALLED.search(statement)):
            return None
        procedure = called[1]
        if procedure not in self._known:
            asked = sql_file.read(__package__, "parameters").format(procedure=procedure)
            try:
                self._known[procedure] = [_size(*row) for row in rows(cursor.execute(asked))]
            except api().Error:  # then pyodbc takes them from the values
                return None
        sizes = self._known[procedure]
        return sizes if sizes and len(sizes) == statement.count("?") else None


def _size(kind: str, length: int, digits: int, decimals: int) -> Size | None:
    odbc = api()
    match kind:
        case "bigint" | "smallint" | "tinyint" | "bit":
            return getattr(odbc, f"SQL_{kind.upper()}"), 0, 0
        case "int":
            return odbc.SQL_INTEGER, 0, 0
        case "decimal" | "numeric":
            return odbc.SQL_DECIMAL, digits, decimals
        case "float":
            return odbc.SQL_DOUBLE, 0, 0
        case "varchar" if length < 0:
            return odbc.SQL_VARCHAR, 0, 0  # the driver's size for varchar(max)
        case "varchar" | "char" if length > 0:
            return getattr(odbc, f"SQL_{kind.upper()}"), length, 0
        case "nvarchar" | "nchar" if length > 0:
            return (odbc.SQL_WVARCHAR if kind == "nvarchar" else odbc.SQL_WCHAR), length // 2, 0
        case "date" | "datetime2":
            return odbc.SQL_VARCHAR, _MOMENT, 0
    return None
