"""Questions that drivers ask by themselves, and any server can answer."""

import re
from collections.abc import Iterable, Sequence

from support.tds.answers import Error, Rows, Step, Use
from support.tds.datatypes import INT, SMALLINT, nvarchar, varbinary, varchar
from support.tds.requests import Request, plain
from support.tds.tokens import Column

PROPERTIES = {
    "ProductVersion": "16.0.4105.2", "ProductLevel": "RTM", "ProductMajorVersion": "16",
    "Edition": "Developer Edition (64-bit)", "EngineEdition": "3", "ServerName": "responder",
    "MachineName": "responder", "InstanceName": "", "Collation": "SQL_Latin1_General_CP1_CI_AS", "IsClustered": "0",
    "IsHadrEnabled": "0",
}  # fmt: skip
VERSION = Rows(
    [Column("", nvarchar(300))],
    [("Microsoft SQL Server 2022 (RTM-CU13) - 16.0.4105.2 (X64) the responder of Stallmark's tests",)],
)
SESSION = Rows([Column(name, INT) for name in ("database_id", "options", "lock_timeout_ms")], [(5, 5496, -1)])
"""Database, options and lock timeout of a session."""
_SETTINGS = re.compile(r"\s*(SET|USE|BEGIN\s+TRAN|COMMIT|ROLLBACK|SAVE\s+TRAN|IF\s+@@TRANCOUNT)\b", re.I)
_WORK = re.compile(r"\b(EXEC|EXECUTE|SELECT|INSERT|UPDATE|DELETE|MERGE|CREATE|ALTER|DROP|CALL)\b", re.I)
_EXTENDED_PROPERTY = re.compile(r"\bsys\.(extended_properties|sp_(add|drop)extendedproperty)\b", re.I)
_USE = re.compile(r"\bUSE\s+\[?(\w+)", re.I)
_PROPERTY = re.compile(r"SERVERPROPERTY\s*\(\s*N?'(\w+)'\s*\)", re.I)


def changes_only_settings(text: str) -> bool:
    """SET, USE and transaction statements: nothing to answer but that it is done."""
    return bool(_SETTINGS.match(text)) and not _WORK.search(text)


def use(request: Request) -> Iterable[Step]:
    match = _USE.search(request.text)
    return [Use(match[1])] if match else []


def server_properties(request: Request) -> Iterable[Step]:
    """A row with one column for each SERVERPROPERTY in the text, as text: whoever asks should CAST."""
    known = {name.lower(): value for name, value in PROPERTIES.items()}
    names = _PROPERTY.findall(request.text)
    return [Rows([Column("", nvarchar(128)) for _ in names], [[known.get(name.lower()) for name in names]])]


class ExtendedProperties:
    """Of a database, kept as a server keeps them: sp_addextendedproperty and its like, by value of their parameters."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def asked_for(self, request: Request) -> bool:
        return bool(_EXTENDED_PROPERTY.search(request.text))

    def answer(self, request: Request) -> Iterable[Step]:
        name, *rest = request.values
        if "sp_addextendedproperty" in request.text:
            if name in self.values:
                return [Error(15233, f"Property cannot be added. Property '{name}' already exists.")]
            [self.values[name]] = rest
        elif "sp_dropextendedproperty" in request.text:
            if self.values.pop(name, None) is None:
                return [Error(15217, f"Property cannot be updated or deleted. Property '{name}' does not exist.")]
        else:
            found = [(self.values[name],)] if name in self.values else []
            return [Rows([Column("value", nvarchar(3750))], found)]
        return []


def type_info(request: Request) -> Iterable[Step]:
    """sp_datatype_info_100: pyodbc asks how long text may be, and how precise a time is."""
    asked = request.parameters[0].value if request.parameters else 0
    described = [("TYPE_NAME", nvarchar(128)), ("DATA_TYPE", SMALLINT), ("PRECISION", INT),
        ("LITERAL_PREFIX", varchar(32)), ("LITERAL_SUFFIX", varchar(32)), ("CREATE_PARAMS", varchar(32)),
        ("NULLABLE", SMALLINT), ("CASE_SENSITIVE", SMALLINT), ("SEARCHABLE", SMALLINT),
        ("UNSIGNED_ATTRIBUTE", SMALLINT), ("MONEY", SMALLINT), ("AUTO_INCREMENT", SMALLINT),
        ("LOCAL_TYPE_NAME", nvarchar(128)), ("MINIMUM_SCALE", SMALLINT), ("MAXIMUM_SCALE", SMALLINT),
        ("SQL_DATA_TYPE", SMALLINT), ("SQL_DATETIME_SUB", SMALLINT), ("NUM_PREC_RADIX", INT),
        ("INTERVAL_PRECISION", SMALLINT), ("USERTYPE", SMALLINT)]  # fmt: skip
    rows = [
        (name, number, size, "'", "'", None, 1, 0, 3, None, 0, None, name, None, None, number, None, None, None, 0)
        for name, number, size in _TYPE_SIZES
        if number == asked
    ]
    return [Rows([Column(name, kind) for name, kind in described], rows)]


# Name, ODBC's number, size in characters.
_TYPE_SIZES = [("varchar", 12, 8000), ("nvarchar", -9, 4000), ("varbinary", -3, 8000), ("datetime2", 93, 27)]


def asks_about(request: Request, table: str) -> bool:
    """Bulk copy clients ask for the columns of a table by selecting them with FMTONLY."""
    return "fmtonly on" in request.text.lower() and f"from {table}'" in plain(request.text)


def table(columns: Sequence[Column]) -> list[Step]:
    """The three results they expect: @@TRANCOUNT, the columns, and the collations of those that are text."""
    collations = [
        ("colid", INT),
        ("name", nvarchar(128)),
        ("tds_collation", varbinary(5)),
        ("collation", nvarchar(128)),
    ]
    rows = [
        (number, column.name, column.type.collation if text else None, PROPERTIES["Collation"] if text else None)
        for number, column in enumerate(columns, 1)
        for text in ["char" in column.type.name]
    ]
    return [
        Rows([Column("", INT)], [(0,)]),
        Rows(columns),
        Rows([Column(name, kind) for name, kind in collations], rows),
    ]
