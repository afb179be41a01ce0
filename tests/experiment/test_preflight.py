"""A scenario is refused where the server cannot give what it asks or others would lose what is theirs; and advice."""

import io
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from support.mssql_server import answering, engine_at, says_it_is
from support.remote import Remote, remote
from support.tds.answers import Count, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.engine import OWN_SESSIONS
from stallmark.engines.mssql.memory import MssqlMemory
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment import preflight
from stallmark.experiment.any_run import RunOrder
from stallmark.experiment.manifest import Place, PreparedStorage
from stallmark.experiment.preflight import (
    advice,
    advice_on_pools,
    caution_on_history,
    refuse_pool_sizes,
    refuse_what_cannot_be,
)
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.runs import Run
from stallmark.experiment.target import Target
from stallmark.lab.selftest_checks import selftest
from stallmark.lab.server_order import SHARE_OF_SQL_SERVER, ServerOrder
from stallmark.loaders import LoadPlan, loader_for
from stallmark.quantities import parse_size
from stallmark.scenarios.model import Scenario
from stallmark.scenarios.read import read_scenario, shipped
from stallmark.transactions import find_workload

__all__ = ["remote"]


@pytest.mark.parametrize(
    ("connections", "workers"), [(OWN_SESSIONS + 2, None), (32_767, 66), (OWN_SESSIONS + 2, 512), (OWN_SESSIONS + 2, 0)]
)
def test_more_users_than_a_sql_server_takes_and_its_own_words_for_that(read, tmp_path, connections, workers):
    """Worker threads: 512 on 4 cores or fewer ("Configure the max worker threads server configuration option"). A
    Babelfish 4.4 has the view, and 0 in it."""
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("@@MAX_CONNECTIONS", Rows([Column("most", INT)], [(connections,)]))
    if workers is not None:
        script.sql("max_workers_count", Rows([Column("workers", INT)], [(workers,)]))
    plain = ("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]")
    with answering(script) as server:
        engine = engine_at(server)
        refuse_what_cannot_be(read(sets=("users=2", *plain)), engine, tmp_path)
        with pytest.raises(StallmarkError, match="ask for fewer, or raise its `user connections` or `max worker"):
            refuse_what_cannot_be(read(sets=("users=3", *plain)), engine, tmp_path)


def test_sessions_of_the_market_count_as_users_do(read, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    engine = PostgresEngine("postgresql://nobody@127.0.0.1:1/nowhere")
    scenario = read(
        "{name: bank, scale: {branches: 1}}", "{name: brokerage}",
        sets=("users=30", "emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]"),
    )  # fmt: skip
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 60)
    refuse_what_cannot_be(scenario, engine, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StallmarkError, match=r"Nothing can be written to .*--out"):
        refuse_what_cannot_be(scenario, engine, tmp_path / "file" / "runs")
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 59)
    monkeypatch.setattr(PostgresEngine, "users_limited_by", lambda self: "its max_connections")
    with pytest.raises(StallmarkError) as refused:
        refuse_what_cannot_be(scenario, engine, tmp_path)
    assert str(refused.value) == (
        "small asks for 30 users and 30 sessions of the market emulator, but the server takes 59 beside our own "
        "sessions: ask for fewer, or raise its max_connections."
    )


