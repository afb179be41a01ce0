"""`stallmark profile --from`: files of other tools become a profile with its report, or a sentence."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.support.recorders import Moment, iostat_text, perfmon_csv

from stallmark.analysis.profile import summarise_profile
from stallmark.analysis.profile_rates import Measure, ProfileKind
from stallmark.cli.main import main
from stallmark.record.profile import read_profile

MOMENTS = [Moment(1772445600.0 + 15 * n, {"D:": (n * 30.0,) * 6, "L:": (n * 60.0,) * 6}, n, n * 10) for n in range(9)]


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "perfmon.csv"
    path.write_text(perfmon_csv(MOMENTS).replace("SQL01", "<b>SQL01"))
    return path


def run(*arguments: object):
    return CliRunner().invoke(main, ["profile", *map(str, arguments)])


def test_a_file_becomes_a_profile_with_its_report(recorded, tmp_path):
    folder = tmp_path / "out"
    done = run("--from", recorded, "--class", "D:=data", "--class", "L:=log", "--out", folder, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["report"].endswith("report.html")
    page = (folder / "report.html").read_text()
    assert "&lt;b&gt;SQL01" in page and "<b>SQL01" not in page
    assert all(note in page for note in read_profile(folder).notes) and read_profile(folder).notes


@pytest.mark.parametrize(
    "more",
    [
        ["--for", "24h"],
        ["--server", "mssql://h/d"],
        ["--class", "D:"],
        ["--class", "D:=disk"],
        ["--timezone", "Mars"],
        ["--class", "D:=data", "--class", "D:=log"],
    ],
)
def test_options_that_do_not_fit_are_refused_and_nothing_is_written(recorded, tmp_path, more):
    done = run("--from", recorded, "--out", tmp_path / "out", *more)
    assert done.exit_code != 0 and "Traceback" not in done.output and not (tmp_path / "out").exists()


def test_neither_server_nor_files_is_refused(tmp_path):
    assert run("--out", tmp_path / "out").exit_code == 2
    assert run("--out", tmp_path / "out", "--dates", "day-first").exit_code == 2


def test_the_terminal_and_the_page_say_the_notes_and_nothing_of_own_samples(recorded, tmp_path):
    done = run("--from", recorded, "--class", "D:=data", "--class", "L:=log", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert all(" ".join(note.split()) in said for note in read_profile(tmp_path / "out").notes)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Perfmon recorded a sample about every 15 s" in page and "Counters are read about every 15 s" not in page


def test_a_late_sample_is_in_totals_and_in_no_percentile_of_minutes(tmp_path):
    """A busy time of 20 minutes, of which nobody knows the minutes."""
    quiet = [(600.0 + 15 * n, 30.0 * n) for n in range(41)]
    busy = [(at + 1800, count + 1_200_000) for at, count in quiet]
    moments = [Moment(1772445600.0 + at, {"sda": (count,) * 6}) for at, count in [*quiet, *busy]]
    path = tmp_path / "sql01.iostat"
    path.write_text(iostat_text(moments))
    assert run("--from", path, "--out", tmp_path / "out").exit_code == 0
    found = summarise_profile(tmp_path / "out")
    [late] = [one.facts for one in found.cautions if one.kind is ProfileKind.LATE]
    assert (late["samples"], late["late_s"]) == (1, 1200.0) and not found.unseen
    assert found.seen_s == 2400 and found.means[Measure.READS] == pytest.approx(1_202_400 / 2400, rel=1e-3)
    assert found.percentiles[Measure.READS]["max"] == pytest.approx(2.0, abs=0.01) and len(found.minutes.begin) == 20
    assert np.nansum(found.hours.values[Measure.READS]) > 100
    assert "percentiles do not" in (tmp_path / "out" / "report.html").read_text()


def test_times_of_reports_are_given(tmp_path):
    path = tmp_path / "sql01.iostat"
    path.write_text(iostat_text(MOMENTS, times=False))
    refused = run("--from", path, "--out", tmp_path / "out")
    assert refused.exit_code == 3 and "--start 2026-03-02T10:00 --interval 15s" in " ".join(refused.output.split())
    times = ["--start", "2026-03-02T10:00", "--interval", "15s", "--timezone", "UTC"]
    done = run("--from", path, *times, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert read_profile(tmp_path / "out").started.startswith("2026-03-02T10:00:00")
    assert run("--from", path, *times[:2], "--out", tmp_path / "no").exit_code == 2
    assert run(*times, "--out", tmp_path / "no").exit_code == 2


@pytest.mark.parametrize(
    "options", [("--start", "noon"), ("--interval", "15s"), ("--start", "noon", "--interval", "1s")]
)
def test_options_of_files_need_files_first(tmp_path, options):
    refused = run(*options, "--out", tmp_path / "no")
    assert refused.exit_code == 2 and "require --from" in " ".join(refused.output.split())


def test_reads_of_devices_are_not_said_to_be_postgresqls(tmp_path):
    def series(name: str, **labels: str) -> dict:
        points = [[1772445600.0 + 15 * n, str(n * 30)] for n in range(9)]
        return {"metric": {"__name__": name, "instance": "db1:9100"} | labels, "values": points}

    names = [
        series("node_disk_reads_completed_total", device="sda"),
        series("node_disk_writes_completed_total", device="sda"),
    ]
    names.append(series("pg_stat_database_xact_commit", datname="shop"))
    path = tmp_path / "range.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": names}}))
    assert run("--from", path, "--out", tmp_path / "out").exit_code == 0
    found = summarise_profile(tmp_path / "out")
    assert found.manifest.server.engine == "postgresql"
    assert {ProfileKind.CACHED_READS, ProfileKind.SAMPLED_WAITS}.isdisjoint(one.kind for one in found.cautions)


def test_values_that_are_missing_are_no_counters_that_began_anew(recorded, tmp_path):
    lines = recorded.read_text().splitlines()
    for place in (3, 4):
        cells = lines[place].split(",")
        cells[3] = '" "'  # writes of the first disk
        lines[place] = ",".join(cells)
    recorded.write_text("\r\n".join(lines))
    assert run("--from", recorded, "--out", tmp_path / "out").exit_code == 0
    lost = [one for one in summarise_profile(tmp_path / "out").cautions if one.kind is ProfileKind.LOST]
    assert [(one.facts["share"], one.facts["imported"]) for one in lost] == [(pytest.approx(0.25), True)]


def test_series_of_a_csv_are_mapped_to_our_names(tmp_path):
    rows = [f"2026-03-02T10:{minute:02d}:00Z,{100 + minute},4096" for minute in range(9)]
    (tmp_path / "rds.csv").write_text("\n".join(["Timestamp,ReadIOPS,read_bytes_per_s", *rows]) + "\n")
    done = run("--from", tmp_path / "rds.csv", "--map", "ReadIOPS=reads_per_s", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert read_profile(tmp_path / "out").source == "csv"
    assert "Another tool recorded a sample about every 60 s" in (tmp_path / "out/report.html").read_text()
    for wrong in (["--map", "ReadIOPS"], ["--map", "ReadIOPS=reads", "--map", "ReadIOPS=writes"]):
        assert run("--from", tmp_path / "rds.csv", "--out", tmp_path / "no", *wrong).exit_code == 2
    assert run("--out", tmp_path / "no", "--map", "ReadIOPS=reads_per_s").exit_code == 2
