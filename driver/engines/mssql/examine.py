"""What the way to this server, its edition and this login allow: for `stallmark doctor`."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stallmark.driver.engines.errors import CallFailed
from stallmark.driver.engines.mssql.editions import EXPRESS

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

_RIGHTS = """\
SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE') AS view_server_state,
       HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION') AS view_any_definition,
       HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE TABLE') AS create_table,
       HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE SCHEMA') AS create_schema,
       HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE PROCEDURE') AS create_procedure
"""
_WITHOUT = {
    "view_server_state": "nothing of waits, memory and stalls can be measured: GRANT VIEW SERVER STATE TO it",
    "view_any_definition": "files are known by number and not by name: GRANT VIEW ANY DEFINITION TO it",
    "create_table": "no database can be built: make it a member of db_owner",
    "create_schema": "no database can be built: make it a member of db_owner",
    "create_procedure": "no database can be built: make it a member of db_owner",
}
_READ_ONLY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(60))"


def examine(engine: "MssqlEngine") -> Iterator[tuple[str, str, str]]:
    """(what, state, sentence), state as `Finding` of the doctor has it."""
    yield "ODBC driver", "limited" if engine.driver.freetds else "ok", _driver(engine)
    if engine.identity().product != "SQL Server":
        yield (
            "bulk copy",
            "limited",
            f"{engine.identity().product}'s is not trusted: rows are inserted instead.",
        )
    elif find_spec("mssql_python") is None:
        yield (
            "bulk copy",
            "limited",
            "mssql-python is missing, so rows are inserted: pip install 'stallmark[sqlserver]'.",
        )
    else:
        yield "bulk copy", "ok", "by mssql-python."
    if engine.address.options.get("TrustServerCertificate", "").lower() in ("yes", "true"):
        yield "encryption", "limited", "the server's certificate is not checked (TrustServerCertificate)."
    elif engine.address.options.get("Encrypt", "yes").lower() in ("no", "optional", "false"):
        yield (
            "encryption",
            "limited",
            f"what is sent may be read (Encrypt={engine.address.options['Encrypt']}).",
        )
    if engine.edition == EXPRESS:
        yield (
            "edition",
            "limited",
            "Express uses 1,410 MB of buffer pool, 4 cores and 10 GB per database at most.",
        )
    yield from _rights(engine)


def _driver(engine: "MssqlEngine") -> str:
    if engine.driver.freetds:
        return "FreeTDS works and is slower: pip install 'stallmark[sqlserver]' brings Microsoft's."
    return f"{engine.driver}."


def _rights(engine: "MssqlEngine") -> Iterator[tuple[str, str, str]]:
    try:
        [granted] = engine.query(_RIGHTS)
        [(updateability,)] = engine.query(_READ_ONLY)
    except CallFailed as error:
        yield "rights", "limited", f"the server does not tell what this login may do ({error.message})."
        return
    for (right, consequence), has in zip(_WITHOUT.items(), granted, strict=True):
        if not has:
            blocks = right.startswith("create")
            words = right.replace("_", " ").upper()
            yield words, "missing" if blocks else "limited", f"this login has no {words}, so {consequence}."
    if updateability == "READ_ONLY":
        yield "database", "missing", "it is read-only: ALTER DATABASE … SET READ_WRITE, or name another."
