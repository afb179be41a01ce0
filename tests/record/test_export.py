"""A record as CSV: every table, every value, with units; also of records that have none."""

import csv
import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.manifests import a_manifest
from support.record_kinds import collected, collecting, imported
from support.tables import get, put

from stallmark.cli.main import main
from stallmark.record import histogram
from stallmark.record.profile_tables import Profile
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED, TABLES, column, unit_of
from stallmark.record.writer import RecordWriter

LATENCIES_US = (900, 900, 5_000_000)
COLLECTED = pa.schema([*SAMPLED, column("reads", pa.int64(), "reads so far", "I/Os")])


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def make(folder: Path, *, closed: bool = True) -> Path:
    writer = RecordWriter(folder, a_manifest())
    writer.add_table("server_io", COLLECTED)
    some = histogram.encode(pa.array(LATENCIES_US).to_numpy())
    for second, name in ((1, "trade_order"), (2, '=a "quoted", one')):
        row = dict.fromkeys(TABLES["transactions"].names, 0) | {"second": second, "load": "brokerage"}
        row |= {"transaction": name, "committed": 3}
        row |= histogram.columns("latency", some) | histogram.columns("service", histogram.Histogram(b"", b""))
        writer.append("transactions", [row])
    writer.append("server_io", [{"t": 0.5, "took_s": 0.01, "reads": None}])
    if closed:
        writer.close()
    return folder


def exported(run: Path, into: Path) -> Path:
    done = CliRunner().invoke(main, ["export", str(run), "--csv", str(into)])
    assert done.exit_code == 0, done.output
    return into


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "cut"])
def test_every_table_and_value(tmp_path: Path, closed: bool):
    into = exported(make(tmp_path / "run", closed=closed), tmp_path / "csv")
    assert {path.stem for path in into.glob("*.csv")} == {
        *TABLES, "server_io", "columns", "transactions.latency", "transactions.service",
    }  # fmt: skip
    found = rows_of(into / "transactions.csv")
    assert [(row["second"], row["transaction"], row["committed"]) for row in found] == [
        ("1", "trade_order", "3"), ("2", '\'=a "quoted", one', "3"),
    ]  # fmt: skip
    assert [row["reads"] for row in rows_of(into / "server_io.csv")] == [""]
    assert json.loads((into / "manifest.json").read_text())["format"] == 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "tables"),
    [
        (collected, {"samples", "file_counters", "server_counters", "wait_counters", "sessions_seen"}),
        (collecting, {"samples", "file_counters", "server_counters", "wait_counters", "sessions_seen"}),
        (imported, {"file_io", "server"}),
    ],
)
def test_every_table_and_value_of_a_profile(tmp_path: Path, make, tables):
    make(tmp_path)
    into = exported(tmp_path / "profile", tmp_path / "csv")
    assert {path.stem for path in into.glob("*.csv")} == {*tables, "columns"}
    described = {(row["table"], row["column"]): row["unit"] for row in rows_of(into / "columns.csv")}
    for name in tables:
        whole, rows = Profile(tmp_path / "profile").table(name), rows_of(into / f"{name}.csv")
        assert len(rows) == whole.num_rows and {(name, heading) for heading in whole.column_names} <= described.keys()
        for heading in whole.column_names if rows else ():
            kind = whole.schema.field(heading).type
            of_text = datetime.fromisoformat if pa.types.is_timestamp(kind) else kind.to_pandas_dtype()
            found = [of_text(row[heading]) if row[heading] else None for row in rows]
            assert found == whole[heading].to_pylist(), heading
    assert json.loads((into / "profile.json").read_text())["kind"] == "profile"
    unit = described.get(("file_counters", "read_stall_ms"), described.get(("file_io", "read_stall_ms")))
    assert unit == "ms"


def test_metrics_of_steps_are_of_runs_alone(tmp_path: Path):
    imported(tmp_path)
    done = CliRunner().invoke(main, ["export", str(tmp_path / "profile"), "--flat", "-"])
    assert done.exit_code == 3 and "is a profile, not a run" in " ".join(done.stderr.split())


def test_a_histogram_has_a_row_for_each_bucket(tmp_path: Path):
    into = exported(make(tmp_path / "run"), tmp_path / "csv")
    of_one = [(900, 2), (4_997_120, 1)]  # three digits: the bucket that 5 s fall in begins there
    found = [
        (row["second"], int(row["latency_us"]), int(row["count"])) for row in rows_of(into / "transactions.latency.csv")
    ]
    assert found == [(second, *bucket) for second in ("1", "2") for bucket in of_one]
    assert rows_of(into / "transactions.service.csv") == []


