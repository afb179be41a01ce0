"""Every kind of scenario with SQL of a user's own as its load, or one of several."""

import json

import psycopg
import pytest
from ruamel.yaml import YAML
from support.clusters import ClusterEngine
from support.command_line import stallmark
from support.own_sql import newest

from stallmark.errors import StallmarkError
from stallmark.experiment.work import load_specs, work_of_loads
from stallmark.own_sql.command import STARTER
from stallmark.record.reader import find_records
from stallmark.scenarios.read import read_document

ROWS = 40_000
WIDE = {
    "setup": f"""
        CREATE TABLE item (id integer PRIMARY KEY, n integer NOT NULL DEFAULT 0, text text NOT NULL);
        INSERT INTO item SELECT n, 0, repeat(md5(n::text), 10) FROM generate_series(1, {ROWS}) AS n;
        CREATE INDEX item_lower ON item (lower(left(text, 8)));
    """,
    "look": "SELECT id, text FROM item WHERE id = :id",
    "change": "UPDATE item SET n = n + 1 WHERE id = :id; SELECT n FROM item WHERE id = :id",
    "workload": {"transactions": {"look": 8, "change": 2}, "parameters": {"id": {"from": 1, "to": ROWS}}},
    "condition": "SELECT id FROM item WHERE n < 0",
}
TIMES = {"warm_up": "0s", "measure": "1s", "variants": [{"name": "a"}]}
MINE = {"workload": {"sql": str(STARTER)}, "users": 2}
BANK = {"workload": "bank", "scale": {"branches": 1}, "users": 1}
OPEN = {"arrivals": {"kind": "poisson", "rate": 50}}
SLO = {"slo": {"read": "10s", "transactions": ["p95 < 10s"]}}
ARRAY = {"emulated_array": {"data": {"spindles": 4, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 150}}}
SLOWLY = {"think_time": {"mean": "20ms"}}
OWN_ONLY = {"loads": {"mine": MINE}}
BOTH = {"loads": {"mine": MINE, "bank": BANK}}


@pytest.fixture
def wide(tmp_path):
    """A folder whose data are larger than the smallest buffer pool; on its table is an index of an expression."""
    folder = tmp_path / "wide"
    (folder / "conditions").mkdir(parents=True)
    for name in ("setup", "look", "change"):
        (folder / f"{name}.sql").write_text(WIDE[name])
    (folder / "conditions/counted.sql").write_text(WIDE["condition"])
    with (folder / "workload.yaml").open("w") as file:
        YAML().dump(WIDE["workload"], file)
    return folder


