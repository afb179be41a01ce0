"""Limits of the driver, the edition and the login on this server: for `stallmark doctor`."""

from collections.abc import Iterator

from stallmark.engines import sql_file
from stallmark.engines.abilities import Examined
from stallmark.engines.base import Isolation
from stallmark.engines.mssql import bulk, variant_settings
from stallmark.engines.mssql.address import BOX
from stallmark.engines.mssql.server import (
    AZURE,
    EXPRESS,
    SQL_SERVER_2025,
    STANDARD,
    Server,
    auto_close_advice,
    compatibility_message,
)
from stallmark.engines.mssql.settings import ERROR_LOG, FILES, IN_DATABASE, PERFORMANCE, SECURITY, Right
from stallmark.errors import CallFailed

_WITHOUT = {
    PERFORMANCE: "nothing of waits, memory and stalls can be measured",
    IN_DATABASE: "neither Query Store nor waits for rows can be read",
    SECURITY: "it is not recorded whether files grow without being zeroed first",
    ERROR_LOG: "the error log is not watched for errors of the storage",
    FILES: "files are known by number and not by name",
}
"""The consequence of each missing right of a view. The first entry covers rights of one name before 2022. Abilities
report which other rights a run needs.
"""
_CANNOT_BUILD = "no database can be built: make it a member of db_owner"

_ISOLATION = "SET TRANSACTION ISOLATION LEVEL {isolation}; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

_RECOVERY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Recovery') AS nvarchar(60))"
UPDATEABILITY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(60))"
# A view that "SQL Database Basic, S0, and S1 service objectives, and databases in elastic pools" show to a role alone.
_STATE_OF_SERVER = "SELECT COUNT_BIG(*) FROM sys.dm_os_sys_info"
_ROLE = "##MS_ServerStateReader##"


def examine(server: Server) -> Iterator[Examined]:
    """Yield the findings on driver, edition, login and database."""
    identity = server.identity()  # opens the first connection
    yield Examined("ODBC driver", "ok", f"{server.loaded_driver}.")
    yield bulk.try_bulk_copy(server)
    if server.address.options.get("TrustServerCertificate", "").lower() in ("yes", "true"):
        yield Examined("encryption", "limited", "the server's certificate is not checked (TrustServerCertificate).")
    elif server.address.options.get("Encrypt", "yes").lower() in ("no", "optional", "false"):
        yield Examined(
            "encryption", "limited", f"what is sent may be read (Encrypt={server.address.options['Encrypt']})."
        )
    yield from _service(server)
    if identity.product == "SQL Server" and (
        most := limits(server.edition, identity.version[0], identity.version_text)
    ):
        yield Examined("edition", "limited" if server.edition == EXPRESS else "ok", most)
    if statements := variant_settings.noted_tempdb(server):
        sentence = f"Stallmark has placed its files. {variant_settings.tempdb_restore_hint(server, statements)}"
        yield Examined("tempdb", "limited", sentence)
    if server.is_babelfish:
        yield from _isolation(server)
    yield from _rights(server)
    if identity.product == "SQL Server" and server.edition not in AZURE:  # the service backs up logs itself
        yield from _recovery(server)
        yield from _auto_close(server)


def _service(server: Server) -> Iterator[Examined]:
    """Yield the managed service that runs the server, and the keys of a scenario that it refuses."""
    if server.service is BOX:
        return
    keys = ", ".join(f"`{key}`" for key in server.service.refused_keys)
    sentence = (
        f"this is {server.service.name}, where a scenario cannot have {keys}: docs/sql-server.md says what to do."
    )
    yield Examined("service", "limited", sentence)


def _recovery(server: Server) -> Iterator[Examined]:
    """Yield the behaviour of the log in a database that keeps it, as one restored from production often does."""
    try:
        [(model,)] = server.query(_RECOVERY)
    except CallFailed:
        return
    if model != "SIMPLE":
        yield Examined(
            "recovery model",
            "limited",
            f"it is {model}: from the first full backup on the log is kept until it is backed up, so it fills and "
            "grows under load. ALTER DATABASE CURRENT SET RECOVERY SIMPLE, or back it up while you measure.",
        )


def _auto_close(server: Server) -> Iterator[Examined]:
    try:
        advice = auto_close_advice(server)
    except CallFailed:
        return
    if advice:
        yield Examined("AUTO_CLOSE", "limited", f"{advice}.")


