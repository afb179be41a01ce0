"""The reasons why a database cannot be built or driven: the server, the settings of our sessions, the role's rights."""

from collections.abc import Sequence

from stallmark.engines import sql_file
from stallmark.engines.postgres.server import PostgresServer
from stallmark.errors import CallFailed

READ_ONLY = "default_transaction_read_only"
REPLICATION_ROLE = "session_replication_role"


def why_reads_only(engine: PostgresServer) -> str | None:
    """Return why no session can write, as a sentence, or None."""
    is_standby, reads_only, _, login, *_ = _read(engine, ())
    if is_standby:
        return f"{engine.where} is a standby, which only reads: name its primary{_primary(engine)}."
    if reads_only:
        remedy = _remedy(engine, READ_ONLY, "off")
        return f"Sessions of {login} on {engine.where} only read ({READ_ONLY} is on): {remedy}."
    return None


def why_unchecked(engine: PostgresServer) -> str | None:
    """Return why the server checks no foreign key in our sessions, as a sentence, or None."""
    _, _, is_replica, login, *_ = _read(engine, ())
    if not is_replica:
        return None
    return (
        f"Sessions of {login} on {engine.where} check no foreign keys ({REPLICATION_ROLE} is replica), so a load would "
        f"do less there than elsewhere: {_remedy(engine, REPLICATION_ROLE, 'origin')}."
    )


def why_no_right(engine: PostgresServer, schemas: Sequence[str]) -> str | None:
    """Return the right that the role lacks, as a sentence, or None. `schemas` are those that a workload's tables are
    in."""
    *_, role, database, creates, is_built, only_read = _read(engine, schemas)
    if only_read:
        return (
            f"{role} may not read and change {only_read} on {engine.where}: name the role that built the database, or "
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {only_read.partition('.')[0]} TO {role}."
        )
    if not (creates or is_built):
        return f"{role} may create nothing on {engine.where}: GRANT CREATE ON DATABASE {database} TO {role}."
    return None


def _remedy(engine: PostgresServer, setting: str, value: str) -> str:
    whose = next((statement for name, _, statement in engine.role_settings() if name == setting), None)
    return f"{f'{whose} SET {setting} =' if whose else 'set it to'} {value}, or name another role"


def _primary(engine: PostgresServer) -> str:
    """Return the address of the primary as a clause, or nothing if this role does not learn it."""
    try:
        rows = engine.query(sql_file.read(__package__, "primary"))
    except CallFailed:
        return ""
    return "".join(f", {address}" for (address,) in rows if address)


def _read(engine: PostgresServer, schemas: Sequence[str]) -> tuple:
    [row] = engine.query(sql_file.read(__package__, "writable"), [[*schemas, "stallmark"]])
    return row
