"""SQL Server's engine against a responder that speaks its protocol: Microsoft's driver is real, the server is not."""

from typing import Any

import pytest
from support.mssql_server import new_server, says_it_is, server
from support.tds.answers import Hold, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.engine import MssqlEngine

__all__ = ["new_server", "server"]

LOCK: dict[str, Any] = {"taken": 0, "mode": "Exclusive"}
"""Answers of sp_getapplock and APPLOCK_MODE; None for no answer."""
LEADS_TO = {"name": "DB\\PROD"}
"""The server that the address leads to, by the name it has for itself."""
PASSWORD = "Corr3ct;h0rse}b=ttery"


@pytest.fixture
def script() -> Script:
    script = Script(password=PASSWORD, databases=["bank", "master"])
    says_it_is(script)
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(57,)]))
    script.sql("'ServerName'", lambda _: [Rows([Column("name", nvarchar(128))], [(LEADS_TO["name"],)])])
    script.sql(r"@Resource = 'stallmark\.run'", lambda _: [Rows([Column("taken", INT)], [(LOCK["taken"],)])])
    mode = [Column("mode", nvarchar(32))]
    script.sql("APPLOCK_MODE", lambda _: [Rows(mode, [(LOCK["mode"],)]) if LOCK["mode"] else Hold()])
    return script


@pytest.fixture
def engine(server: Responder, monkeypatch: pytest.MonkeyPatch, tmp_path) -> MssqlEngine:
    monkeypatch.setenv("SQLCMDPASSWORD", PASSWORD)
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    return MssqlEngine(f"mssql://boss@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")