TAKEN = {
    "curve": MINE | {"buffer_pool": {"curve": "auto", "from": "10 %", "to": "90 %"}},
    "shares of the data": MINE | {"variants": [{"name": "a", "buffer_pool": "10 %"}], "start_cache": "prefilled"},
    "devices": MINE | ARRAY | {"variants": [{"name": "a"}, {"name": "b", "emulated_array": "bare"}]},
    "users": MINE | {"users": [1, 2, 4], "think_time": {"mean": "10ms"}},
    "rate": MINE | OPEN,
    "ceiling of users": {"workload": MINE["workload"], "search": {"of": "users", "from": 1, "to": 8}} | SLO,
    "ceiling of a rate": MINE | {"arrivals": {"kind": "fixed"}, "search": {"of": "rate", "from": 1, "to": 8}} | SLO,
    "beside ours": BOTH | {"alone": True},
    "beside raw I/O": {"loads": {"mine": MINE, "scan": {"raw": "scan"}}},
    "in databases": BOTH | {"databases": {"bank": {}, "shop": {}}},
    "ceiling of all": {"loads": {"mine": MINE | OPEN, "b": BANK}, "search": {"of": "load", "from": 1, "to": 4}} | SLO,
    "sizing": OWN_ONLY | {"replay": {"size": "64MiB"}, "search": {"of": "load", "from": 1, "to": 4}} | SLO,
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("kind", TAKEN)
def test_every_kind_takes_own_sql_and_records_it(kind):
    scenario = read_document({"name": "own"} | TIMES | TAKEN[kind])
    assert scenario == read_document(scenario.model_dump(mode="json"))
    [variant, *_] = scenario.sized()
    [spec, *_] = (spec for spec in load_specs(scenario, variant) if spec.workload == "shop")
    assert spec.definition["setup"] and spec.deck["rent_film"] == 4
    work = work_of_loads(scenario, variant, "postgresql")
    recorded = [load.workload for load in work.loads if load.workload] or [work.workload]
    [own] = (workload for workload in recorded if workload.name == "shop")
    assert {kind.name for kind in own.transactions} == {*spec.deck}


AT_A_RATE = {"name": "queue", "transactions": {"look": {"sql": "SELECT 1"}, "take": {"sql": "SELECT 2", "rate": 5}}}

REFUSED = {
    "sizing with a rate": ({"loads": {"mine": MINE | {"workload": {"sql": AT_A_RATE}}}, "replay": {"size": "64MiB"},
                            "search": {"of": "load", "from": 1, "to": 4}} | SLO, "take of mine has a rate of its own"),
    "cells": (OWN_ONLY | {"cells": [1, 2]}, "the data of mine are yours"),
    "queries": ({"workload": {"sql": str(STARTER)}, "queries": {"run": "power"}, "measure": None, "warm_up": None},
                "has no queries"),
    "placement": (MINE | {"database": {"recovery": "simple"}}, "that of shop is yours"),
    "placement of one": (BOTH | {"databases": {"bank": {}, "shop": {"recovery": "simple"}}}, "that of shop is yours"),
    "no such database": (BOTH | {"databases": {"bank": {}, "mail": {}}}, "leaves out shop"),
    "scale": ({"workload": MINE["workload"] | {"scale": {"branches": 1}}, "users": 1}, "no scale"),
    "locality": ({"workload": MINE["workload"] | {"locality": 0.5}, "users": 1}, "has no customers"),
    "mix": ({"workload": MINE["workload"] | {"mix": {"sell": 1}}, "users": 1}, "sell is no transaction of shop"),
    "threshold": (MINE | {"thresholds": ["sell.p95 < 1s"]}, "no transaction sell"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_makes_no_sense_of_own_sql_is_refused_in_a_sentence(kind):
    keys, reason = REFUSED[kind]
    document = {key: value for key, value in ({"name": "own"} | TIMES | keys).items() if value is not None}
    with pytest.raises(StallmarkError, match=reason) as refused:
        read_document(document)
    assert "\n" not in str(refused.value)


def test_two_folders_of_one_name_are_refused(tmp_path):
    loads = {}
    for load in ("one", "two"):
        (folder := tmp_path / load / "orders").mkdir(parents=True)
        (folder / "look.sql").write_text(f"SELECT '{load}'")
        loads[load] = {"workload": {"sql": str(folder)}, "users": 1}
    with pytest.raises(StallmarkError, match="one and that of two are both called orders"):
        read_document({"name": "own", "loads": loads} | TIMES)
    loads["two"]["workload"] = loads["one"]["workload"]
    read_document({"name": "own", "loads": loads} | TIMES)


def written(tmp_path, name: str, **keys):
    """Write a scenario and return its path."""
    with (path := tmp_path / f"{name}.yaml").open("w") as file:
        YAML().dump({"name": name} | TIMES | keys, file)
    return path


@pytest.mark.server
def test_a_curve_over_a_users_data_is_recorded_reported_compared_and_exported(wide, tmp_path, read_once):
    curve = {"curve": "auto", "from": "50 %", "to": "200 %", "sizes": 5, "tolerance": "50 %"}
    path = written(
        tmp_path,
        "curve",
        workload={"sql": str(wide)},
        buffer_pool=curve,
        start_cache="prefilled",
        **ARRAY,
        # Of fewer transactions the few reads that others make are too large a share.
        think_time={"mean": "5ms"},
    )
    place = ("--data-dir", tmp_path / "db", "--out", tmp_path / "runs")
    result = stallmark("run", path, "--users", 3, *place, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    [folder] = (tmp_path / "runs").iterdir()
    first, *others = find_records([folder])
    assert len(others) in range(1, 5)
    for record in (first, *others):
        manifest = record.manifest
        assert manifest.steps[0].users == 3 and [condition.holds for condition in manifest.conditions] == [True]
        assert manifest.database.bytes_before > ROWS * 320
    summary = json.loads(result.stdout)
    steps = [step for run in summary["runs"] for step in run["steps"]]
    small, *_, large = sorted(steps, key=lambda step: step["buffer_pool_bytes"])
    assert small["reads_per_transaction"] > 0.1
    assert large["reads_per_transaction"] < 0.02, "the pool was filled with all of the data"
    for command in (("compare",), ("whatif",), ("export", "--flat", "-"), ("status",)):
        shown = stallmark(command[0], folder, *command[1:])
        assert shown.exit_code in (0, 3, 5), shown.output


@newest
@pytest.mark.server
def test_beside_a_bank_a_users_database_holds_nothing_of_ours(engine: ClusterEngine, shop, tmp_path):
    together = written(tmp_path, "together", **BOTH, reset="continue")
    slow = {"loads": {name: load | SLOWLY for name, load in BOTH["loads"].items()}}
    apart = written(tmp_path, "apart", **slow, databases={"bank": {}, "shop": {}}, reset="continue")
    restored = written(tmp_path, "restored", **BOTH, databases={"bank": {}, "shop": {}})

    def run(path, *options):
        return stallmark("run", path, "--server", shop, "--out", tmp_path / "runs", *options)

    try:
        for path, options, reason in (
            (together, ("--shared",), "databases: {bank: {}, shop: {}}"),
            (apart, (), "add --shared"),
            (restored, ("--shared",), "reset: continue"),
        ):
            refused = run(path, *options)
            assert refused.exit_code == 3 and reason in " ".join(refused.output.split()), refused.output
        done = run(apart, "--shared", "--json")
        assert done.exit_code == 0, done.output
        loads = json.loads(done.stdout)["loads"]
        assert all(load["runs"][0]["steps"][0]["tps"] > 0 for load in loads.values())
        transactions = loads["mine"]["runs"][0]["steps"][0]["transactions"]
        assert {kind["name"] for kind in transactions} >= {"rent_film", "browse_films"}
        [record] = find_records([next((tmp_path / "runs").iterdir())])
        held = {condition.name for condition in record.manifest.conditions if condition.holds}
        assert held >= {"shop: copies_out"} and len(held) == len(record.manifest.conditions)
        assert engine.query("SELECT count(*) > 0 FROM rental") == [(True,)]
        assert engine.query("SELECT nspname FROM pg_namespace WHERE nspname IN ('stallmark', 'bank')") == []
    finally:
        with psycopg.connect(shop, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS postgres_bank")


@pytest.mark.server
def test_the_pool_is_filled_with_a_users_tables_whatever_their_indexes(engine: ClusterEngine, shop):
    engine.execute(WIDE["setup"])
    for index in ("USING gin (to_tsvector('simple', text))", "(id) INCLUDE (text) WHERE n = 0", "USING brin (id)"):
        engine.execute(f"CREATE INDEX ON item {index}")
    size = engine.query("SELECT pg_relation_size('item') + pg_relation_size('item_lower')")[0][0]
    assert 0 < engine.prefill.fill(*engine.schemas_in_use()) <= min(size * 4, engine.buffer_pool_bytes())
