"""A server that answers what a test scripts, and the engine that asks it through the real ODBC driver."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.schema.deploy import OWN_TABLES, connected
from support.tds import odbc
from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, BIT, FLOAT, INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

ENTERPRISE, STANDARD, EXPRESS, AZURE_DATABASE, MANAGED_INSTANCE = 3, 2, 4, 5, 8
_NAMES = {
    ENTERPRISE: "Developer Edition (64-bit)",
    STANDARD: "Standard Edition (64-bit)",
    EXPRESS: "Express Edition (64-bit)",
}
TYPES = {bool: BIT, int: BIGINT, float: FLOAT, str: nvarchar(4000)}


def rows(names: Sequence[str], *values: Sequence[Any]) -> Rows:
    """A result set; the type of a column is that of its first value that is not None."""
    kinds = [next((type(row[at]) for row in values if row[at] is not None), str) for at in range(len(names))]
    return Rows([Column(name, TYPES[kind]) for name, kind in zip(names, kinds, strict=True)], values)


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


def runs_on(script: Script, rds: bool = False, cloud_sql: bool = False) -> None:
    """Answer as a managed service does: RDS by its database, Cloud SQL by its role; both NULL on anybody's server."""
    script.sql("CustomerDbRootRole", rows(["rds", "cloud_sql"], (5 if rds else None, 1 if cloud_sql else None)))


@contextmanager
def answering(script: Script, encryption: Literal["none", "required", "never"] = "required") -> Iterator[Responder]:
    """Skips the test where there is no driver."""
    if reason := odbc.missing():
        pytest.skip(reason)
    with Responder(script, encryption=encryption) as server:
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
        for its in (metadata, OWN_TABLES):
            its.drop_all(connection)


@pytest.fixture
def script() -> Script:
    return Script(databases=["bank", "master", "tempdb"])


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    with answering(script) as server:
        yield server


@pytest.fixture
def engine(server: Responder) -> MssqlEngine:
    return engine_at(server)


class Server:
    """A SQL Server of a version and edition; `script` says what its views answer."""

    def __init__(self, responder: Responder, script: Script):
        self.responder, self.script = responder, script

    def engine(self) -> MssqlEngine:
        return MssqlEngine(f"mssql://tester:secret@127.0.0.1:{self.responder.port}/bank?Encrypt=no")

    def asked(self, words: str) -> list[str]:
        return [request.text for request in self.responder.requests if words in (request.text or "")]


@pytest.fixture
def new_server() -> Iterator[Callable[..., Server]]:
    """Servers by what `says_it_is` takes, and `login`, which has the name of its user."""
    with ExitStack() as started:

        def make(login: str = "watcher", **says: Any) -> Server:
            script = Script(databases=["bank"])
            says_it_is(script, **says)
            script.sql("SELECT QUOTENAME", rows(["name"], [f"[{login}]"]))
            return Server(started.enter_context(answering(script, encryption="none")), script)

        yield make
