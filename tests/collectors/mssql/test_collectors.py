"""Common behaviour of all collectors, through the real ODBC driver."""

import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from support.collecting import opened
from support.manifests import a_manifest
from support.mssql_records import SECONDS, run, summary
from support.mssql_server import Server, rows
from support.pages import render
from support.scripted_views import ANSWERS, FILES, REQUESTS, answer_all, answered, everything, words_of
from support.tds.answers import Error, Rows
from support.waiting import eventually

from stallmark.collectors import ON_REQUEST, REGISTRY, collectors_for, storage_alarm
from stallmark.collectors.mssql import MssqlCollector
from stallmark.collectors.mssql.counters import ServerIO, StatisticsUpdates
from stallmark.collectors.mssql.io_latency import LogLatency, Volumes
from stallmark.collectors.mssql.moments import ErrorLog
from stallmark.collectors.sampler import Row, Sampler
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter
from stallmark.report.sections.server import volumes as table

pytestmark = pytest.mark.thorough


def test_every_collector_describes_itself(server: Server) -> None:
    collectors = collectors_for(server.engine(), REQUESTS)
    requested = [kind for kinds in ON_REQUEST["mssql"].values() for kind in kinds]
    named = dict.fromkeys(kind.name for kind in (*REGISTRY["mssql"], *requested))
    assert [collector.name for collector in collectors] == list(named)
    assert len({collector.name for collector in collectors}) == len(collectors)
    for collector in collectors:
        assert collector.title and collector.help.endswith(".") and collector.interval_s > 0
        assert len(collector.columns.names) == len(set(collector.columns.names))


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind is not ErrorLog])
def test_rows_have_the_columns_they_declare(server: Server, kind: type[MssqlCollector]) -> None:
    if kind is StatisticsUpdates:  # rows come of a change
        server.script.sql(words_of(kind), Rows(ANSWERS[kind].columns, []), times=2)
    collector = answered(server, kind)
    assert collector.unavailable() is None
    found = everything(collector)
    assert found
    for row in found:
        assert list(row) == collector.columns.names
    batch = pa.RecordBatch.from_pylist(found, schema=collector.columns)
    assert batch.to_pylist() == found


def test_all_are_available_to_a_login_that_may(server: Server) -> None:
    answer_all(server)
    reasons = {
        c.name: c.unavailable() for c in collectors_for(server.engine(), REQUESTS) if isinstance(c, MssqlCollector)
    }
    assert set(reasons.values()) == {None}, reasons


def test_each_has_a_connection_before_it_samples_and_asks_a_view_of_its_own(server: Server) -> None:
    answer_all(server)
    counters = [
        c
        for c in collectors_for(server.engine(), ["query_store"])
        if isinstance(c, MssqlCollector) and not c.polling and not isinstance(c, LogLatency)  # which makes sessions too
    ]
    assert counters[0].major == 16  # asks who the server is, once
    assert all(counter.sql for counter in counters)  # as `unavailable` tried it
    logins = len(server.responder.logins)
    for number, collector in enumerate(counters, 1):
        collector.open()
        assert len(server.responder.logins) == logins + number
    server.responder.forget()
    for collector in counters:
        collector.sample(0.0)
    assert len(server.responder.logins) == logins + len(counters)
    assert {login.application for login in server.responder.logins[logins:]} == {"stallmark-collector"}
    texts = [request.text for request in server.responder.requests if "query_plan(0x" not in request.text]
    assert len(texts) == len(set(texts)) == len(counters)
    for collector in counters:
        collector.close()


def test_a_lost_connection_is_made_again(server: Server) -> None:
    collector = answered(server, ServerIO)
    with opened(collector):
        assert len(collector.sample(0.0)) == len(FILES)
        server.responder.cut_all()
        with pytest.raises(StallmarkError, match="connection to the server was lost"):
            collector.sample(1.0)
        collector.open()
        assert len(collector.sample(2.0)) == len(FILES)


def test_a_query_that_fails_in_the_middle_says_why(server: Server) -> None:
    server.script.sql(words_of(ServerIO), Error(1222, "Lock request time out period exceeded."), times=1)
    collector = answered(server, ServerIO)
    with opened(collector):
        with pytest.raises(StallmarkError, match=r"refused the query \(Lock request time out period exceeded\)"):
            collector.sample(0.0)
        assert collector.sample(1.0)


def test_the_sampler_fills_every_table(server: Server, tmp_path: Path) -> None:
    answer_all(server)
    collectors = [c for c in collectors_for(server.engine(), REQUESTS) if c.unavailable() is None]
    assert {c.name for c in collectors} == {kind.name for kind in ANSWERS}
    writer = RecordWriter(tmp_path / "run", a_manifest())
    seen: set[str] = set()

    def store(table: str, some: Sequence[Row]) -> None:
        writer.append(table, some)
        seen.add(table)

    for collector in collectors:
        writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
    begin = time.monotonic()
    sampler = Sampler(collectors, store, lambda: time.monotonic() - begin)
    sampler.start()
    eventually(lambda: {"pending_io", "schedulers", "waits"} <= seen)  # those that look at random instants
    sampler.stop()
    writer.close()
    assert sampler.failures == [] and storage_alarm(collectors) is None
    record = Record(tmp_path / "run")
    empty = {name for name in record.tables() if not record.table(name).num_rows}
    assert empty - {"blocking"} == {  # whose moment may not have come
        "transactions", "transaction_io", "users", "client_cpu", "deferred_queue", "errors", "queries", "error_log",
        "statistics_updates",
    }  # fmt: skip


def test_what_is_not_asked_for_is_not_collected(server: Server) -> None:
    names = {collector.name for collector in collectors_for(server.engine(), ["io_latency"])}
    assert "io_latency" in names and not names & {"query_store", "query_store_waits"}


# Windows' counters of volumes, from a typeperf that says what Microsoft's does ("typeperf", Windows commands)


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