@pytest.mark.parametrize(
    ("limited", "named"),
    [
        ("ROLE plain", "the role's limit (ALTER ROLE plain CONNECTION LIMIT)"),
        ("DATABASE work", "the database's limit (ALTER DATABASE work CONNECTION LIMIT)"),
    ],
)
def test_the_least_limit_on_connections_counts_and_is_named(read, tmp_path, remote: Remote, limited: str, named: str):
    plain, boss = (PostgresEngine(remote.url(user)) for user in ("plain", "boss"))
    assert plain.most_users() == boss.most_users() > 30 and plain.users_limited_by() == "its max_connections"
    plainly = ("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]")
    boss.execute(f"ALTER {limited} CONNECTION LIMIT 30")
    try:
        refuse_what_cannot_be(read(sets=("users=18", *plainly)), plain, tmp_path)
        with pytest.raises(StallmarkError) as refused:
            refuse_what_cannot_be(read(sets=("users=19", *plainly)), plain, tmp_path)
        boss.execute(f"ALTER {limited} CONNECTION LIMIT 10")
        assert (plain.most_users(), boss.users_limited_by()) == (0, "its max_connections"), "no superuser is limited"
    finally:
        boss.execute(f"ALTER {limited} CONNECTION LIMIT -1")
    assert f"the server takes 18 beside our own sessions: ask for fewer, or raise {named}." in str(refused.value)


def test_more_connections_than_executors_may_have_files_open(read, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 100_000)
    monkeypatch.setattr(preflight, "most_open_files", lambda: 1000)
    engine = PostgresEngine("postgresql://nobody@127.0.0.1:1/nowhere")
    plain = ("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]")
    refuse_what_cannot_be(read(sets=("users=1800", *plain)), engine, tmp_path)
    refuse_what_cannot_be(read(sets=("users=1801", *plain)), engine, tmp_path, machines=2)
    with pytest.raises(StallmarkError, match="1,801 connections from this machine, and each of its 2 executors may"):
        refuse_what_cannot_be(read(sets=("users=1801", *plain)), engine, tmp_path)


@pytest.mark.parametrize(("slo", "is_refused"), [("{read: 10ms}", True), ("{transactions: [p95 < 1s]}", False)])
def test_a_search_by_reads_that_the_server_does_not_tell(read, tmp_path, slo, is_refused):
    """Babelfish counts no reads of its files."""
    script = Script(databases=["bank"])
    says_it_is(script, banner="Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8")
    script.sql("@@MAX_CONNECTIONS", Rows([Column("most", INT)], [(32_767,)]))
    plain = ("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]", f"slo={slo}")
    scenario = read("users: 4", "search: {of: users, from: 1, to: 8}", sets=plain)
    with answering(script) as server, pytest.raises(StallmarkError) if is_refused else nullcontext() as refused:
        refuse_what_cannot_be(scenario, engine_at(server), tmp_path)
    if is_refused:
        assert "depends on the time of reads (slo), which is unknown here. Babelfish has none" in str(refused.value)


MIB = 1024**2

# A database that others have something in

ALONE = {"bank": "accounts", "stallmark": "database"}
ANSWERS = {"'ServerName'": "DB", "@Resource = 'stallmark.run'": 0, "APPLOCK_MODE": "Exclusive", "@@MAX_CONNECTIONS": 99}
ANSWERS |= {"sys.database_mirroring": 0}
RESTORED = ("emulated_array=null", "start_cache=as it is", "variants=[{name: a}]")
SHOW = Show(Console(file=io.StringIO()))


@pytest.fixture
def holds() -> dict[str, str]:
    """By schema, one thing that the database holds."""
    return dict(ALONE)


@pytest.fixture
def shared(holds, monkeypatch, tmp_path) -> Iterator[Responder]:
    """A server whose login may do everything."""
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    script = Script(databases=["bank", "master"])
    says_it_is(script)
    named = [Column(name, nvarchar(128)) for name in ("schema_name", "one")]
    script.sql("FROM sys.objects", lambda _: [Rows(named, list(holds.items()))])
    for pattern, answer in ANSWERS.items():
        kind = INT if isinstance(answer, int) else nvarchar(128)
        script.sql(pattern, Rows([Column("answer", kind)], [(answer,)]))
    rights = [Column(f"right {number}", INT) for number in range(5)]
    script.sql("BACKUP DATABASE'", Rows(rights, [(1,) * 5]))
    script.sql("^(CHECKPOINT|ALTER DATABASE|RESTORE|BACKUP)", Count(0))
    with answering(script) as server:
        yield server


