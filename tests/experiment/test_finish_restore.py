"""A command whose scenario starts from a copy first finishes a restore that was cut; no other command does."""

from pathlib import Path

import pytest
from support.mssql_server import says_it_is
from support.tds import odbc
from support.tds.answers import Count, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.errors import StallmarkError
from stallmark.experiment.target import Target

TEXT = nvarchar(128)


@pytest.fixture
def script() -> Script:
    """A server whose database "bank" was left offline by a restore of ours."""
    script = Script(databases=["master"])
    says_it_is(script)
    script.properties.values["stallmark.restore.bank"] = '{"was": "ONLINE"}'
    script.sql("'ServerName'", Rows([Column("name", TEXT)], [("DB",)]))
    script.sql("'stallmark.run'", Rows([Column("taken", INT)], [(0,)]))
    columns = [Column("state", TEXT), Column("access", TEXT), Column("closes", INT)]
    state = Rows(columns, [("OFFLINE", "MULTI_USER", 0)])
    script.sql("FROM sys.databases", state)
    script.sql("'VIEW DEFINITION'", Rows([Column("may", INT)], [(1,)]))
    script.sql("FROM sys.objects", Rows([Column("schema_name", TEXT), Column("one", TEXT)], []))

    def restore(_) -> list:
        assert script.databases
        script.databases.add("bank")
        return [Count(0)]

    script.sql("^RESTORE DATABASE", restore)
    return script


def entered(script: Script, scenario) -> list[str]:
    """The restores on the way in."""
    if reason := odbc.missing():
        pytest.skip(reason)
    with Responder(script, encryption="required") as server:
        url = f"mssql://tester:secret@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes"
        with Target(url).engine(scenario.workload, scenario):
            pass
    assert not server.faults
    return [it.text for it in server.requests if it.text.startswith("RESTORE")]


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))


def test_with_a_copy_to_start_from(script, read):
    [statement] = entered(script, read())
    assert "WITH REPLACE, RECOVERY" in statement and not script.properties.values


def test_and_not_without(script, read):
    with pytest.raises(StallmarkError, match=r"`reset: restore` finishes that, and so does RESTORE DATABASE \[bank\]"):
        entered(script, read("reset: restore", "reset: continue"))
    assert script.properties.values
