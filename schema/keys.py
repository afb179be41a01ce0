"""Find the keys, indexes and foreign keys of a schema that are missing or not trusted."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import Constraint, Index

from stallmark.engines import sql_file
from stallmark.engines.base import Engine

_DIALECTS: dict[str, sa.Dialect] = {"postgresql": postgresql.dialect(), "mssql": mssql.dialect()}

# Babelfish lists an index as <name><table><digest>, and keeps of what is too long this many characters and a digest.
_KEPT_BY_BABELFISH = 31


def present(engine: Engine, schema: str) -> dict[tuple[str, str], bool]:
    """Return, by table and name, whether the server trusts a key, index or check: it knows that all rows fulfil it."""
    sql = sql_file.read(__package__, f"present_keys.{engine.dialect}")
    return {(table, name): bool(trusted) for table, name, trusted in engine.query(sql, [schema])}


def defects(engine: Engine, schema: str, items: Iterable[Constraint | Index]) -> list[str]:
    """Return a phrase for each of `items` that is missing in a schema or not trusted."""
    there = present(engine, schema)
    digested = engine.identity().product == "Babelfish"

    def is_there(table: str, name: str) -> bool:
        return (table, name) in there or (
            digested and any(t == table and n.startswith(name[:_KEPT_BY_BABELFISH]) for t, n in there)
        )

    of_schema = [item for item in items if table_of(item).schema == schema]
    wanted = sorted((table_of(item).name, name_of(item, engine.dialect)) for item in of_schema)
    missing = [f"{schema}.{table}: {name} is missing" for table, name in wanted if not is_there(table, name)]
    untrusted = [
        f"{schema}.{table}: {name} is disabled or was never checked"
        for (table, name), trusted in sorted(there.items())
        if not trusted
    ]
    return missing + untrusted


def table_of(item: Index | Constraint | sa.Table) -> sa.Table:
    table = item if isinstance(item, sa.Table) else item.table
    assert table is not None
    return table


def name_of(item: Index | Constraint, dialect: str) -> str:
    """Return the name as the server has it: longer ones are cut."""
    preparer = _DIALECTS[dialect].identifier_preparer
    formatted = preparer.format_index(item) if isinstance(item, Index) else preparer.format_constraint(item)
    return str(formatted).strip('"[]')