def nothing_was_touched(server: Responder) -> bool:
    words = ("BACKUP", "RESTORE", "ALTER", "CREATE", "DROP", "INSERT")
    return not [it.text for it in server.requests if it.text.startswith(words)]


def test_each_of_several_databases_must_be_one_that_can_be_restored(shared, read, tmp_path, monkeypatch):
    scenario, engine = read(sets=RESTORED), engine_at(shared)
    engine.by_workload = {"bank": engine_at(shared), "mail": engine_at(shared)}
    refuse_what_cannot_be(scenario, engine, tmp_path)
    monkeypatch.setattr(engine.by_workload["mail"].backup, "refusal", lambda: "it is mirrored")
    with pytest.raises(StallmarkError, match="asks for `reset: restore`, but it is mirrored"):
        refuse_what_cannot_be(scenario, engine, tmp_path)


def test_a_database_that_others_have_something_in_is_not_restored(shared, holds, read, tmp_path):
    scenario, engine = read(sets=RESTORED), engine_at(shared)
    refuse_what_cannot_be(scenario, engine, tmp_path)  # as long as nobody else is in it
    holds["dbo"] = "thesis"
    with pytest.raises(StallmarkError, match=r"holds dbo\.thesis, which Stallmark did not make.*reset: continue"):
        Runner(scenario, engine, tmp_path / "runs", SHOW).run()
    assert nothing_was_touched(shared)
    refuse_what_cannot_be(read(sets=(*RESTORED, "reset=continue")), engine, tmp_path)


def test_nor_when_they_have_come_since_the_run_began(shared, holds, read, tmp_path):
    scenario, engine = read(sets=RESTORED), engine_at(shared)
    order = RunOrder(
        scenario.variants[0], folder=tmp_path / "run", place=Place("e", 1, 1, 1), title="",
        loaded=None, original_pool_bytes=None, check=lambda: None, notes=[], storage=None, prepared=PreparedStorage(),
        opened=lambda: None,
        show=SHOW,
    )  # type: ignore[arg-type]  # fmt: skip
    run = Run(scenario, engine, order, None)
    holds["hr"] = "salaries"
    with pytest.raises(StallmarkError, match=r"holds hr\.salaries"):
        run.go()
    assert nothing_was_touched(shared)


def test_a_selftest_does_not_take_such_a_database_for_an_empty_one(shared, holds, tmp_path):
    holds.clear()
    holds.update(bank="report", dbo="thesis")  # in a schema that bears our name, too
    url = f"mssql://tester:secret@127.0.0.1:{shared.port}/bank?TrustServerCertificate=yes"
    with pytest.raises(StallmarkError, match=r"not empty \(bank\.report, dbo\.thesis\).*name an empty database"):
        selftest(Target(url), tmp_path / "runs", SHOW, seconds=1, keep=False, may_cap_memory=True)
    assert nothing_was_touched(shared)


# Advice: what can be run and will not say what is asked

SCENARIO: dict[str, Any] = {
    "name": "small", "title": "", "answers": "", "needs": "", "warm_up": "0s", "measure": "1s",
    "reset": "continue", "variants": [{"name": "only"}],
}  # fmt: skip


def said(users: Any, workload: dict[str, Any], machines: int = 1) -> list[str]:
    return advice(Scenario.model_validate(SCENARIO | {"users": users, "workload": workload}), machines)


@pytest.mark.parametrize(
    ("customers", "users", "enough"),
    [(1_000, 30, None), (1_000, 31, "2,000"), (1_000, [1, 90, 5], "3,000"), (5_000, 150, None), (5_000, 501, "17,000")],
)
def test_users_who_share_few_brokers(customers, users, enough):
    found = said(users, {"name": "brokerage", "scale": {"customers": customers}})
    if enough is None:
        assert found == []
    else:
        [sentence] = found
        most = max(users) if isinstance(users, list) else users
        assert sentence.startswith(f"{most} users share {customers // 100} brokers")
        assert sentence.endswith(f"use at least {enough} customers.")
        assert said(users, {"name": "brokerage", "scale": {"customers": int(enough.replace(",", ""))}}) == []


