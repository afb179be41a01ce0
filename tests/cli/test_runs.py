"""The list of what was run, and one scenario over time."""

import json
import platform
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from support.manifests import changed
from support.probes import probe, step, write_probe
from support.read_once import kept_summaries, read_once
from support.synthetic import Truth, make_experiment, make_run
from support.tds.odbc import needs_odbc

from stallmark.cli.main import main
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.lab.selftest_checks import _redactor

__all__ = ["kept_summaries", "read_once"]
pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("read_once")]


def listed(*arguments: str):
    done = CliRunner().invoke(main, ["runs", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def sweep(folder: Path, measured_s: float = 5, **scenario) -> None:
    for number, name in enumerate(("small", "large"), 1):
        run = make_run(folder / name, Truth(variant=name, sequence=number, measured_s=measured_s))
        changed(run, scenario={"name": "sweep", **scenario})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sweeps, the second with other users, and a ramp that was cut."""
    out = tmp_path_factory.mktemp("runs")
    sweep(out / "20260101-sweep", users=[30])
    sweep(out / "20260102-sweep", users=[60])
    for folder in make_experiment(out / "20260103-ramp", kind="user-ramp", measured_s=5):
        changed(folder, scenario={"name": "ramp"}, status="incomplete", incomplete_because="the server was gone")
    return out


def test_every_experiment_with_its_state_and_its_result(out: Path):
    found = json.loads(listed("--out", str(out), "--json"))
    assert [(Path(one["folder"]).name, one["scenario"], one["state"]) for one in found] == [
        ("20260101-sweep", "sweep", "complete"), ("20260102-sweep", "sweep", "complete"),
        ("20260103-ramp", "ramp", "ended early"),
    ]  # fmt: skip
    assert all(one["result"] for one in found[:2])
    assert [one["whole"] for one in found] == [2, 2, 0]
    assert "20260103-ramp" in listed("--out", str(out))


def test_probes_are_experiments_of_one_run(tmp_path: Path):
    for name, is_complete in (("20260101-probe", True), ("20260102-probe", False)):
        write_probe(tmp_path, "vda", probe(step(1, 100)), is_complete=is_complete)
        folder = (tmp_path / "01").rename(tmp_path / name)
        changed(folder, experiment=name, scenario={"name": "probe"})
    sweep(tmp_path / "20260103-sweep")
    found = json.loads(listed("--out", str(tmp_path), "--json"))
    assert [(Path(one["folder"]).name, one["scenario"], one["state"], one["whole"]) for one in found] == [
        ("20260101-probe", "probe", "complete", 1), ("20260102-probe", "probe", "ended early", 0),
        ("20260103-sweep", "sweep", "complete", 2),
    ]  # fmt: skip
    assert "1 run, complete" in listed("probe", "--out", str(tmp_path))


def test_the_runs_of_one_experiment_are_no_experiments(out: Path):
    assert CliRunner().invoke(main, ["runs", "--out", str(out / "20260101-sweep")]).exit_code == 3


def test_one_scenario_over_time_marks_what_was_run_otherwise(out: Path, monkeypatch):
    monkeypatch.setattr("stallmark.cli.runs.out", Console(width=140))
    text = listed("sweep", "--out", str(out))
    assert "ramp" not in text
    first, last = [line for line in text.splitlines() if re.match(r"\d{4}-\d\d-\d\d ", line)]
    assert "other settings" in first and "other settings" not in last
    assert len(last.split()) == 2 + 2  # date and minute, a figure for each variant


def test_an_experiment_on_an_older_data_version_is_marked(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("stallmark.cli.runs.out", Console(width=140))
    for day, version in ((1, 1), (2, 2)):
        sweep(tmp_path / f"2026010{day}-sweep")
        for run in (tmp_path / f"2026010{day}-sweep").iterdir():
            changed(run, workload={"name": "bank", "version": version})
    lines = [
        line for line in listed("sweep", "--out", str(tmp_path)).splitlines() if re.match(r"\d{4}-\d\d-\d\d ", line)
    ]
    assert ["other data version" in line for line in lines] == [True, False]


def test_a_folder_without_experiments_is_refused(tmp_path: Path):
    assert CliRunner().invoke(main, ["runs", "--out", str(tmp_path)]).exit_code == 3
    assert CliRunner().invoke(main, ["runs", "--out", str(tmp_path / "none")]).exit_code == 3


def test_a_misspelt_scenario_is_guessed(out: Path):
    done = CliRunner().invoke(main, ["runs", "swep", "--out", str(out)])
    assert done.exit_code == 3 and "did you mean sweep?" in done.stderr


def test_how_many_thresholds_were_kept_is_said_where_there_are_some(tmp_path: Path):
    sweep(tmp_path / "a", measured_s=40, thresholds=["tps > 0.001", "p95 < 0.001ms"])
    sweep(tmp_path / "b")
    found = json.loads(listed("--out", str(tmp_path), "--json"))
    assert [one["thresholds_kept"] for one in found] == [[1, 2], None]
    assert listed("--out", str(tmp_path)).count("1 of 2 thresholds met") == 1


def test_what_was_run_and_when_is_said(out: Path):
    begun = [line for line in listed("--out", str(out)).splitlines() if not line.startswith(" ")]
    assert [line.split()[0] for line in begun] == ["sweep", "sweep", "ramp"]
    assert all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", line) for line in begun)


def test_a_damaged_experiment_does_not_hide_the_others(tmp_path: Path):
    for name in ("a", "b", "c"):
        sweep(tmp_path / name)
    next((tmp_path / "a").glob("*/manifest.json")).write_text("{")
    next((tmp_path / "b").glob("*/transactions.parquet")).write_text("no table")
    found = CliRunner().invoke(main, ["runs", "--out", str(tmp_path), "--json"])
    assert [Path(one["folder"]).name for one in json.loads(found.stdout)] == ["c"]
    assert found.stderr.count("is damaged") == 2


# No host, user, password or folder is in what a selftest says


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:s3cret@db7.corp.example:5432/bank",
        "host=db7.corp.example user=boss password=s3cret dbname=bank",
        pytest.param("mssql://boss:s3cret@db7.corp.example:1433/bank", marks=needs_odbc),
    ],
)
def test_no_host_no_user_and_no_password_is_told(url, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "laptop-of-ann")
    engine = MssqlEngine(url) if url.startswith("mssql") else PostgresEngine(url)
    words = _redactor(engine, "boss")
    said = words(
        "No connection to DB7.corp.example:5432/bank from laptop-of-ann: Login failed for user 'boss' (s3cret), "
        f'role "boss"; see {Path.home()}/x. The boss of bosses stays.'
    )
    assert said == (
        "No connection to <host>:5432/bank from <this machine>: Login failed for user <user> (<password>), "
        "role <user>; see ~/x. The boss of bosses stays."
    )


@needs_odbc
@pytest.mark.parametrize("url", ["mssql://db7.corp.example/bank", "mssql://CORP%5Cann@db7.corp.example/bank"])
def test_no_windows_login_is_told_however_it_is_written(url):
    words = _redactor(MssqlEngine(url), "CORP\\ann")
    said = words(
        "GRANT VIEW SERVER STATE TO [CORP\\ann]; Login failed for user 'CORP\\Ann'; run as corp\\svc-sql$, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )
    assert said == (
        "GRANT VIEW SERVER STATE TO <user>; Login failed for user <user>; run as <user>, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )


@needs_odbc
def test_a_login_in_brackets_is_hidden_as_one_in_quotes_is():
    engine = MssqlEngine("mssql://watcher@db7.corp.example/bank")
    words = _redactor(engine, "watcher")
    assert words("The login [watcher] may not see this; 'watcher' is the watcher.") == (
        "The login <user> may not see this; <user> is the watcher."
    )
