"""A responder as SQL Server, and the engine that asks it through the real ODBC driver."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.schema.deploy import connected
from stallmark.schema.ledger import METADATA as OWN
from support.tds import odbc
from support.tds.answers import Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

ENTERPRISE, STANDARD, EXPRESS, AZURE_DATABASE, MANAGED_INSTANCE = 3, 2, 4, 5, 8
_NAMES = {
    ENTERPRISE: "Developer Edition (64-bit)",
    STANDARD: "Standard Edition (64-bit)",
    EXPRESS: "Express Edition (64-bit)",
}


def says_it_is(
    script: Script,
    version: str = "16.0.4085.2",
    edition: int = ENTERPRISE,
    banner: str = "Microsoft SQL Server",
    name: str | None = None,
) -> None:
    """`edition` and `name` are SERVERPROPERTY's EngineEdition and Edition."""
    columns = [Column(it, INT if it == "engine" else nvarchar(300)) for it in ("v", "l", "e", "engine", "b")]
    row = (version, "RTM", name or _NAMES.get(edition, "SQL Azure"), edition, banner)
    script.sql(r"SERVERPROPERTY\('ProductVersion'\)", Rows(columns, [row]))


@contextmanager
def answering(script: Script) -> Iterator[Responder]:
    """Skips the test where there is no driver."""
    if reason := odbc.missing():
        pytest.skip(reason)
    with Responder(script, encryption="required") as server:
        yield server
    assert not server.faults


def engine_at(server: Responder) -> MssqlEngine:
    return MssqlEngine(f"mssql://tester:secret@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")


def empty(engine: MssqlEngine, metadata: sa.MetaData) -> None:
    """Drop what a build has made of a workload, and Stallmark's own."""
    schema = metadata.schema
    with connected(engine) as connection:
        procedures = sa.text("SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID(:schema)")
        for (name,) in connection.execute(procedures, {"schema": schema}).all():
            connection.execute(sa.text(f"DROP PROCEDURE {schema}.{name}"))
        for its in (metadata, OWN):
            its.drop_all(connection)
