"""`stallmark attach`: what it says, its exit codes, and that the report it leads to has the figures."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest
from click.testing import Result
from support import external_files
from support.command_line import stallmark
from support.synthetic import Truth, make_run

from stallmark.attach.command import offset_s as offset
from stallmark.record.reader import Record


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [make_run(tmp_path / "runs" / f"{n}", Truth(measured_s=50, sequence=n)) for n in (1, 2)]


@pytest.fixture
def disks(runs, tmp_path: Path) -> Path:
    return external_files.perfmon(tmp_path / "sql01.csv", *external_files.disk_of(runs[0]))


def attach(*arguments: str) -> Result:
    return stallmark("attach", *arguments)


@pytest.mark.thorough
def test_it_says_what_was_attached_and_by_which_clock(runs, disks):
    result = attach("runs", "sql01.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "1: “SQL01” attached (perfmon), 6 counters, 55 samples every 1s, 2025-11-21 10:01:01 to 2025-11-21 10:01:55 "
        "UTC.",
        "Its clock: UTC+01:00, as the file says (bias -60 min, W. Europe Standard Time); no offset applied.",
        "stallmark report runs draws it next to the throughput.",
    ]
    assert not Record(runs[1]).manifest.external  # the file does not reach it
    report = stallmark("report", "runs")
    assert report.exit_code == 0 and "Measured elsewhere" in Path("runs/report.html").read_text()


def test_iostat_without_times_takes_those_that_are_given(runs, tmp_path):
    rows = "".join(f"Device r/s r_await\nsda {n}.00 0.50\n\n" for n in range(20))
    (tmp_path / "sql01.iostat").write_text(f"Linux 6.1.0 (sql01) 11/21/2025 _x86_64_ (2 CPU)\n\n{rows}")
    refused = attach("runs/1", "sql01.iostat")
    assert refused.exit_code == 3 and "--start 2026-03-02T10:00 --interval 15s" in refused.stderr
    times = ("--start", "2025-11-21T11:01:10", "--interval", "2s", "--timezone", "Europe/Berlin")
    assert attach("runs/1", "sql01.iostat", *times).exit_code == 0
    entry = Record(runs[0]).manifest.external["sql01"]
    assert (entry.span[0], entry.interval_s) == ("2025-11-21T10:01:12.000+00:00", 2.0)
    assert entry.time_zone == "given with --start and --interval"


def test_what_a_reader_converts_and_leaves_out_is_shown(runs, tmp_path):
    """iostat -m, whose last report is cut."""
    rows = "".join(f"Device r/s rMB/s\nsda {n}.00 0.50\n\n" for n in range(20)) + "Device r/s rMB/s\nsda 1"
    (tmp_path / "sql01.iostat").write_text(f"Linux 6.1.0 (sql01) 11/21/2025 _x86_64_ (2 CPU)\n\n{rows}")
    times = ("--start", "2025-11-21T11:01:10", "--interval", "2s", "--timezone", "Europe/Berlin")
    result = attach("runs/1", "sql01.iostat", *times)
    assert "Converted: bytes are rounded to 0.01 MB" in result.stdout and "reports that are cut" in result.stdout
    entry = Record(runs[0]).manifest.external["sql01"]
    assert len(entry.remarks) == 1 and len(entry.notes) == 2
    assert stallmark("report", "runs").exit_code == 0
    assert "bytes are rounded to 0.01" in Path("runs/report.html").read_text()
    rows = Record(runs[0]).table("external_sql01").filter(pc.field("counter") == "r/s")
    assert rows["value"].to_pylist()[:3] == [1.0, 2.0, 3.0] and rows["t"].to_pylist()[:2] == [12.0, 14.0]


def test_options(runs, disks):
    result = attach(
        "runs/1", "runs/2", "sql01.csv", "--name", "array A", "--timezone", "Europe/Berlin", "--offset", "-2.5s",
        "--counter", "sec/Read", "--counter", "Queue", "--format", "perfmon", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)
    assert one["run"] == "1"
    entry = one["entry"]
    assert (entry["name"], entry["offset_s"], entry["counters"]) == ("array A", -2.5, 2)
    assert entry["time_zone"] == "Europe/Berlin, as given"
    assert entry["span"][0] == "2025-11-21T10:01:00.500+00:00"
    rows = Record(runs[0]).table("external_array_a")
    assert set(rows["counter"].to_pylist()) == {
        "PhysicalDisk Avg. Disk sec/Read", "PhysicalDisk Avg. Disk Queue Length",
    }  # fmt: skip


def test_help_says_what_a_run_may_be():
    result = attach("--help")
    assert result.exit_code == 0 and "RUN... FILE" in result.stdout


def test_an_offset_is_said(runs, disks):
    assert "+2.5 s added to its times." in attach("runs/1", "sql01.csv", "--offset", "2.5s").stdout


def test_replaced(runs, disks):
    assert attach("runs/1", "sql01.csv").exit_code == 0
    again = attach("runs/1", "sql01.csv")
    assert again.exit_code == 3 and "choose another --name, or --replace it." in again.stderr
    assert attach("runs/1", "sql01.csv", "--replace", "--offset", "1s").exit_code == 0
    assert list(Record(runs[0]).manifest.external) == ["sql01"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["runs", "nothing.csv"], "nothing.csv: No such file or directory."),
        (["nowhere", "sql01.csv"], "nowhere does not exist: name the folder of a run"),
        (["runs", "sql01.csv", "--timezone", "Asia/Tokyo"], "does not overlap the runs"),
        (["runs", "sql01.csv", "--counter", "Page life"], "No counter of sql01.csv matches Page life"),
        (["runs", "sql01.csv", "--format", "iostat"], "no times that can be read"),
        (["runs", "sql01.csv", "--format", "csv", "--time-column", "when"], "has no times in a column when"),
        (["runs", "runs"], "runs: Is a directory."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_ends_with_3_and_one_sentence(runs, disks, arguments, sentence):
    result = attach(*arguments)
    assert (result.exit_code, result.stdout) == (3, ""), result.output
    assert result.stderr.count("Error:") == 1 and sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert all(not Record(run).manifest.external for run in runs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Usage:"),
        (["runs"], "Usage:"),
        (["runs", "x", "--format", "xml"], "Usage:"),
        (["runs", "x", "--timezone", "Europe/Belin"], "did you mean Europe/Berlin?"),
        (["runs", "x", "--offset", "2.5"], "2.5 has no unit: write 2.5s or 2.5min"),
        (["runs", "x", "--offset", "soon"], "'soon' is not a duration"),
        (["runs", "x", "--start", "noon", "--interval", "1s"], "noon is not a time"),
        (["runs", "x", "--interval", "1s"], "--start and --interval belong together"),
    ],
    ids=str,
)
def test_a_wrong_command_line_ends_with_2(arguments, words):
    result = attach(*arguments)
    assert result.exit_code == 2 and words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "seconds"), [("2.5s", 2.5), ("-2.5s", -2.5), ("+500ms", 0.5), ("-1h", -3600), ("0s", 0)]
)
def test_offsets(text, seconds):
    assert offset(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "5", "--5s", "1:30", "+-1s"])
def test_what_is_no_offset(text):
    with pytest.raises(ValueError, match=r"^\S.*[^.]$"):
        offset(text)
