"""Several workloads on one server, in one database or in one each: each is as one that is alone, and all are known and
built together."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.schema import Index
from support.building import SEED, checksums
from support.embedded_servers import copied
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Count, Rows
from support.tds.datatypes import BIT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column
from support.tsql import parser

from stallmark import engines
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import BatchShare, LoadPlan, databases, ledger, load, loader_for
from stallmark.loaders.load import BuildProgress
from stallmark.schema import deploy, size
from stallmark.schema.ddl import ddl_of
from stallmark.schema.deploy import OWN_TABLES, drop_schemas
from stallmark.transactions import WorkloadsTogether, checks, find_workload

BOTH, EACH = find_workload("bank+mail"), find_workload("bank,mail")
SCALE = loader_for("bank+mail").scale({"branches": 1, "mailboxes": 3, "messages": 10})


def on(server: EmbeddedServer, prefix: str, apart: bool = True) -> EmbeddedEngine:
    """One database, or `apart` one for each workload."""
    engine = EmbeddedEngine(server, f"{prefix}_main")
    if apart:
        engine.by_workload = {name: EmbeddedEngine(server, f"{prefix}_{name}") for name in ("bank", "mail")}
    return engine


@dataclass
class Built:
    engine: EmbeddedEngine
    workload: WorkloadsTogether


@pytest.fixture(scope="module")
def alone(embedded_server: EmbeddedServer) -> dict[str, EmbeddedEngine]:
    """A database of each workload by itself."""
    made = {part.name: EmbeddedEngine(embedded_server, f"{part.name}_alone") for part in BOTH.parts}
    for part in BOTH.parts:
        load.build(made[part.name], part, loader_for(part.name).select_scale(SCALE), SEED, workers=1)
    return made


@pytest.fixture(scope="module", params=[BOTH, EACH], ids=["one database", "one each"])
def built(request: pytest.FixtureRequest, embedded_server: EmbeddedServer) -> Built:
    workload, seen = request.param, list[BuildProgress]()
    engine = on(embedded_server, workload.name.replace(",", "_"), apart=workload is EACH)
    first = databases.build(engine, workload, SCALE, SEED, workers=1, part=BatchShare(1, 2))
    assert not first.complete and databases.recognise(engine, workload, SCALE, SEED).state == "half-loaded"
    assert 0 < databases.missing(engine, workload, SCALE, SEED) < 1 and ledger.read(engine).loaded_bytes is None
    assert databases.build(engine, workload, SCALE, SEED, workers=1, progress=seen.append).outcome == "continued"
    assert [one.rows for one in seen] == sorted(one.rows for one in seen)
    assert len({one.rows_total for one in seen}) == 1
    return Built(engine, workload)


def test_each_is_as_a_database_of_that_workload_alone(built, alone):
    for part in BOTH.parts:
        assert checksums(built.engine.database_of(part.name), part) == checksums(alone[part.name], part)
    if built.workload is BOTH:
        assert {batch.group.partition("/")[0] for batch in ledger.batches(built.engine)} == {"bank", "mail"}
        return
    for part in BOTH.parts:
        own = built.engine.database_of(part.name)
        assert ledger.read(own).identity == ledger.read(alone[part.name]).identity
        assert deploy.schemas_of(part.metadata) == [part.schema]
        assert own.schemas_in_use().keys() == {part.schema, "stallmark"}
    assert built.engine.schemas_in_use() == {}, "the database of the URL holds nothing"


def test_they_are_known_by_what_they_hold(built):
    engine, workload = built.engine, built.workload
    assert databases.recognise(engine, workload, SCALE, SEED).state == "complete"
    assert databases.missing(engine, workload, SCALE, SEED) == 0
    assert databases.build(engine, workload, SCALE, SEED, workers=1).outcome == "reused"
    with pytest.raises(StallmarkError, match=r"its scale is .*mailboxes 3.*asked is .*mailboxes 4"):
        databases.recognise(engine, workload, SCALE | {"mailboxes": 4}, SEED)
    entry = ledger.read(engine)
    assert entry.identity.workload == workload.name and entry.identity.scale == SCALE
    assert entry.loaded_bytes == sum(ledger.read(one).loaded_bytes for one in engine.databases())
    assert json.loads(entry.label)["workload"] == workload.name
    if workload is BOTH:
        bank = BOTH.parts[0]
        assert databases.foreign_object(engine, bank).startswith("mail.")
        with pytest.raises(StallmarkError, match="holds another one than asked for"):
            databases.recognise(engine, bank, {"branches": 1}, SEED)


def test_one_that_is_missing_leaves_them_unknown(embedded_server):
    engine = on(embedded_server, "half")
    assert ledger.is_empty(engine) and databases.recognise(engine, EACH, SCALE, SEED).state == "absent"
    load.build(engine.database_of("mail"), EACH.parts[1], loader_for("mail").select_scale(SCALE), SEED, workers=1)
    assert ledger.read(engine) is None and not ledger.is_empty(engine)
    assert databases.recognise(engine, EACH, SCALE, SEED).state == "half-loaded"


def test_what_others_have_put_into_any_of_them_is_found(built):
    assert databases.foreign_object(built.engine, built.workload) is None
    built.engine.database_of("mail").execute("CREATE SCHEMA theirs; CREATE TABLE theirs.thing (a int)")
    assert databases.foreign_object(built.engine, built.workload) == "theirs.thing"
    built.engine.database_of("mail").execute("DROP SCHEMA theirs CASCADE")


def test_the_conditions_of_each_are_checked_where_it_is_with_its_own_numbers(built):
    results = checks.run(built.engine, built.workload, SCALE, driven=False)
    assert len(results) == sum(len(part.conditions) for part in BOTH.parts)
    assert all(result.holds for result in results), [result for result in results if not result.holds]
    assert checks.keys(built.engine, built.workload).holds
    mail = built.engine.database_of("mail")
    mail.execute("UPDATE mail.folder SET fo_bytes = fo_bytes + 1 WHERE fo_mb_id = 1")
    results = checks.run(built.engine, built.workload, SCALE, driven=False)
    mail.execute("UPDATE mail.folder SET fo_bytes = fo_bytes - 1 WHERE fo_mb_id = 1")
    broken = [result.name for result in results if not result.holds]
    assert broken and all(name.startswith("mail: ") for name in broken)


def test_the_procedures_of_each_are_there(built):
    for part in BOTH.parts:
        [(found,)] = built.engine.database_of(part.name).query(
            f"SELECT count(*) FROM pg_proc WHERE pronamespace::regnamespace::text = '{part.name}'"
        )
        assert found >= len({frame for kind in part.transactions for frame in kind.frames}) > 0


def test_what_drives_one_drives_all(built):
    ledger.note_driven(built.engine)
    assert all(ledger.read(one).driven for one in built.engine.databases()) and ledger.read(built.engine).driven


def test_what_is_asked_of_all_is_asked_of_each(built):
    sizes = [one.bytes_used() for one in built.engine.databases()]
    assert engines.bytes_used(built.engine) == sum(sizes) and min(sizes) > 0
    assert engines.copied(built.engine) == (built.engine,), "the copy of an embedded server holds all of them"


def test_room_for_all_is_there_before_the_first_is_begun(embedded_server, monkeypatch):
    engine = on(embedded_server, "large")
    needs = []
    for _, part, own in databases.databases(engine, EACH, SCALE):
        rows = LoadPlan(loader_for(part.name).groups(own)).rows
        needs.append(size.estimate(part.metadata.tables.values(), rows, "postgresql", workers=1).build_bytes)
    monkeypatch.setattr(EmbeddedEngine, "free_bytes", lambda _: max(needs) + 1)
    with pytest.raises(StallmarkError, match="The disk is too small"):
        databases.build(engine, EACH, SCALE, SEED, workers=1)
    assert ledger.is_empty(engine)


def test_a_copy_brings_back_every_database(template: Path):
    with copied(template) as server:
        engine = on(server, "kept")
        databases.build(engine, EACH, SCALE, SEED, workers=1)
        [holder] = engines.copied(engine)
        holder.backup.keep(ledger.read(engine).label)
        before = {part.name: checksums(engine.database_of(part.name), part) for part in EACH.parts}
        for part, table in zip(EACH.parts, ("bank.history", "mail.message"), strict=True):
            engine.database_of(part.name).execute(f"CREATE TABLE {part.schema}.more (a int); TRUNCATE {table} CASCADE")
        ledger.note_driven(engine)
        holder.backup.restore()
        assert {part.name: checksums(engine.database_of(part.name), part) for part in EACH.parts} == before
        assert not ledger.read(engine).driven and ledger.read(engine).label == holder.backup.label()


def test_all_of_one_database_is_dropped(embedded_server):
    engine = on(embedded_server, "dropped", apart=False)
    databases.build(engine, BOTH, SCALE, SEED, workers=1, part=BatchShare(1, 2))
    assert drop_schemas(engine, [BOTH]) == ["bank", "mail", "stallmark"]
    assert databases.foreign_object(engine, BOTH) is None and ledger.read(engine) is None


def test_what_the_ledger_says_of_all_workloads_has_room():
    names = ["bank", "brokerage", "mail", "warehouse"]
    loader = loader_for("+".join(names))
    group, workload = OWN_TABLES.tables["stallmark.ledger"].c.table_group, OWN_TABLES.tables["stallmark.database"].c
    scale = loader.scale({"branches": 1, "factor": 1})
    assert max(len(one.name) for one in loader.groups(scale)) <= group.type.length
    assert len("+".join(names)) <= workload.workload.type.length
    assert len(str(scale)) <= workload.scale.type.length and len(str(loader.options)) <= workload.options.type.length


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """Return what SQL Server is asked for the keys and procedures of both."""
    script = Script()
    says_it_is(script)
    named = nvarchar(128)
    script.sql("schema_name", Rows([Column("", named)], [("dbo",)]))
    script.sql("sys.stats_columns", Rows([Column("name", named)]))
    script.sql("FROM sys.indexes", Rows([Column("t", named), Column("i", named), Column("k", BIT)]))
    script.sql("ALTER TABLE|CREATE (UNIQUE )?INDEX|PROCEDURE|STATISTICS", Count(0))
    with answering(script) as server:
        procedures = BOTH.procedures("mssql")
        deploy.finish(engine_at(server), ddl_of(BOTH.metadata), procedures, rows={}, step=lambda *_: None)
        return [request.text for request in server.requests if request.text]


def test_sql_server_gets_the_keys_and_procedures_of_each_once(asked):
    whole = ddl_of(BOTH.metadata)
    added = [re.search(r"ALTER TABLE (\w+\.\w+) ADD CONSTRAINT (\w+)", text) for text in asked]
    expected = [(it.table.fullname, it.name) for it in (*whole.keys, *whole.foreign_keys) if not isinstance(it, Index)]
    assert sorted(found.groups() for found in added if found) == sorted(expected)
    created = [match[1] for text in asked for match in re.finditer(r"^\s*CREATE PROCEDURE (\w+\.\w+)", text, re.M)]
    assert len(set(created)) == len(created) and {one.partition(".")[0] for one in created} == {"bank", "mail"}
    for part in BOTH.parts:
        its = {batch.strip() for batch in deploy.batches(part.procedures("mssql"))}
        assert its <= {text.strip() for text in asked}


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_parses(asked):
    assert not any(map(parser.errors, asked))
