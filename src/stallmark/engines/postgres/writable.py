"""The reasons why nothing can be written in a database: the server, the session's settings, the role's rights."""

from collections.abc import Sequence

from stallmark.engines import sql_file
from stallmark.engines.postgres.server import PostgresServer

READ_ONLY = "default_transaction_read_only"


def why_reads_only(engine: PostgresServer) -> str | None:
    """Return why no session can write, as a sentence, or None."""
    standby, primary, reads_only, login, *_ = _read(engine, ())
    if standby:
        return f"{engine.where} is a standby, which only reads: name its primary{f', {primary}' if primary else ''}."
    if reads_only:
        given = (statement for name, _, statement in engine.role_settings() if name == READ_ONLY)
        whose = next(given, None)
        remedy = f"{whose} SET {READ_ONLY} = off, or name another role" if whose else "set it off, or name another role"
        return f"Sessions of {login} on {engine.where} only read ({READ_ONLY} is on): {remedy}."
    return None


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


def _read(engine: PostgresServer, schemas: Sequence[str]) -> tuple:
    [row] = engine.query(sql_file.read(__package__, "writable"), [[*schemas, "stallmark"]])
    return row