def test_the_bank_has_a_branch_for_everybody_or_not():
    assert said(100, {"name": "bank", "scale": {"branches": 1}}) == []


@pytest.mark.parametrize(("machines", "words"), [(1, "locality 0.5 has no effect"), (2, None)])
def test_a_locality_of_one_machine(machines, words):
    found = said(1, {"name": "brokerage", "locality": 0.5}, machines)
    assert [sentence.startswith(words) for sentence in found] == ([True] if words else [])


DISKS = {"spindles": 4, "read_ms": 4, "write_ms": 4, "sync_ms": 1, "mb_per_s": 100}
POOLS = [{"name": size, "buffer_pool": size} for size in ("64MiB", "1GiB")]
CURVE = {"buffer_pool": {"curve": "auto", "from": "10 %", "to": "100 %"}, "variants": [{"name": "only"}]}
FLASH = [{"name": kind, "emulated_array": {"data": DISKS | {kind: {"size": "10 %"}}}} for kind in ("cache", "tier")]
ARRAYS = [{"name": "without"}, {"name": "with", "array": {"flash_cache": "800GB"}}]


@pytest.mark.parametrize(
    ("changes", "varied"),
    [
        ({"variants": POOLS}, ["memory"]), (CURVE, ["memory"]), ({"variants": FLASH}, ["flash"]),
        ({"variants": ARRAYS}, ["flash"]), ({"variants": [POOLS[0], *FLASH]}, ["memory", "flash"]),
        ({"variants": [{"name": "a"}, {"name": "b"}]}, None), ({"variants": [FLASH[0]]}, None),
    ],
)  # fmt: skip
def test_a_history_too_short_for_what_differs_is_a_caution_before_the_load(changes, varied):
    engine: Any = SimpleNamespace(identity=lambda: SimpleNamespace(product="PostgreSQL"))

    def cautioned(**workload: Any) -> list[str] | None:
        scenario = Scenario.model_validate(SCENARIO | {"users": 1, "workload": workload} | changes)
        found = caution_on_history(scenario, engine)
        return found and found.facts["varied"]

    assert cautioned(name="brokerage", scale={"customers": 5_000, "days": 5}) == varied
    assert not cautioned(name="brokerage", scale={"customers": 1_000, "days": 40})
    assert not cautioned(name="bank", scale={"branches": 1})


def having(**memory: int) -> Any:
    return SimpleNamespace(dialect="postgresql", memory=SimpleNamespace(**memory))


def of_pools(*pools: str) -> tuple[str, ...]:
    variants = ", ".join(f"{{name: v{number}, buffer_pool: {pool}}}" for number, pool in enumerate(pools))
    return "emulated_array=null", f"variants=[{variants}]"


def test_a_cap_below_what_the_server_needs_for_itself_is_cautioned_against(read):
    """sp_configure takes 128 MB and more ("Server memory configuration options", learn.microsoft.com)."""
    engine = having(
        smallest_bytes=MssqlMemory.smallest_bytes, scarce_bytes=MssqlMemory.scarce_bytes, largest_bytes=None
    )
    scenario = read(sets=of_pools("512MiB", "2GiB", "30 %"))
    refuse_pool_sizes(scenario, engine, 4096 * MIB)
    [sentence] = advice_on_pools(scenario, engine, 4096 * MIB)
    assert sentence.startswith("'v0', 'v2': a cap below 2,048 MiB")
    assert advice_on_pools(read(sets=of_pools("2GiB")), engine, 4096 * MIB) == []
    with pytest.raises(StallmarkError, match="128 MiB"):
        refuse_pool_sizes(read(sets=of_pools("127MiB")), engine)


