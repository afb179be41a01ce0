"""A refused command leaves behind: nothing of its own, and everything of others."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import platformdirs
import pytest
from click.testing import CliRunner, Result
from support.embedded_servers import LONG_S
from support.mssql_server import answering, says_it_is
from support.tds import odbc
from support.tds.answers import Count, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.cli.main import main
from stallmark.engines.postgres import embedded_server as embedded
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import OUR_CONNECTIONS
from stallmark.errors import CallFailed, ErrorClass, StallmarkError, in_words
from stallmark.experiment import target
from stallmark.experiment.preflight import refuse_what_cannot_be
from stallmark.experiment.target import Target
from stallmark.loaders import LARGEST_SEED
from stallmark.loaders.load import build
from stallmark.scenarios.model import WorkloadChoice
from stallmark.transactions.bank import WORKLOAD

BANK = ("bank", "--scale", "branches=1")
TOO_LARGE = ("brokerage", "--scale", "customers=10000000,days=300")


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    return tmp_path / "home"


def refused(*arguments: str, code: int = 3) -> str:
    result: Result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code and result.stdout == "", result.output
    return " ".join(result.stderr.split())


def test_one_home_for_make_and_for_every_later_command(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("STALLMARK_HOME")
    root = Path(__file__).parents[2]
    assert target.home() == root / ".stallmark" and "STALLMARK_HOME" not in (root / "Makefile").read_text()
    installed = tmp_path / "lib" / "site-packages" / "stallmark" / "__init__.py"
    monkeypatch.setattr(target.stallmark, "__file__", str(installed))
    assert target.home() == platformdirs.user_data_path("stallmark")


def test_a_check_of_what_was_never_built_makes_nothing(home: Path, tmp_path: Path):
    assert "bank (branches 1) is absent: run `stallmark build` first." in refused("check", *BANK)
    assert "is absent" in refused("check", *BANK, "--data-dir", str(tmp_path / "there"))
    assert not home.exists() and not (tmp_path / "there").exists()


@pytest.mark.parametrize("command", ["build", "check"])
def test_an_impossible_seed_makes_nothing(home: Path, command: str):
    said = refused(command, *BANK, "--seed", str(LARGEST_SEED + 1), code=2)
    assert f"The seed is a whole number from 0 to {LARGEST_SEED}, not" in said
    assert not home.exists()


@pytest.mark.server
def test_a_build_that_the_disk_cannot_take_leaves_no_server(home: Path, tmp_path: Path):
    wal = tmp_path / "wal"
    wal.mkdir()
    (wal / "lost+found").mkdir()
    assert "The disk is too small" in refused("build", *TOO_LARGE, "--wal-dir", str(wal))
    assert list((home / "embedded").iterdir()) == []
    assert [path.name for path in wal.iterdir()] == ["lost+found"]


@pytest.mark.server
def test_a_folder_that_was_there_before_stays(tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    assert "The disk is too small" in refused("build", *TOO_LARGE, "--data-dir", str(folder))
    assert (folder / "data").exists()
    refused("check", *BANK, "--data-dir", str(folder))
    assert (folder / "data").exists()


@pytest.mark.server
def test_the_embedded_server_takes_the_sessions_that_are_asked_for(read, template: Path, tmp_path: Path, monkeypatch):
    target = Target(data_dir=shutil.copytree(template, tmp_path / "database", symlinks=True))
    few, many, more = (read(sets=(f"users={users}",)) for users in (4, 300, 2000))
    for scenario, connections in ((few, 250), (many, 300 + OUR_CONNECTIONS)):
        with target.engine(scenario.contents, scenario) as engine:
            assert engine.query("SHOW max_connections") == [(str(connections),)]
            refuse_what_cannot_be(scenario, engine, tmp_path)
    with target.engine(many.contents, many) as engine, ExitStack() as sessions:
        for _ in range(300):
            sessions.callback(engine.session(LONG_S, "a user").close)
        assert engine.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'a user'") == [(300,)]
    monkeypatch.setattr(embedded, "most_connections", lambda: 400)
    with target.engine(more.contents, more) as engine:
        assert engine.query("SHOW max_connections") == [("400",)]
        with pytest.raises(StallmarkError, match="asks for 2,000 users, but the server takes 385 beside"):
            refuse_what_cannot_be(more, engine, tmp_path)


@pytest.mark.parametrize("stopped", [False, True], ids=["in it", "perhaps in it"])
@pytest.mark.server
def test_a_database_in_which_something_is_stays(tmp_path: Path, stopped: bool):
    target = Target(data_dir=tmp_path / "database")
    choice = WorkloadChoice(name="bank", scale={"branches": 1})
    with pytest.raises(StallmarkError, match="no more"), target.engine(choice) as engine:
        assert isinstance(engine, EmbeddedEngine)
        if stopped:
            engine.server.stop()
        else:
            build(engine, WORKLOAD, choice.scale, choice.seed, workers=1)
        raise StallmarkError("no more")
    with target.engine(choice) as engine:
        assert engine.bytes_used() > 0


def test_too_old_a_sql_server_is_named_before_a_build(monkeypatch):
    monkeypatch.setenv("SQLCMDPASSWORD", "secret")
    script = Script(databases=["bank"])
    says_it_is(script, "13.0.7000.253")
    with answering(script) as server:
        url = f"mssql://tester@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes"
        said = refused("build", *BANK, "--server", url)
        texts = [request.text for request in server.requests if request.text]
    assert "runs SQL Server 13.0.7000.253; Stallmark needs 2017 (14.0) or later." in said
    assert not any("CREATE" in text for text in texts)


def test_too_old_a_postgresql_is_named_before_a_build(database: EmbeddedEngine):
    database.execute("CREATE SCHEMA old")
    database.execute(
        "CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql "
        "RETURN CASE $1 WHEN 'server_version_num' THEN '150004' ELSE '15.4' END"
    )
    url = f"{database.spec()}&options=-c%20search_path%3Dold%2Cpg_catalog"
    assert "runs PostgreSQL 15.4; Stallmark needs 16 or later" in refused("build", *BANK, "--server", url)
    assert database.schemas_in_use() == {"old": ["current_setting"]}


def test_data_that_no_seed_decides_has_one_folder() -> None:
    folders = {
        name: {Target().folder(WorkloadChoice(name=name, scale=scale, seed=seed)) for seed in (1, 2)}
        for name, scale in {"warehouse": {"factor": 0.01}, "bank": {"branches": 1}}.items()
    }
    assert (len(folders["warehouse"]), len(folders["bank"])) == (1, 2)


@pytest.mark.parametrize("option", ["--data-dir", "--wal-dir"])
def test_a_folder_of_a_file_system_that_is_not_mounted_is_refused(option: str, home: Path, tmp_path: Path):
    assert f"{tmp_path / 'array'} is not there" in refused("build", *BANK, option, str(tmp_path / "array/brokerage"))
    assert not home.exists() and not (tmp_path / "array").exists()


def test_a_mount_point_without_its_file_system_is_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    point = tmp_path / "array"
    point.mkdir()
    fstab = tmp_path / "fstab"
    monkeypatch.setattr(target, "FSTAB", fstab)
    fstab.write_text(
        f"# array\n/dev/sdb1 {point} xfs defaults 0 0\ntmpfs / tmpfs defaults 0 0\n/dev/sdc swap swap sw 0 0\n"
    )
    assert f"{point} is a file system of {fstab} and is not mounted" in refused(
        "build", *BANK, "--data-dir", str(point / "brokerage")
    )
    assert not home.exists() and not any(point.iterdir())
    fstab.write_text(f"/dev/sdb1 {tmp_path / 'another'} xfs defaults 0 0\n")
    target._refuse_unmounted(point / "brokerage")  # it is nobody's mount point


@pytest.mark.server
def test_an_error_beside_a_full_disk_names_the_disk(tmp_path: Path, monkeypatch):
    """The server's log may lie there, too, and then says nothing of it."""
    target = Target(data_dir=tmp_path / "database")
    choice = WorkloadChoice(name="bank", scale={"branches": 1})
    lost = CallFailed(ErrorClass.CONNECTION_LOST, "08006", "server closed the connection unexpectedly")
    with pytest.raises(CallFailed) as unknown, target.engine(choice):
        raise lost
    assert "full" not in in_words(unknown.value)
    with pytest.raises(CallFailed) as known, target.engine(choice) as engine:
        assert isinstance(engine, EmbeddedEngine)
        folder = engine.server.folder
        left = shutil.disk_usage(folder)._replace(free=100_000)
        monkeypatch.setattr(embedded.shutil, "disk_usage", lambda folder: left)
        raise lost
    assert f"unexpectedly. The disk of {folder} is full but for " in in_words(known.value)


# A command whose scenario starts from a copy first finishes a restore that was cut; no other command does


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
