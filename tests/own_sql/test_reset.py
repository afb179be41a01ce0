"""A user's own database is restored before every run: from a backup, or by a command."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from support.clusters import ClusterEngine
from support.command_line import stallmark
from support.own_sql import newest

from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.target import Target
from stallmark.own_sql.command import STARTER
from stallmark.record.reader import Record
from stallmark.scenarios.read import read_document

SCENARIO = {
    "name": "resets", "workload": {"sql": str(STARTER)}, "users": 1, "think_time": {"mean": "50ms"},
    "warm_up": "0s", "measure": "1s", "repeats": 2,
    "variants": [{"name": "as it is"}],
}  # fmt: skip


@pytest.fixture
def shop(shop: str, engine: ClusterEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database with the shop, whose own programs are found."""
    monkeypatch.setenv("PATH", f"{engine.cluster.binaries}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return shop


def run(shop: str, *more, **changes):
    YAML().dump(SCENARIO | changes, Path("resets.yaml"))
    return stallmark("run", "resets.yaml", "--server", shop, "--out", "runs", *more)


def archive(shop: str, *options: str) -> str:
    subprocess.run(["pg_dump", *options, "--file", "shop.dump", shop], check=True)
    return "shop.dump"


def rented(folder: Path) -> int:
    rows = Record(folder).table("transactions").to_pylist()
    return sum(row["committed"] for row in rows if row["transaction"] == "rent_film")


@newest
@pytest.mark.server
def test_every_run_begins_with_the_rows_of_the_archive(shop, engine):
    engine.execute("INSERT INTO rental (copy_id, customer_id, rented_at, returned_at) VALUES (1, 1, now(), now())")
    source = archive(shop, "-Fc")
    result = run(shop, "--shared", "--json", reset={"restore": source})
    assert result.exit_code == 0, result.output[-500:]
    experiment = json.loads(result.stdout)
    assert [run["manifest"]["reset"] for run in experiment["runs"]] == [f"restore {source}"] * 2
    first, second = map(rented, sorted(path.parent for path in Path("runs").glob("*/*/manifest.json")))
    [(rentals,)] = engine.query("SELECT count(*) FROM rental")
    assert first > 0 and second > 0 and rentals == second + 1


@newest
@pytest.mark.server
@pytest.mark.parametrize(
    ("reset", "more", "words"),
    [
        ({"restore": "shop.dump"}, (), "--shared"),
        ({"restore": "nowhere.dump"}, ("--shared",), "not a file"),
        ({"restore": "resets.yaml"}, ("--shared",), "pg_dump -Fc"),
        ({"command": ["nothing-of-the-kind"]}, ("--shared",), "not there to be run"),
        ("restore", ("--shared",), "restore: FILE"),
    ],
)
def test_what_cannot_be_restored_is_refused_before_the_load(reset, more, words, shop, engine):
    archive(shop, "-Fc")
    result = run(shop, *more, reset=reset)
    assert result.exit_code == 3 and words in " ".join(result.output.split())
    assert engine.query("SELECT count(*) FROM rental") == [(0,)]


def test_a_passphrase_is_on_no_command_line():
    engine = PostgresEngine("postgresql://me@db.example/shop?sslkey=me.key&sslpassword=hush")
    with pytest.raises(StallmarkError, match="key without a passphrase") as refused:
        engine.user_backup.refuse("shop.dump")
    assert "hush" not in str(refused.value)


@newest
@pytest.mark.server
def test_a_restore_ends_no_session_of_others(shop, engine):
    source = archive(shop, "-Fc")
    with engine.connect("psql"):
        result = run(shop, "--shared", reset={"restore": source})
    assert result.exit_code == 3 and "psql" in result.output


@newest
@pytest.mark.server
def test_a_command_is_run_before_every_run(shop, engine):
    Path("again.sh").write_text("echo again >> done.txt\n")
    result = run(shop, "--shared", reset={"command": ["sh", "again.sh"]})
    assert result.exit_code == 0, result.output
    assert Path("done.txt").read_text().split() == ["again"] * 2


@pytest.mark.server
def test_an_embedded_database_is_made_again_if_no_copy_from_before_load_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    embedded, slowly = ("--data-dir", "db", "--out", "runs"), ("--set", "think_time={mean: 50ms}")
    quick = stallmark("run", "--sql", STARTER, "-c", 1, "-T", 1, "--set", "warm_up=0s", *slowly, *embedded)
    assert quick.exit_code == 0, quick.output
    YAML().dump(SCENARIO | {"reset": "restore", "repeats": 1}, Path("resets.yaml"))
    scenario = read_document(SCENARIO)
    for made_again in (True, False):
        result = stallmark("run", "resets.yaml", "--json", *embedded)
        assert result.exit_code == 0, result.output
        assert ("made again" in result.stderr) == made_again
        assert [run["manifest"]["reset"] for run in json.loads(result.stdout)["runs"]] == ["restore"]
        *_, last = sorted(path.parent for path in Path("runs").glob("*-resets*/*/manifest.json"))
        with Target(None, Path("db")).engine(scenario.contents, make=False) as engine:
            assert engine.query("SELECT count(*) FROM rental") == [(rented(last),)]


@pytest.mark.parametrize(
    ("reset", "words"),
    [
        ({"restore": "a.bak", "command": ["sh"]}, "leave out the other keys"),
        ({"timeout": "5s"}, "command"),
        ({"command": ["sh", "password=hush"]}, "password"),
        ("sometimes", "restore"),
    ],
)
def test_a_reset_is_one_of_its_kinds(reset, words):
    with pytest.raises(Exception, match=words):
        read_document(SCENARIO | {"reset": reset})