@pytest.mark.parametrize("name", [name for name in shipped() if name.endswith("-sqlserver")])
def test_what_the_readme_runs_on_sql_server_fits_the_container_that_it_makes(name):
    [command] = re.findall(
        r"stallmark server up --accept-eula .*", (Path(__file__).parents[2] / "README.md").read_text()
    )
    order = ServerOrder(memory_bytes=parse_size(re.findall(r"--memory (\S+)", command)[0], like="4GiB"))
    scenario = read_scenario(name)
    loader, memory_bytes = loader_for(scenario.workload.name), order.memory_bytes * SHARE_OF_SQL_SERVER
    plan = LoadPlan(loader.groups(loader.scale(scenario.workload.scale)))
    data_bytes = plan.estimate(find_workload(scenario.workload.name).metadata, "mssql").loaded_bytes
    pools = [scenario.pool_of(variant).resolve(0) for variant in scenario.sized()]
    assert MssqlMemory.scarce_bytes <= min(pools) < data_bytes / 2 and max(pools) < memory_bytes
    assert len(pools) == 1 or max(pools) > data_bytes


def test_a_share_that_is_surely_too_small_is_refused_before_anything_is_loaded(read):
    """A branch of the bank, with its 100,000 accounts, is about 17 MiB."""
    engine = having(smallest_bytes=MssqlMemory.smallest_bytes, largest_bytes=None)
    with pytest.raises(
        StallmarkError, match=r"a buffer pool of 50 % \(at most 10 MiB\) is below the minimum of 128 MiB"
    ):
        refuse_pool_sizes(read(sets=of_pools("50 %")), engine)
    engine.memory.smallest_bytes = 8 * MIB
    refuse_pool_sizes(read(sets=of_pools("50 %")), engine)
    with pytest.raises(StallmarkError, match=r"50 % \(5 MiB\)"):  # now that it is known
        refuse_pool_sizes(read(sets=of_pools("50 %")), engine, 9 * MIB)


def test_the_ends_of_a_curve_are_held_against_the_server_as_any_pool():
    engine = having(smallest_bytes=128 * MIB, scarce_bytes=2048 * MIB, largest_bytes=8192 * MIB)

    def of(ends: str):
        return read_scenario("memory-curve", [f"buffer_pool={{curve: auto, {ends}}}"])

    refuse_pool_sizes(of("from: 2GiB, to: 8GiB"), engine, 4096 * MIB)
    assert advice_on_pools(of("from: 2GiB, to: 8GiB"), engine, 4096 * MIB) == []
    assert len(advice_on_pools(of("from: 1GiB, to: 8GiB"), engine, 4096 * MIB)) == 1
    for ends in ("from: 64MiB, to: 8GiB", "from: 2 %, to: 100 %", "from: 2GiB, to: 300 %"):
        with pytest.raises(StallmarkError, match="'memory'"):
            refuse_pool_sizes(of(ends), engine, 4096 * MIB)


def test_a_pool_that_the_machine_cannot_hold_is_refused_in_whichever_variant_it_is(read, tmp_path):
    engine = having(smallest_bytes=8 * MIB, largest_bytes=1024 * MIB)

    def sized(*pools: str):
        return read(sets=of_pools(*pools))

    refuse_pool_sizes(sized("64MiB", "1GiB"), engine)
    with pytest.raises(StallmarkError, match=r"Variant 'v1'.*9,216,000 MiB"):
        refuse_pool_sizes(sized("64MiB", "9000GiB"), engine)
    refuse_pool_sizes(sized("64MiB", "1000 %"), engine)  # the size of the data is not known yet
    refuse_pool_sizes(sized("64MiB", "50 %"), engine, 2048 * MIB)
    with pytest.raises(StallmarkError, match="Variant 'v1'"):
        refuse_pool_sizes(sized("64MiB", "50 %"), engine, 2050 * MIB)
    engine.memory.largest_bytes = None  # not known
    refuse_pool_sizes(sized("9000GiB"), engine)