def test_every_column_is_described_with_its_unit(tmp_path: Path):
    into = exported(make(tmp_path / "run"), tmp_path / "csv")
    described = {(row["table"], row["column"]): row["unit"] for row in rows_of(into / "columns.csv")}
    for path in into.glob("*.csv"):
        with path.open(newline="") as file:
            assert path.stem == "columns" or all((path.stem, one) in described for one in next(csv.reader(file)))
    assert described["server_io", "reads"] == "I/Os" and described["server_io", "took_s"] == "s"
    assert described["transactions.latency", "latency_us"] == "µs"


def test_a_record_without_metadata_is_read_and_exported(tmp_path: Path):
    run = make(tmp_path / "run")
    for path in run.glob("*.parquet"):
        table = get(run, path.stem)
        bare = pa.schema([one.remove_metadata() for one in table.schema])
        put(run, path.stem, table.cast(bare))
    assert unit_of(Record(run).schema("users").field("busy_us")) == ""
    described = {
        (row["table"], row["column"]): row["unit"] for row in rows_of(exported(run, tmp_path / "csv") / "columns.csv")
    }
    assert described["users", "busy_us"] == "µs" and described["server_io", "reads"] == ""


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path):
    into = exported(make(tmp_path / "run"), tmp_path / "csv")
    done = CliRunner().invoke(main, ["export", str(tmp_path / "run"), "--csv", str(into)])
    assert done.exit_code == 3 and "is not empty: name another folder." in " ".join(done.stderr.split())


def test_a_failed_export_leaves_the_folder_as_it_was(tmp_path: Path):
    record = make(tmp_path / "run")
    whole = (record / "transactions.parquet").read_bytes()
    (record / "transactions.parquet").write_bytes(b"\0" * len(whole))
    command = ["export", str(record), "--csv", str(tmp_path / "csv")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and "is damaged" in " ".join(done.stderr.split())
    assert not list((tmp_path / "csv").iterdir())
    (record / "transactions.parquet").write_bytes(whole)
    assert CliRunner().invoke(main, command).exit_code == 0


def test_a_failed_export_of_several_records_leaves_none(tmp_path: Path):
    """Neither the first record, if the second is damaged, nor anything if a folder is not empty."""
    runs = [make(tmp_path / "runs" / name) for name in ("01-a", "02-b")]
    whole = (runs[1] / "transactions.parquet").read_bytes()
    command = ["export", *map(str, runs), "--csv", str(tmp_path / "csv")]
    (runs[1] / "transactions.parquet").write_bytes(b"\0" * len(whole))
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and not done.stdout and "is damaged" in " ".join(done.stderr.split())
    assert not [path for path in (tmp_path / "csv").rglob("*") if path.is_file()]
    (runs[1] / "transactions.parquet").write_bytes(whole)
    (other := tmp_path / "csv" / "runs" / "02-b" / "mine").parent.mkdir(exist_ok=True)
    other.touch()
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and "02-b is not empty" in " ".join(done.stderr.split())
    assert [path for path in (tmp_path / "csv").rglob("*") if path.is_file()] == [other]
    other.unlink()
    assert CliRunner().invoke(main, command).exit_code == 0
    assert {path.parent.name for path in (tmp_path / "csv").glob("runs/*/columns.csv")} == {"01-a", "02-b"}


def test_records_with_one_name_are_told_apart_by_the_folders_above(tmp_path: Path):
    profiles = []
    for machine in "ab":
        (tmp_path / machine / "shop").mkdir(parents=True)
        imported(tmp_path / machine / "shop")
        profiles.append(str(tmp_path / machine / "shop" / "profile"))
    done = CliRunner().invoke(main, ["export", *profiles, "--csv", str(tmp_path / "csv")])
    assert done.exit_code == 0
    assert all((tmp_path / "csv" / machine / "shop" / "profile" / "columns.csv").exists() for machine in "ab")


def test_tables_are_not_written_to_standard_output(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["export", str(make(tmp_path / "run")), "--csv", "-"])
    assert done.exit_code == 2 and "tables need a folder" in " ".join(done.stderr.split())
    assert not (tmp_path / "-").exists()
