"""Databases of Stallmark: what `db list` shows, that `db remove` removes that and nothing else, and what is checked."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.locks import in_the_way

from stallmark.cli.build import answers
from stallmark.cli.main import main
from stallmark.engines import open_engine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine, note_content
from stallmark.engines.postgres.embedded_ownership import claim
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.target import Target
from stallmark.loaders.load import build
from stallmark.scenarios.model import WorkloadChoice
from stallmark.scenarios.read import shipped
from stallmark.transactions.bank import WORKLOAD

SCALE = {"branches": 1}
HELD = {"workload": "bank", "scale": SCALE, "seed": 1}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def made(template: Path, home: Path) -> Path:
    """A database in the home, of which was noted what it holds; its server is stopped."""
    folder = home / "embedded" / "bank-1-branches"
    shutil.copytree(template, folder, symlinks=True)
    note_content(folder, HELD)
    return folder


def listed(*arguments: str) -> list[dict]:
    done = stallmark("db", "list", "--json", *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*arguments: str) -> str:
    done = stallmark("db", "remove", *arguments)
    assert done.exit_code == 3 and done.stderr.count("Error:") == 1, done.output
    return " ".join(done.stderr.split())


def test_build_and_check_are_the_same_commands():
    group = main.commands["db"].load()
    assert all(group.commands[name] is main.commands[name].load() for name in ("build", "check"))


def test_an_embedded_database_is_listed_with_all_that_is_known(made: Path):
    [found] = listed()
    assert found["name"] == made.name and found["folder"] == str(made)
    assert found["holds"] == [HELD]
    assert found["bytes"] > 10e6 and found["in_use_by"] is None and found["used"][:2] == "20"
    assert "bank, branches 1" in stallmark("db", "list").stdout


def test_one_of_which_nothing_was_noted_is_listed_too(made: Path):
    (made / "content.json").unlink()
    assert listed()[0]["holds"] == []
    assert "not noted" in stallmark("db", "list").stdout


def test_each_of_two_workloads_in_one_folder_is_listed(made: Path):
    second = {"workload": "warehouse", "scale": {"factor": 0.1}, "seed": 1}
    larger = second | {"scale": {"factor": 0.2}}
    for noted in (second, larger):  # in its place, after it was removed
        note_content(made, noted)
    assert listed()[0]["holds"] == [HELD, larger]
    said = stallmark("db", "list").stdout
    assert "bank, branches 1; warehouse, factor 0.2; " in said and said.count(made.name) == 2  # and its folder


def test_a_brokerage_is_listed_with_the_depth_of_its_history(made: Path):
    note_content(made, {"workload": "brokerage", "scale": {"customers": 1000, "days": 2.5}, "seed": 1})
    bank, brokerage = listed()[0]["holds"]
    assert brokerage["trades_per_account"] == pytest.approx(28.8) and "trades_per_account" not in bank
    assert "brokerage, customers 1,000, days 2.5, trades per account 28.8; " in stallmark("db", "list").stdout


def test_what_a_version_before_noted_is_read(made: Path):
    (made / "content.json").write_text(json.dumps(HELD))
    assert listed()[0]["holds"] == [HELD]


def test_a_folder_that_is_named_is_looked_into(template: Path, tmp_path: Path):
    assert listed() == []
    shutil.copytree(template, tmp_path / "array" / "mine", symlinks=True)
    (tmp_path / "array" / "others").mkdir()
    assert [one["name"] for one in listed("--data-dir", str(tmp_path / "array"))] == ["mine"]
    assert [one["name"] for one in listed("--data-dir", str(tmp_path / "array" / "mine"))] == ["mine"]


def test_a_database_is_removed_and_its_neighbour_stays(made: Path):
    other = shutil.copytree(made, made.with_name("other"), symlinks=True)
    assert "is not removed: without a terminal to ask at, add --yes" in refused(made.name) and made.exists()
    done = stallmark("db", "remove", made.name, "--yes")
    assert done.exit_code == 0 and not made.exists() and other.exists(), done.output


def test_its_wal_on_another_device_goes_too(made: Path, tmp_path: Path):
    wal = tmp_path / "wal"
    shutil.move(made / "data" / "pg_wal", wal)
    (made / "data" / "pg_wal").symlink_to(wal)
    assert "is not marked as its own" in refused(made.name, "--yes") and made.exists()
    for folder in (made, wal):
        (folder / "stallmark-wal").write_text("the same number")
    assert stallmark("db", "remove", str(made), "--yes").exit_code == 0
    assert not made.exists() and list(wal.iterdir()) == []


def test_one_in_use_is_not_removed(made: Path):
    lock = claim(made)
    try:
        assert listed()[0]["in_use_by"]
        assert "is in use by process" in refused(made.name, "--yes") and made.exists()
    finally:
        os.close(lock)
    assert listed()[0]["in_use_by"] is None


@pytest.mark.parametrize(
    ("name", "said"), [("bank-1-branch", "did you mean bank-1-branches?"), (".", "is not a database of Stallmark")]
)
def test_what_is_no_database_is_not_removed(made: Path, tmp_path: Path, name: str, said: str):
    (tmp_path / "precious").write_text("x")
    assert said in refused(name, "--yes")
    assert made.exists() and (tmp_path / "precious").exists()


def test_a_name_is_needed_and_none_with_a_server():
    assert stallmark("db", "remove").exit_code == 2
    assert stallmark("db", "remove", "bank", "--server", "postgresql://x@y/z").exit_code == 2


def test_on_a_server_the_schemas_of_stallmark_go_and_nothing_else(database: EmbeddedEngine):
    url = ("--server", database.spec())
    assert listed(*url) == [] and "nothing was removed" in refused("--yes", *url)
    build(database, WORKLOAD, SCALE, 1, workers=1)
    database.execute("CREATE SCHEMA mine")
    database.execute("CREATE TABLE mine.kept AS SELECT 1 AS number")
    [found] = listed(*url)
    assert [(one["workload"], one["scale"]) for one in found["holds"]] == [("bank", SCALE)]
    assert found["complete"] and not found["driven"] and found["bytes"] > 1e6
    assert "Without --yes nothing is dropped" in refused(*url)
    with open_engine(database.spec()).hold():
        assert "Another Stallmark drives" in refused("--yes", *url)
    assert set(database.schemas_in_use()) == {"bank", "mine", "stallmark"}
    done = stallmark("db", "remove", "--yes", *url)
    assert done.exit_code == 0 and set(database.schemas_in_use()) == {"mine"}, done.output
    assert database.query("SELECT number FROM mine.kept") == [(1,)]


def test_a_size_that_the_server_does_not_report_is_not_zero(new_bank: EmbeddedEngine, monkeypatch):
    monkeypatch.setattr(PostgresEngine, "bytes_used", lambda self: 0)  # as on Babelfish
    url = ("--server", new_bank.spec())
    assert listed(*url)[0]["bytes"] is None
    assert "bank, branches 1; size not known" in stallmark("db", "list", *url).stdout
    assert refused(*url).endswith("the database holds bank.")


OF_OTHERS = [
    ("TABLE bank.audit", "CREATE TABLE bank.audit AS SELECT 1 AS number"),
    ("VIEW bank.audit", "CREATE VIEW bank.audit AS SELECT 1 AS number"),
    (
        "FUNCTION bank.audit",
        "CREATE FUNCTION bank.audit() RETURNS SETOF bank.tellers LANGUAGE sql RETURN NULL::bank.tellers",
    ),
    ("SEQUENCE bank.audit", "CREATE SEQUENCE bank.audit"),
    ("TABLE stallmark.audit", "CREATE TABLE stallmark.audit AS SELECT 1 AS number"),  # in the schema of the ledger
]


def test_what_is_not_ours_in_our_schemas_keeps_all_from_being_dropped(new_bank: EmbeddedEngine):
    url = ("--server", new_bank.spec())
    for thing, statement in OF_OTHERS:
        new_bank.execute(statement)
        before, name = new_bank.schemas_in_use(), thing.rpartition(" ")[2]
        said = refused("--yes", *url)
        assert f"schemas also contain objects that this version has not made, {name}. Move these" in said
        assert new_bank.schemas_in_use() == before and "audit" in before[name.partition(".")[0]]
        new_bank.execute(f"DROP {thing}")
    new_bank.execute("UPDATE stallmark.database SET workload = 'htap'")
    assert "'htap' is not a workload" in refused("--yes", *url), "of another version"
    assert set(new_bank.schemas_in_use()) == {"bank", "stallmark"}
    new_bank.execute("UPDATE stallmark.database SET workload = 'bank'")
    new_bank.execute("CREATE VIEW public.mine AS SELECT count(*) FROM bank.branches")
    assert "Not all was dropped: cannot drop table bank.branches because" in refused("--yes", *url)
    assert new_bank.query("SELECT * FROM public.mine") == [(1,)] and listed(*url)


def test_a_drop_that_waits_for_a_lock_says_whose(new_bank: EmbeddedEngine):
    with in_the_way(new_bank, "SELECT * FROM bank.accounts LIMIT 1") as pid:
        result = stallmark("db", "remove", "--yes", "--server", new_bank.spec())
    assert result.exit_code == 0, result.output
    assert result.stderr.count(f"Waiting for a lock that session {pid} (psql, of") == 1


@pytest.mark.server
def test_a_build_notes_what_it_holds_which_is_checked_and_refused_with_the_command_that_helps(home: Path):
    command = ("build", "bank", "--scale", "branches=1")
    assert stallmark("db", *command).exit_code == 0
    assert [one["holds"] for one in listed()] == [[HELD]]
    done = stallmark("check", "bank")  # of whatever scale there is
    assert done.exit_code == 0 and "holds" in done.stdout, done.output
    folder = Target().folder(choice := WorkloadChoice(name="bank", scale=SCALE))
    assert "its seed is 1, asked is 3" in checked("bank", *command[2:], "--seed", "3", "--data-dir", str(folder))
    with Target().engine(choice) as engine:
        engine.execute("UPDATE stallmark.database SET version = 0")
    done = stallmark(*command)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 3 and said.count("Error:") == 1
    older = f"built by data version 0 of the bank, and this Stallmark has {WORKLOAD.version}: `stallmark db remove"
    assert older in said
    [helps] = re.findall(r"`stallmark (db remove .*?)` removes it", said)
    assert stallmark(*shlex.split(helps), "--yes").exit_code == 0 and not folder.exists()


# A check without a scale: of what is there


def checked(*arguments: str) -> str:
    done = stallmark("check", *arguments)
    assert done.exit_code == 3 and done.stderr.count("Error:") == 1, done.output
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("workload", ["bank", "brokerage", "mail", "warehouse", "bank+mail", "bank,mail"])
def test_without_a_scale_what_was_never_built_is_absent(workload: str, home: Path):
    assert f"{workload} is absent: run `stallmark build` first." in checked(workload)
    assert not home.exists()


def test_of_several_scales_and_seeds_one_is_to_be_named(made: Path, home: Path):
    for scale, seed in ((2, 1), (2, 7)):
        choice = WorkloadChoice(name="mail", scale={"mailboxes": scale, "messages": 20}, seed=seed)
        folder = Target().folder(choice)
        os.close(claim(folder))
        note_content(folder, {"workload": "mail", "scale": dict(choice.scale), "seed": seed})
    said = checked("mail")
    assert "There are 2 databases of mail" in said
    assert re.findall(r"--scale mailboxes=2,messages=20,\S+( --seed 7)?", said) == ["", " --seed 7"]


def test_one_of_several_workloads_in_a_folder_is_not_taken_for_one_alone(home: Path):
    apart = WorkloadChoice(name="bank,mail", scale={"branches": 1})
    folder = Target().folder(apart)
    os.close(claim(folder))
    for part in ("bank", "mail"):
        own = apart.part(part)
        note_content(folder, {"workload": part, "scale": dict(own.scale), "seed": own.seed})
    assert "bank is absent" in checked("bank")


@pytest.mark.parametrize("name", shipped())
def test_a_scenario_says_its_scale_itself(name: str, home: Path):
    said = checked(name)
    assert "is absent: run `stallmark build` first." in said or "has no database" in said
    assert not home.exists()


# Differences of answers become findings of a check


WAREHOUSE = WorkloadChoice(name="warehouse", scale={"factor": 0.01})


def test_every_query_is_a_finding_with_what_differs_first(monkeypatch):
    asked = []

    def validate(engine, factor):
        asked.append((engine, factor))
        yield 1, []
        yield 2, ["row 1: a is 3, not 4", "b", "c", "d"]

    monkeypatch.setattr("stallmark.transactions.warehouse.oracle.validate", validate)
    good, bad = answers("the engine", WAREHOUSE)
    assert asked == [("the engine", 0.01)]
    assert good.holds is True and (good.name, good.offending) == ("Q1 answers as DuckDB does", 0)
    assert bad.holds is False and (bad.offending, bad.counted) == (4, "differences")
    assert bad.detail == "row 1: a is 3, not 4 | b | c"


def test_other_workloads_have_no_answers():
    bank = WorkloadChoice(name="bank", scale={"branches": 1})
    with pytest.raises(StallmarkError, match="bank has no queries whose answers are known: leave out --answers"):
        list(answers("the engine", bank))
