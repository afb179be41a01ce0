"""Every T-SQL text of the product, found by where it stands, so that nobody has to list a new one.

* Files: *.mssql.sql anywhere, every .sql of the SQL Server engine and collectors, and what both engines execute (a
  workload's conditions).
* Python: strings that begin with a statement's keyword, in a package or module named mssql, or under the key
  "mssql" of a dictionary.
* Tables: CREATE SCHEMA, CREATE TABLE, keys and indexes as schema.deploy makes them, of every module in schema/.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateSchema, CreateTable

import stallmark.schema
from stallmark.engines import sql_file
from stallmark.schema.ddl import ddl_of

ROOT = Path(__file__).parents[3]
ROOMS = ("schema", "loaders", "transactions", "driver", "scenarios", "src/stallmark")

# A keyword in capitals and something behind it, or a statement of one word: other strings are not T-SQL.
_STATEMENT = re.compile(
    r"\s*((SELECT|INSERT|UPDATE|DELETE|MERGE|TRUNCATE|WITH|EXEC|EXECUTE|DECLARE|SET|IF|BEGIN|COMMIT|ROLLBACK|CREATE"
    r"|ALTER|DROP|GRANT|DENY|REVOKE|BACKUP|RESTORE|DBCC|KILL|USE|WAITFOR|PRINT|RAISERROR|THROW)\s+\S"
    r"|(CHECKPOINT|RECONFIGURE)\b)"
)

# What stands in a hole of a template, by its expression, where a name would not do.
_HOLES = {
    "clause": "SET RECOVERY SIMPLE", "days": "N'1993-01-01', N'1994-01-01'", "found": "N'x'", "columns": "a, b",
    **dict.fromkeys(("database", "log_file", "memory_kib"), "1"), "marks": "(?, ?)", "number": "1", "state": "ON",
    "limits": "MAX_IOPS_PER_VOLUME = 100", "isolation": "SERIALIZABLE", "remove": "DELETE FROM t",
    **dict.fromkeys(("_file(engine)", "first", "second", "disk", "self._files[0]", "odbc.text(path)"), "N'x'"),
    "self._disks": "DISK = N'x'", "self._compression": "", "self._buffers": ", BUFFERCOUNT = 1", "legacy": "ON",
}  # fmt: skip
_NAME = "x"


EXAMPLE = "own_sql/shop/"
"""The folder of an example for PostgreSQL."""


def all_texts() -> dict[str, str]:
    """By where it comes from: `schema/files.mssql.sql`, `src/stallmark/engines/mssql/engine.py: SELECT …`."""
    found: dict[str, str] = {}
    for place, text in [*_files(), *_python(), *_tables()]:
        name = place
        while name in found:  # another that begins with the same words
            name += " …"
        found[name] = text
    return dict(sorted(found.items()))


def _files() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.sql"):
            if "postgres" not in _place(path) and EXAMPLE not in _place(path):  # of SQL Server, or for both engines
                text = path.read_text()
                for statement in sql_file.split(text) or (sql_file.Statement("", "", text),):
                    place = f"{_place(path)}: {statement.key}" if statement.key else _place(path)
                    yield place, _named(_filled(statement.text))


def _named(text: str) -> str:
    """With parameters where it says `:name`, for a literal."""
    return re.sub(r"(?<![:\w]):([a-z]\w*)", r"@\1", text)


def _python() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            place, source = _place(path), path.read_text()
            if "mssql" in place + source:  # to parse the others takes seconds
                for text in strings(source, place):
                    yield f"{place}: {' '.join(text.split())[:60]}", text


def strings(source: str, place: str) -> Iterator[str]:
    """The T-SQL among the strings of a module."""
    tree = ast.parse(source)
    constants = {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    is_mssql = any("mssql" in part for part in Path(place).parts)
    for node in _expressions(tree) if is_mssql else _under_mssql(tree):
        text = _text(node, constants)
        if text is not None and _STATEMENT.match(text):
            yield text


def _expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """Whole strings: not their parts, and no docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield node
        else:
            yield from _expressions(node)


def _under_mssql(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "mssql":
                    yield value


def _text(node: ast.expr, constants: dict[str, str]) -> str | None:
    """The string with its holes filled, by the module's own constants where they are those."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _filled(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            constants.get(hole := ast.unparse(part.value)) or _HOLES.get(hole, _NAME)
            if isinstance(part, ast.FormattedValue)
            else str(part.value)
            for part in node.values
            if isinstance(part, ast.FormattedValue | ast.Constant)
        )
    return None


def _filled(template: str) -> str:
    """As `str.format` would."""
    return re.sub(r"\{(\w*)\}", lambda hole: _HOLES.get(hole[1], _NAME), template)


def _tables() -> Iterator[tuple[str, str]]:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(stallmark.schema.__path__, "stallmark.schema.")
    ]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, sa.MetaData)]
    for metadata in dict.fromkeys(values):
        for number, statement in enumerate(ddl(metadata)):
            yield f"schema, {metadata.schema}, statement {number}", statement


def ddl(metadata: sa.MetaData) -> list[str]:
    """Return what deployment sends for a schema: tables whole (the ledger's) and bare (a workload's), then keys."""
    parts = ddl_of(metadata)
    statements: list[sa.schema.ExecutableDDLElement] = [CreateSchema(str(metadata.schema))]
    statements += [CreateTable(table) for table in (*metadata.sorted_tables, *parts.tables.sorted_tables)]
    for item in (*parts.keys, *parts.foreign_keys):
        statements.append(CreateIndex(item) if isinstance(item, sa.Index) else AddConstraint(item))
    dialect = mssql.dialect()
    dialect.server_version_info = (14, 0)  # SQL Server 2017, the oldest: for older ones DATE would become DATETIME
    return [str(statement.compile(dialect=dialect)) for statement in statements]


def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