def _isolation(server: Server) -> Iterator[Examined]:
    """Yield the isolation levels that a Babelfish refuses as it is installed ("Babelfish supports transaction
    isolation levels", Babelfish for PostgreSQL). In its file, as a database's own settings are lost with its first
    temporary table."""
    for level in (Isolation.REPEATABLE_READ, Isolation.SERIALIZABLE):
        try:
            server.execute(_ISOLATION.format(isolation=level))
        except CallFailed as error:
            setting = f"babelfishpg_tsql.isolation_level_{level.lower().replace(' ', '_')} = 'pg_isolation'"
            yield Examined(
                f"isolation level {level}",
                "limited",
                f"this server refuses it ({error.message.rstrip('.')}), and the brokerage needs it: "
                f"write {setting} into its postgresql.conf and reload it.",
            )


def _rights(server: Server) -> Iterator[Examined]:
    try:
        granted = _granted(server)
        [(updateability,)] = server.query(UPDATEABILITY)
    except CallFailed as error:
        yield Examined("rights", "limited", f"the server does not tell what this login may do ({error.message}).")
        return
    for right, has in granted.items():
        if not has:
            yield _missing_right(server, right)
    if server.is_azure_database:
        yield from _role(server)
    if low := compatibility_message(server):
        yield Examined("compatibility level", "missing", low)
    if updateability == "READ_ONLY":
        yield Examined("database", "missing", "it is read-only: ALTER DATABASE … SET READ_WRITE, or name another.")


def _role(server: Server) -> Iterator[Examined]:
    """Yield the role that this tier of Azure SQL Database wants for the server's state, if the login lacks it."""
    try:
        server.query(_STATE_OF_SERVER)
    except CallFailed as refused:
        if "VIEW SERVER" not in refused.message:  # the refusal of the other tiers names a right in the database
            return
        yield Examined(
            _ROLE,
            "limited",
            f"in this service tier only the role {_ROLE} sees the server's state, so counters, memory and statements "
            f"cannot be measured: let the server's administrator run, in master, ALTER SERVER ROLE {_ROLE} ADD MEMBER "
            "its login.",
        )


def _missing_right(server: Server, right: str) -> Examined:
    consequence = next((lost for known, lost in _WITHOUT.items() if known.name(server) == right), None)
    if consequence is None:
        return Examined(right, "missing", f"this login has no {right}, so {_CANNOT_BUILD}.")
    # Rights on the server are granted in master only.
    place, grantor = "in master, ", server.service.grantor
    if " DATABASE " in right:
        place, grantor = "", ""
    sentence = f"this login has no {right}, so {consequence}: {place}GRANT {right} TO it{grantor}."
    return Examined(right, "limited", sentence)


def _granted(server: Server) -> dict[str, int]:
    """Return each right and whether this login has it."""
    if server.is_azure_database:
        sql = sql_file.statement(__name__, "rights_azure")
    else:
        questions = {right.name(server): _question(server, right) for right in _WITHOUT}
        sql = sql_file.statement(__name__, "rights").format(states=",\n       ".join(questions.values()))
    with server.cursor() as cursor:
        row = cursor.execute(sql).fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True))


def _question(server: Server, right: Right) -> str:
    """Return the expression that shows whether this login has a right, or another one that does as well."""
    asked = " | ".join(map(_has, right.names(server)))
    return f"{asked} AS [{right.name(server)}]"


def _has(name: str) -> str:
    """Return the expression that shows whether this login has a right on the server, or in the database."""
    securable = "QUOTENAME(DB_NAME()), 'DATABASE'" if name.startswith("VIEW DATABASE ") else "NULL, NULL"
    return f"HAS_PERMS_BY_NAME({securable}, '{name}')"


def limits(edition: int, major: int, name: str) -> str | None:
    """Return the limits of an edition as a sentence; None if the machine alone is the limit.

    `name` is that of the edition: Standard and Web have one number. From "Editions and supported features of SQL
    Server", 2017 to 2025.
    """
    newest = major >= SQL_SERVER_2025
    if edition == EXPRESS:
        return f"Express uses 1,410 MB of buffer pool, 4 cores and {50 if newest else 10} GB per database at most."
    if edition != STANDARD:
        return None
    if "Web Edition" in name:
        return "Web uses 64 GB of buffer pool and 16 cores at most."
    return f"Standard uses {256 if newest else 128} GB of buffer pool and {32 if newest else 24} cores at most."
