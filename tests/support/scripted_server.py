"""A server that answers what a test scripts, and the engine that asks it through the real ODBC driver."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from stallmark.engines.mssql.engine import MssqlEngine
from support.tds import odbc
from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, BIT, FLOAT, INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

TYPES = {bool: BIT, int: BIGINT, float: FLOAT, str: nvarchar(4000)}


def rows(names: Sequence[str], *values: Sequence[Any]) -> Rows:
    """A result set; the type of a column is that of its first value that is not None."""
    kinds = [next((type(row[at]) for row in values if row[at] is not None), str) for at in range(len(names))]
    return Rows([Column(name, TYPES[kind]) for name, kind in zip(names, kinds, strict=True)], values)


class Server:
    """SQL Server as the engine sees it; `script` says what its views answer."""

    def __init__(
        self,
        version: str = "16.0.4105.2",
        edition: int = 3,
        banner: str = "Microsoft SQL Server",
        login: str = "watcher",
    ) -> None:
        self.script = Script(password="not a secret", databases=["bank"])
        self.responder = Responder(self.script)
        identity = Rows(
            [*[Column(name, nvarchar(300)) for name in ("v", "l", "e")], Column("n", INT), Column("b", nvarchar(300))],
            [(version, "RTM", "Developer Edition (64-bit)", edition, banner)],
        )  # fmt: skip
        self.script.sql(r"SERVERPROPERTY\('ProductVersion'\)", identity)
        self.script.sql("QUOTENAME", rows(["name"], [f"[{login}]"]))

    def engine(self) -> MssqlEngine:
        return MssqlEngine(f"mssql://tester@127.0.0.1:{self.responder.port}/bank?Encrypt=no&TrustServerCertificate=yes")

    def asked(self, words: str) -> list[str]:
        return [request.text for request in self.responder.requests if words in (request.text or "")]


@pytest.fixture
def new_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Servers by version and edition."""
    if reason := odbc.missing():
        pytest.skip(reason)
    monkeypatch.setenv("SQLCMDPASSWORD", "not a secret")
    made: list[Server] = []

    def make(**says: Any) -> Server:
        server = Server(**says)
        server.responder.__enter__()
        made.append(server)
        return server

    yield make
    for server in made:
        server.responder.__exit__()
        assert not server.responder.faults


@pytest.fixture
def server(new_server: Callable[..., Server]) -> Server:
    return new_server()
