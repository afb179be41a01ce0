"""Databases of several workloads on one server: each is as one that is alone, and all are known and built together."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.building import SEED, checksums

from stallmark.engines import several
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import databases, ledger, load
from stallmark.loaders.load import BuildProgress
from stallmark.loaders.plan import BatchShare, LoadPlan, loader_for
from stallmark.schema import deploy, size
from stallmark.transactions import checks, find_workload

BOTH = find_workload("bank,mail")
SCALE = loader_for(BOTH.name).scale({"branches": 1, "mailboxes": 3, "messages": 10})


def on(server: EmbeddedServer, prefix: str) -> EmbeddedEngine:
    engine = EmbeddedEngine(server, f"{prefix}_main")
    engine.by_workload = {name: EmbeddedEngine(server, f"{prefix}_{name}") for name in ("bank", "mail")}
    return engine


@pytest.fixture(scope="module")
def built(embedded_server: EmbeddedServer) -> Iterator[EmbeddedEngine]:
    engine = on(embedded_server, "each")
    first = databases.build(engine, BOTH, SCALE, SEED, workers=1, part=BatchShare(1, 2))
    assert not first.complete and databases.recognise(engine, BOTH, SCALE, SEED).state == "half-loaded"
    assert 0 < databases.missing(engine, BOTH, SCALE, SEED) < 1 and ledger.read(engine).loaded_bytes is None
    seen: list[BuildProgress] = []
    assert databases.build(engine, BOTH, SCALE, SEED, workers=1, progress=seen.append).outcome == "continued"
    assert [one.rows for one in seen] == sorted(one.rows for one in seen)
    assert len({one.rows_total for one in seen}) == 1 and seen[-1].phase != "load"
    yield engine


def test_each_is_as_a_database_of_that_workload_alone(built, embedded_server):
    for part in BOTH.parts:
        alone = EmbeddedEngine(embedded_server, f"{part.name}_by_itself")
        load.build(alone, part, loader_for(part.name).select_scale(SCALE), SEED, workers=1)
        own = built.database_of(part.name)
        assert checksums(own, part) == checksums(alone, part)
        assert ledger.read(own).identity == ledger.read(alone).identity
        assert deploy.schemas_of(part.metadata) == [part.schema] and own.schemas_in_use().keys() == {
            part.schema,
            "stallmark",
        }
    assert built.schemas_in_use() == {}, "the database of the URL holds nothing"


def test_they_are_known_by_what_they_hold(built):
    assert databases.recognise(built, BOTH, SCALE, SEED).state == "complete"
    assert databases.missing(built, BOTH, SCALE, SEED) == 0
    assert databases.build(built, BOTH, SCALE, SEED, workers=1).outcome == "reused"
    with pytest.raises(StallmarkError, match=r"its scale is .*mailboxes 3.*asked is .*mailboxes 4"):
        databases.recognise(built, BOTH, SCALE | {"mailboxes": 4}, SEED)
    entry = ledger.read(built)
    assert entry.identity.workload == "bank,mail" and entry.identity.scale == SCALE
    assert entry.loaded_bytes == sum(ledger.read(one).loaded_bytes for one in built.databases())
    assert json.loads(entry.label)["workload"] == "bank,mail"


def test_one_that_is_missing_leaves_them_unknown(embedded_server):
    engine = on(embedded_server, "half")
    assert ledger.is_empty(engine) and databases.recognise(engine, BOTH, SCALE, SEED).state == "absent"
    load.build(engine.database_of("mail"), BOTH.parts[1], loader_for("mail").select_scale(SCALE), SEED, workers=1)
    assert ledger.read(engine) is None and not ledger.is_empty(engine)
    assert databases.recognise(engine, BOTH, SCALE, SEED).state == "half-loaded"


def test_what_others_have_put_into_any_of_them_is_found(built):
    assert databases.foreign_object(built, BOTH) is None
    built.database_of("mail").execute("CREATE SCHEMA theirs; CREATE TABLE theirs.thing (a int)")
    assert databases.foreign_object(built, BOTH) == "theirs.thing"
    built.database_of("mail").execute("DROP SCHEMA theirs CASCADE")


def test_conditions_and_keys_are_looked_at_where_they_are(built):
    results = checks.run(built, BOTH, SCALE, driven=False)
    assert len(results) == sum(len(part.conditions) for part in BOTH.parts)
    assert all(result.holds for result in results) and checks.keys(built, BOTH).holds
    built.database_of("mail").execute("UPDATE mail.folder SET fo_bytes = fo_bytes + 1 WHERE fo_mb_id = 1")
    broken = [result.name for result in checks.run(built, BOTH, SCALE, driven=False) if not result.holds]
    built.database_of("mail").execute("UPDATE mail.folder SET fo_bytes = fo_bytes - 1 WHERE fo_mb_id = 1")
    assert broken and all(name.startswith("mail: ") for name in broken)


def test_what_drives_one_drives_all(built):
    ledger.note_driven(built)
    assert [ledger.read(one).driven for one in built.databases()] == [True, True] and ledger.read(built).driven


def test_what_is_asked_of_all_is_asked_of_each(built):
    sizes = [one.bytes_used() for one in built.databases()]
    assert several.bytes_used(built) == sum(sizes) and min(sizes) > 0
    assert several.copied(built) == (built,), "the copy of an embedded server holds all of them"


def test_room_for_all_is_there_before_the_first_is_begun(embedded_server, monkeypatch):
    engine = on(embedded_server, "large")
    needs = []
    for _, part, own in databases.databases(engine, BOTH, SCALE):
        rows = LoadPlan(loader_for(part.name).groups(own)).rows
        needs.append(size.estimate(part.metadata.tables.values(), rows, "postgresql", workers=1).build_bytes)
    monkeypatch.setattr(EmbeddedEngine, "free_bytes", lambda _: max(needs) + 1)
    with pytest.raises(StallmarkError, match="The disk is too small"):
        databases.build(engine, BOTH, SCALE, SEED, workers=1)
    assert ledger.is_empty(engine)


@pytest.mark.server
def test_a_copy_brings_back_every_database(tmp_path: Path):
    server = EmbeddedServer(tmp_path / "kept")
    try:
        engine = on(server, "kept")
        databases.build(engine, BOTH, SCALE, SEED, workers=1)
        [holder] = several.copied(engine)
        holder.backup.keep(ledger.read(engine).label)
        before = {part.name: checksums(engine.database_of(part.name), part) for part in BOTH.parts}
        for part, table in zip(BOTH.parts, ("bank.history", "mail.message"), strict=True):
            engine.database_of(part.name).execute(f"CREATE TABLE {part.schema}.more (a int); TRUNCATE {table} CASCADE")
        ledger.note_driven(engine)
        holder.backup.restore()
        assert {part.name: checksums(engine.database_of(part.name), part) for part in BOTH.parts} == before
        assert not ledger.read(engine).driven and ledger.read(engine).label == holder.backup.label()
    finally:
        server.close()
