"""A database of several workloads: the rows of each as in a database of its own, and conditions part by part."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy.schema import Index
from support.building import SEED, checksums
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Count, Rows
from support.tds.datatypes import BIT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column
from support.tsql import parsers

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import ledger
from stallmark.loaders.load import build, foreign_object, recognise
from stallmark.loaders.plan import BatchShare, loader_for
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.schema.own import METADATA as OWN_TABLES
from stallmark.schema.own import drop_schemas
from stallmark.transactions import checks, find_workload
from stallmark.transactions.workload import Workload

BOTH = find_workload("bank+mail")
SCALE = loader_for("bank+mail").scale({"branches": 1, "mailboxes": 3, "messages": 10})


@pytest.fixture(scope="module")
def apart(embedded_server: EmbeddedServer) -> dict[str, tuple]:
    """Checksums of databases that hold one workload each, with the same scales and seed."""

    def alone(part: Workload) -> dict[str, tuple]:
        engine = EmbeddedEngine(embedded_server, f"{part.name}_alone")
        build(engine, part, loader_for(part.name).select_scale(SCALE), SEED, workers=1)
        return checksums(engine, part)

    return {table: sums for part in BOTH.parts for table, sums in alone(part).items()}


@pytest.fixture(scope="module")
def built(embedded_server: EmbeddedServer) -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(embedded_server, BOTH.name)
    first = build(engine, BOTH, SCALE, SEED, workers=1, part=BatchShare(1, 2))
    assert not first.complete and recognise(engine, BOTH, SCALE, SEED).state == "half-loaded"
    assert build(engine, BOTH, SCALE, SEED, workers=1).outcome == "continued"
    yield engine


def test_the_rows_of_each_are_those_of_a_database_of_its_own(built, apart):
    assert checksums(built, BOTH) == apart
    assert {batch.group.partition("/")[0] for batch in ledger.batches(built)} == {"bank", "mail"}


def test_it_is_known_by_all_that_it_holds(built):
    assert recognise(built, BOTH, SCALE, SEED).state == "complete"
    assert build(built, BOTH, SCALE, SEED, workers=1).outcome == "reused"
    assert foreign_object(built, BOTH) is None and foreign_object(built, BOTH.parts[0]).startswith("mail.")
    for other, scale in ((BOTH, SCALE | {"mailboxes": 4}), (BOTH.parts[0], {"branches": 1})):
        with pytest.raises(StallmarkError, match="holds another one than asked for"):
            recognise(built, other, scale, SEED)


def test_the_conditions_of_each_are_checked_with_its_own_numbers(built):
    results = checks.run(built, BOTH, SCALE, driven=False)
    assert len(results) == sum(len(part.conditions) for part in BOTH.parts)
    assert all(result.holds for result in results), [result for result in results if not result.holds]
    assert checks.keys(built, BOTH).holds
    built.execute("UPDATE bank.tellers SET tbalance = tbalance + 1 WHERE tid = 1")
    broken = [result.name for result in checks.run(built, BOTH, SCALE, driven=False) if not result.holds]
    built.execute("UPDATE bank.tellers SET tbalance = tbalance - 1 WHERE tid = 1")
    assert broken and all(name.startswith("bank: ") for name in broken)


def test_the_procedures_of_each_are_there(built):
    found = built.query(
        "SELECT pronamespace::regnamespace::text, count(*) FROM pg_proc"
        " WHERE pronamespace::regnamespace::text IN ('bank', 'mail') GROUP BY 1 ORDER BY 1"
    )
    assert [schema for schema, _ in found] == ["bank", "mail"]
    frames = {frame for kind in BOTH.parts[1].transactions for frame in kind.frames}
    assert found[1][1] >= len(frames)


def test_all_of_it_is_dropped(built):
    build(other := EmbeddedEngine(built.server, "dropped"), BOTH, SCALE, SEED, workers=1)
    assert drop_schemas(other, [BOTH]) == ["bank", "mail", "stallmark"]
    assert foreign_object(other, BOTH) is None and ledger.read(other) is None


def test_what_the_ledger_says_of_all_workloads_has_room():
    names = ["bank", "brokerage", "mail", "warehouse"]
    loader = loader_for("+".join(names))
    group, workload = OWN_TABLES.tables["stallmark.ledger"].c.table_group, OWN_TABLES.tables["stallmark.database"].c
    scale = loader.scale({"branches": 1, "factor": 1})
    assert max(len(one.name) for one in loader.groups(scale)) <= group.type.length
    assert len("+".join(names)) <= workload.workload.type.length
    assert len(str(scale)) <= workload.scale.type.length and len(str(loader.options)) <= workload.options.type.length


def test_sql_server_gets_the_keys_and_procedures_of_each_once():
    script = Script()
    says_it_is(script)
    named = nvarchar(128)
    script.sql("schema_name", Rows([Column("", named)], [("dbo",)]))
    script.sql("sys.stats_columns", Rows([Column("name", named)]))
    script.sql("FROM sys.indexes", Rows([Column("t", named), Column("i", named), Column("k", BIT)]))
    script.sql("ALTER TABLE|CREATE (UNIQUE )?INDEX|PROCEDURE|STATISTICS", Count(0))
    whole = ddl_of(BOTH.metadata)
    with answering(script) as server:
        deploy.finish(engine_at(server), whole, BOTH.procedures("mssql"), rows={}, step=lambda *_: None)
        asked = [request.text for request in server.requests if request.text]
    added = [re.search(r"ALTER TABLE (\w+\.\w+) ADD CONSTRAINT (\w+)", text) for text in asked]
    expected = [(it.table.fullname, it.name) for it in (*whole.keys, *whole.foreign_keys) if not isinstance(it, Index)]
    assert sorted(found.groups() for found in added if found) == sorted(expected)
    created = [match[1] for text in asked for match in re.finditer(r"^\s*CREATE PROCEDURE (\w+\.\w+)", text, re.M)]
    assert len(set(created)) == len(created) and {one.partition(".")[0] for one in created} == {"bank", "mail"}
    for part in BOTH.parts:
        its = {batch.strip() for batch in deploy.batches(part.procedures("mssql"))}
        assert its <= {text.strip() for text in asked}
    assert not parsers.wrong(text for text in asked if " CONSTRAINT " in text or "CREATE INDEX" in text)
