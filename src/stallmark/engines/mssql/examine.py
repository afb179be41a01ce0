"""What the way to this server, its edition and this login allow: for `stallmark doctor`."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stallmark.engines import sql_file
from stallmark.engines.mssql import tempdb
from stallmark.engines.mssql.editions import AZURE, EXPRESS, SQL_SERVER_2022, limits
from stallmark.errors import CallFailed

if TYPE_CHECKING:
    from stallmark.engines.mssql.engine import MssqlEngine

_WITHOUT = {
    "STATE": "nothing of waits, memory and stalls can be measured",
    "VIEW ANY DEFINITION": "files are known by number and not by name",
    "CREATE": "no database can be built: make it a member of db_owner",
}
"""What cannot be done without a right, by a word of its name. What else a run may need, `Engine.cannot` says."""

_READ_ONLY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(60))"


def examine(engine: "MssqlEngine") -> Iterator[tuple[str, str, str]]:
    """(what, state, sentence), state as `Finding` of the doctor has it."""
    yield "ODBC driver", "limited" if engine.driver.freetds else "ok", _driver(engine)
    if engine.identity().product != "SQL Server":
        yield ("bulk copy", "limited", f"{engine.identity().product}'s is not trusted: rows are inserted instead.")
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
        yield ("encryption", "limited", f"what is sent may be read (Encrypt={engine.address.options['Encrypt']}).")
    identity = engine.identity()
    if identity.product == "SQL Server" and (
        most := limits(engine.edition, identity.version[0], identity.version_text)
    ):
        yield "edition", "limited" if engine.edition == EXPRESS else "ok", most
    if statements := tempdb.noted(engine):
        yield ("tempdb", "limited", f"Stallmark has placed its files. {tempdb.how_to_give_back(engine, statements)}")
    yield from _rights(engine)


def _driver(engine: "MssqlEngine") -> str:
    if engine.driver.freetds:
        return "FreeTDS works and is slower: pip install 'stallmark[sqlserver]' brings Microsoft's."
    return f"{engine.driver}."


def _rights(engine: "MssqlEngine") -> Iterator[tuple[str, str, str]]:
    try:
        granted = _granted(engine)
        [(updateability,)] = engine.query(_READ_ONLY)
    except CallFailed as error:
        yield "rights", "limited", f"the server does not tell what this login may do ({error.message})."
        return
    for right, has in granted.items():
        if not has:
            what, consequence = next((word, said) for word, said in _WITHOUT.items() if word in right)
            scope = "" if "DATABASE STATE" in right else "in master, "  # where alone the server's rights are granted
            grant = "" if what == "CREATE" else f": {scope}GRANT {right} TO it"
            state = "missing" if what == "CREATE" else "limited"
            yield right, state, f"this login has no {right}, so {consequence}{grant}."
    if updateability == "READ_ONLY":
        yield "database", "missing", "it is read-only: ALTER DATABASE … SET READ_WRITE, or name another."


def _granted(engine: "MssqlEngine") -> dict[str, int]:
    """By right."""
    if engine.is_azure_database:
        sql = sql_file.read(__package__, "rights_azure")
    else:
        finer = engine.edition in AZURE or engine.identity().version[0] >= SQL_SERVER_2022
        sql = sql_file.read(__package__, "rights").format(
            state="VIEW SERVER PERFORMANCE STATE" if finer else "VIEW SERVER STATE"
        )
    with engine.cursor() as cursor:
        row = cursor.execute(sql).fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True))
