"""Windows' counters of volumes, from a typeperf that says what Microsoft's does ("typeperf", Windows commands)."""

import os
import platform
import shutil
import sys
from pathlib import Path

import pytest
from support.collecting import opened
from support.mssql_records import SECONDS, run, summary
from support.mssql_server import Server, rows
from support.waiting import eventually

from stallmark.collectors.mssql.io_latency import Volumes
from stallmark.errors import StallmarkError
from stallmark.report.page import render
from stallmark.report.sections.server import volumes as table

HEADER = '"(PDH-CSV 4.0)",' + ",".join(
    f'"\\\\\\\\SQL01\\\\LogicalDisk({v})\\\\{n}"' for v in ("D:", "L:") for n in range(5)
)
LINES = [
    '"11/23/2026 09:30:01.123","3.000000","0.004250","0.001000","812.500000","40.000000",'
    '"0.000000"," ","0.000500","0.000000","390.000000"'
]
FAKE = """#!{python}
import sys, time
open({asked!r}, "w").write("\\n".join(sys.argv[1:]))
print()
for line in {lines!r}:
    print(line, flush=True)
time.sleep({seconds})
"""


@pytest.fixture
def windows(monkeypatch, tmp_path):
    """This machine, taken for a Windows on which the server runs; returns where typeperf's arguments are."""
    monkeypatch.setattr(platform, "node", lambda: "SQL01")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def typeperf(*lines: str, seconds: float = 60) -> Path:
        program, asked = tmp_path / "typeperf", tmp_path / "asked"
        program.write_text(FAKE.format(python=sys.executable, asked=str(asked), lines=list(lines), seconds=seconds))
        program.chmod(0o755)
        return asked

    return typeperf


def placed(server: Server, machine: str = "sql01") -> Volumes:
    points = [(machine, "D:\\"), (machine, "L:\\")]
    server.script.sql("dm_os_volume_stats", rows(["machine", "mount_point"], *points))
    return Volumes(server.engine())


def test_queue_and_latency_of_each_volume_under_a_file(server, windows):
    asked = windows(HEADER, *LINES)
    collector = placed(server)
    assert collector.unavailable() is None
    with opened(collector):
        eventually(lambda: len(collector._lines) >= 3)
        data, log = collector.sample(0.0)
        assert collector.sample(1.0) == []
    assert data == {
        "volume": "D:", "queue": 3.0, "read_ms": 4.25, "write_ms": 1.0, "reads_per_s": 812.5, "writes_per_s": 40.0,
    }  # fmt: skip
    assert (log["volume"], log["read_ms"], log["write_ms"]) == ("L:", None, 0.5)
    wanted = asked.read_text().splitlines()
    assert wanted[0] == r"\LogicalDisk(D:)\Current Disk Queue Length" and wanted[-2:] == ["-si", "1"]


def test_a_typeperf_that_ends_is_said_with_its_words(server, windows):
    windows("Error: No valid counters.", seconds=0)  # as on a Windows that names them in another language
    collector = placed(server)
    with opened(collector):
        assert collector._process
        collector._process.wait(30)
        eventually(lambda: bool(collector._lines))
        with pytest.raises(StallmarkError, match=r"No valid counters.*stallmark attach"):
            collector.sample(0.0)


def test_where_they_are_not_to_be_had(server, windows, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "typeperf, which belongs to Windows" in str(placed(server).unavailable())


def test_a_server_elsewhere_needs_a_log_of_its_own(server, windows):
    assert "another machine" in str(placed(server, "sql02").unavailable())


@pytest.mark.parametrize("places", [[], [(None, "D:\\")], [("sql01", None)]])
def test_volumes_that_are_hidden_are_not_taken_for_another_machine(server, windows, places):
    windows()
    server.script.sql("dm_os_volume_stats", rows(["machine", "mount_point"], *places))
    said = str(Volumes(server.engine()).unavailable())
    assert said.startswith("The server does not show this login its machine and its volumes") and "attach" in said
    assert not server.asked("JOIN sys.master_files")  # where a login without VIEW ANY DEFINITION finds nothing


def test_lines_of_another_number_of_values_are_counted(server, windows):
    """As of a typeperf that leaves a counter out that it does not find."""
    windows(HEADER, LINES[0], LINES[0].rsplit(",", 1)[0], LINES[0].rsplit(",", 1)[0])
    with opened(placed(server)) as collector:
        eventually(lambda: len(collector._lines) >= 5)
        assert [row["volume"] for row in collector.sample(0.0)] == ["D:", "L:"]
    assert collector.incomplete == "2 of typeperf's lines had other values than were asked for"


def test_no_line_of_values_is_dropped_without_a_word(server, windows):
    """Semicolons, as Windows separates lists where commas are decimal, words in place of values, and blanks alone."""
    semicolons = LINES[0].replace(",", ";")
    words, blanks = (",".join([LINES[0].split(",")[0], *[cell] * 10]) for cell in ('"Fehler"', '" "'))
    windows(HEADER, semicolons, words, blanks, '"The command completed successfully."')
    with opened(placed(server)) as collector:
        eventually(lambda: len(collector._lines) >= 6)
        assert [row["volume"] for row in collector.sample(0.0)] == ["D:", "L:"]
    assert collector.incomplete == "1 of typeperf's lines had other values than were asked for"


def test_the_report_has_a_row_for_each_volume(tmp_path):
    def second(t: int) -> dict:
        busy = t % 2
        return {"t": t + 0.5, "volume": "D:", "queue": 4.0 * busy, "read_ms": 10.0 if busy else 1.0, "write_ms": 0.0,
                "reads_per_s": 300.0 if busy else 100.0, "writes_per_s": 0.0}  # fmt: skip

    experiment = summary(run(tmp_path / "run", volumes=[second(t) for t in range(SECONDS)]))
    [row] = table(experiment).rows
    assert [str(cell) for cell in row[1:]] == ["D:", "2.00", "200", "7.75", "0", "–"]
    assert "Volumes, as Windows counts them" in render(experiment)


def test_a_windows_of_another_language_is_read(server, windows, tmp_path, monkeypatch):
    """Icinga #6418: decimal commas, and messages in the code page of the console (850), which is no UTF-8."""
    line = LINES[0].replace(".", ",").replace("01,123", "01.123")
    asked = windows(line)
    program = tmp_path / "typeperf"
    said = "sys.stdout.buffer.write(b'\\x84 Befehl ausgef\\x81hrt\\n'); sys.stdout.flush()"
    program.write_text(program.read_text().replace("print()", f"{said}\nprint()", 1))
    collector = placed(server)
    with opened(collector):
        eventually(lambda: asked.exists() and len(collector._lines) >= 3)
        data, log = collector.sample(0.0)
    assert (data["read_ms"], data["reads_per_s"], log["read_ms"]) == (4.25, 812.5, None)
