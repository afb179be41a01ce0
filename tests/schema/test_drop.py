"""Dropping what Stallmark has built, by name: nothing of others goes with it."""

import re

import pytest
from support.mssql_server import answering, engine_at, rows, says_it_is
from support.tds.script import Script

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.schema import deploy
from stallmark.schema.own import METADATA as OWN_TABLES
from stallmark.schema.own import drop_schemas, routines, things_of_others
from stallmark.transactions import WORKLOADS, find_workload


def deployed(database: EmbeddedEngine, name: str) -> None:
    """A database as a build of nothing leaves it."""
    workload = find_workload(name)
    for metadata in (OWN_TABLES, workload.metadata):
        deploy.create_tables(database, metadata)
    for batch in deploy.batches(workload.procedures(database.dialect)):
        database.execute(batch)


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_that_a_workload_makes_is_known_as_ours_and_dropped(database: EmbeddedEngine, name: str):
    deployed(database, name)
    used = database.schemas_in_use()
    assert used.keys() == {name, "stallmark"}
    assert things_of_others(used, database.dialect, find_workload(name)) == []
    assert drop_schemas(database, [find_workload(name)]) == [name, "stallmark"]
    assert database.schemas_in_use() == {}
    assert not database.query("SELECT nspname FROM pg_namespace WHERE nspname IN (%s, 'stallmark')", [name])


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("dialect", ["postgresql", "mssql"])
def test_every_routine_of_a_workload_is_known_by_its_name(name: str, dialect: str):
    workload = find_workload(name)
    created = len(re.findall(r"^CREATE\b.*\b(?:FUNCTION|PROCEDURE)\b", workload.procedures(dialect), re.MULTILINE))
    known = routines(workload, dialect)
    assert len(known) == created and {schema for schema, _ in known} <= {name}


@pytest.mark.parametrize("statement", ["CREATE TABLE bank.audit (n integer)", "CREATE TYPE bank.audit"])
def test_what_came_in_between_keeps_its_schema(database: EmbeddedEngine, monkeypatch, statement: str):
    deployed(database, "bank")
    database.execute(statement)
    monkeypatch.setattr(database, "schemas_in_use", dict)
    with pytest.raises(CallFailed, match="cannot drop schema bank because other objects depend on it"):
        drop_schemas(database, [find_workload("bank")])
    assert database.query("SELECT count(*) FROM pg_type WHERE typname = 'audit'") == [(1,)]
    assert "stallmark" in schemas(database), "so the same command can be given again"


def schemas(database: EmbeddedEngine) -> set[str]:
    return {name for (name,) in database.query("SELECT nspname FROM pg_namespace")}


def test_on_a_sql_server_nothing_is_dropped_beside_what_others_have():
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("FROM sys.objects", rows(["schema_name", "name"], ["bank", "accounts"], ["bank", "audit"]))
    script.sql("SCHEMATA|FROM \\[?sys\\]?\\.\\[?schemas", rows(["name"], ["bank"], ["stallmark"], ["dbo"]))
    script.sql(r"schema_name\(\)", rows([""], ["dbo"]))
    with answering(script) as server:
        with pytest.raises(StallmarkError, match=r"Nothing was dropped: .* has not made, bank\.audit\. Move"):
            drop_schemas(engine_at(server), [find_workload("bank")])
        assert not [request.text for request in server.requests if "DROP" in (request.text or "")]
