"""The queries and commands of docs/import-a-profile.md for what monitoring tools stored.

Each is parsed, and run on tables or outputs of the form that the tools' sources and documentation show.
"""

import csv
import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import duckdb
import jq
import pytest
from support.documents import ROOT, fenced_blocks, shell_commands
from support.tsql import parser

from stallmark.profile.command import _names

PAGE = ROOT / "docs/import-a-profile.md"
SAMPLES = Path(__file__).parent / "samples"
QUERIES = fenced_blocks(PAGE, "sql")
TSQL = [text for text in QUERIES if text.startswith("SET NOCOUNT ON")]


def query(table: str) -> str:
    [text] = [text for text in QUERIES if re.search(rf"\bFROM {re.escape(table)}\b", text)]
    return text


def block(kind: str, words: str) -> str:
    [text] = [text for text in fenced_blocks(PAGE, kind) if words in text]
    return text


def names_of(command: str) -> dict[str, str]:
    """Return the names that the command of the page for a file gives with --map."""
    [words] = [one.words for one in shell_commands() if one.page == PAGE.name and f"--from {command}" in one.text]
    return _names([after for word, after in pairwise(words) if word == "--map"])


def test_four_are_for_sql_server():
    assert len(TSQL) == 4


@pytest.mark.microsoft_parser
@pytest.mark.parametrize("text", TSQL)
def test_microsofts_parser_takes_the_queries(text):
    assert parser.errors(text) == []


def run(text: str, *tables: str) -> str:
    """Return what a query gives as `sqlcmd -W -s ,` writes it: DuckDB takes these texts as they are."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for table in tables:
            database.execute(table)
        result = database.execute(text.removeprefix("SET NOCOUNT ON;"))
        header = [column[0] for column in result.description]
        rows = [["NULL" if cell is None else str(cell) for cell in row] for row in result.fetchall()]
    return "\n".join(",".join(row) for row in [header, ["-" * len(name) for name in header], *rows]) + "\n"


FILES = (
    # Database and file, name of the database, type of file, what it did in 15 minutes n.
    (5, 1, "shop", "ROWS", (100, 200)),
    (5, 2, "shop", "LOG", (10, 20)),
    (2, 1, "tempdb", "ROWS", (1, 2)),
    (2, 2, "tempdb", "LOG", (1, 2)),
)
EXPECTED = {"data": [100, 200], "log": [10, 20], "tempdb": [2, 4]}


def totals() -> list[tuple[int, int, int, str, str, int]]:
    """Return by sample, database and file: name, type, and its total of reads."""
    return [
        (sample, database, file, name, kind, 1000 + sum(counts[:sample]))
        for sample in range(3)
        for database, file, name, kind, counts in FILES
    ]


def check(found) -> None:
    for held, reads in EXPECTED.items():
        assert found.io("reads", held) == reads
        assert found.io("read_bytes", held) == [8192 * count for count in reads]
        assert found.io("read_stall_ms", held) == [3 * count for count in reads]
        assert found.io("writes", held) == [2 * count for count in reads]
        assert found.io("write_bytes", held) == [4096 * count for count in reads]
        assert found.io("write_stall_ms", held) == [count for count in reads]
    assert found.ends()[-1].endswith("10:30:00")


def values(rows: list[tuple]) -> str:
    return ", ".join(
        "(" + ", ".join(f"'{cell}'" if isinstance(cell, str) else str(cell) for cell in row) + ")" for row in rows
    )


def counters(reads: int) -> tuple[int, ...]:
    """Return reads, bytes and ms of reads, and of writes, for so many reads."""
    return reads, 8192 * reads, 3 * reads, 2 * reads, 4096 * reads, reads


def time(sample: int) -> str:
    return f"2026-03-02 10:{15 * sample:02d}:00"


def test_sp_blitzfirst(import_texts):
    rows = [
        ("SQL01", f"{time(sample)}+00:00", database, file, name, kind, *counters(reads))
        for sample, database, file, name, kind, reads in totals()
    ] + [("SQL02", f"{time(0)}+00:00", 9, 1, "other", "ROWS", *counters(7))]
    text = run(
        query("dbo.BlitzFirst_FileStats"),
        "CREATE SCHEMA dbo",
        "CREATE TABLE dbo.BlitzFirst_FileStats (ServerName VARCHAR, CheckDate TIMESTAMPTZ, DatabaseID INT, FileID INT, "
        "DatabaseName VARCHAR, TypeDesc VARCHAR, num_of_reads BIGINT, bytes_read BIGINT, io_stall_read_ms BIGINT, "
        "num_of_writes BIGINT, bytes_written BIGINT, io_stall_write_ms BIGINT)",
        f"INSERT INTO dbo.BlitzFirst_FileStats VALUES {values(rows)}",
    )
    names = (("SQL Statistics", "Batch Requests/sec", "", 60), ("Databases", "Transactions/sec", "shop", 30))
    more = (("Databases", "Transactions/sec", "_Total", 99), ("Databases", "Log Bytes Flushed/sec", "_Total", 1000))
    states = (
        ("Buffer Manager", "Page life expectancy", "", 300),
        ("Memory Manager", "Target Server Memory (KB)", "", 4),
    )
    counts = [
        (
            "SQL01",
            f"{time(sample)}+00:00",
            f"SQLServer:{object}",
            counter,
            instance,
            rise if "/sec" not in counter else sample * rise,
        )
        for sample in range(3)
        for object, counter, instance, rise in (*names, *more, *states)
    ]
    server = run(
        query("dbo.BlitzFirst_PerfmonStats"),
        "CREATE SCHEMA dbo",
        "CREATE TABLE dbo.BlitzFirst_PerfmonStats (ServerName VARCHAR, CheckDate TIMESTAMPTZ, object_name VARCHAR, "
        "counter_name VARCHAR, instance_name VARCHAR, cntr_value BIGINT)",
        f"INSERT INTO dbo.BlitzFirst_PerfmonStats VALUES {values(counts)}",
    )
    found = import_texts(text, server)
    check(found)
    assert found.server("batches") == [60, 60] and found.server("transactions") == [30, 30]
    assert found.server("log_bytes") == [1000, 1000] and found.server("page_life_expectancy_s") == [300, 300]
    assert found.server("memory_target_bytes") == [4096, 4096] and found.server("log_flushes") == [None, None]


def test_performance_monitor(import_texts):
    rows = [
        (time(sample), database, name, file, kind, *counters(reads))
        for sample, database, file, name, kind, reads in totals()
    ]
    text = run(
        query("collect.file_io_stats"),
        "CREATE SCHEMA collect",
        "CREATE TABLE collect.file_io_stats (collection_time TIMESTAMP, database_id INT, database_name VARCHAR, "
        "file_id INT, file_type_desc VARCHAR, num_of_reads BIGINT, num_of_bytes_read BIGINT, io_stall_read_ms BIGINT, "
        "num_of_writes BIGINT, num_of_bytes_written BIGINT, io_stall_write_ms BIGINT)",
        f"INSERT INTO collect.file_io_stats VALUES {values(rows)}",
    )
    check(import_texts(text, zone="UTC"))


def test_performance_monitor_lite(import_texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        (time(sample), "SQL01", name, f"{name}{file}", kind, *counters(reads))
        for sample, database, file, name, kind, reads in totals()
    ]
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE file_io_stats (collection_time TIMESTAMP, server_name VARCHAR, database_name VARCHAR, "
            "file_name VARCHAR, file_type VARCHAR, num_of_reads BIGINT, read_bytes BIGINT, io_stall_read_ms BIGINT, "
            "num_of_writes BIGINT, write_bytes BIGINT, io_stall_write_ms BIGINT)"
        )
        database.execute(f"INSERT INTO file_io_stats VALUES {values(rows)}")
        database.execute(query("file_io_stats"))
    check(import_texts(tmp_path / "files.csv", zone="UTC"))


def test_dba_dash(import_texts):
    rows = [
        (1, 10 * database + file, time(sample + 1), *counters(counts[sample]))
        for sample in range(2)
        for database, file, _, _, counts in FILES
    ] + [(1, -1, time(1), *counters(113)), (1, 51, time(0), *counters(1))]
    text = run(
        query("dbo.DBIOStats"),
        "CREATE SCHEMA dbo",
        "CREATE TABLE dbo.DBIOStats (InstanceID INT, FileID INT, SnapshotDate TIMESTAMP, num_of_reads BIGINT, "
        "num_of_bytes_read BIGINT, io_stall_read_ms BIGINT, num_of_writes BIGINT, num_of_bytes_written BIGINT, "
        "io_stall_write_ms BIGINT)",
        f"INSERT INTO dbo.DBIOStats VALUES {values(rows)}",
        "CREATE TABLE dbo.Instances (InstanceID INT, ConnectionID VARCHAR)",
        "INSERT INTO dbo.Instances VALUES (1, 'SQL01'), (2, 'SQL02')",
        "CREATE TABLE dbo.Databases (DatabaseID INT, InstanceID INT, name VARCHAR)",
        "INSERT INTO dbo.Databases VALUES (5, 1, 'shop'), (2, 1, 'tempdb')",
        "CREATE TABLE dbo.DBFiles (FileID INT, DatabaseID INT, type TINYINT)",
        "INSERT INTO dbo.DBFiles VALUES (51, 5, 0), (52, 5, 1), (21, 2, 0), (22, 2, 1)",
    )
    check(import_texts(text, zone="UTC"))


def test_telegraf_in_influxdb(import_texts):
    """The answer of InfluxDB 1.6.7 to the query of the page; its durations alone are not SQL."""
    text = block("influxql", "FROM sqlserver_database_io")
    [_] = duckdb.extract_statements(text.replace("time(15s)", "time").replace(" fill(none)", ""))
    columns = re.findall(r'AS "([^"]+)"', text)
    with (SAMPLES / "influxdb_log.csv").open() as file:
        assert next(csv.reader(file)) == ["name", "tags", "time", *columns]
    found = import_texts(SAMPLES / "influxdb_log.csv")
    assert found.io("reads", "log") == [200] * 5 and found.io("write_stall_ms", "log") == [200] * 5


def test_telegraf_in_line_protocol(import_texts, tmp_path):
    (tmp_path / "telegraf.awk").write_text(block("awk", "sqlserver_database_io"))
    done = subprocess.run(
        ["awk", "-f", tmp_path / "telegraf.awk", SAMPLES / "telegraf.line"], capture_output=True, text=True, check=True
    )
    found = import_texts(done.stdout)
    assert found.io("reads", "data") == [500] * 2 and found.io("read_bytes", "log") == [200 * 8192] * 2
    assert found.io("writes", "tempdb") == [150] * 2 and found.io("read_stall_ms", "data") == [1000] * 2


def run_jq(program: str, document: Path | None = None) -> list:
    return jq.compile(program).input_text(document.read_text() if document else "null").all()


def test_cloudwatch(import_texts):
    found = import_texts("\n".join(run_jq(block("jq", "# points.jq"), SAMPLES / "rds.json")), names=names_of("rds.csv"))
    assert found.ends() == ["02 10:01:00", "02 10:02:00"] and found.io("reads") == [80 * 60, 90 * 60]
    assert found.io("write_bytes") == [655360 * 60] * 2 and found.server("connections") == [11, 12]
    assert found.io("read_stall_ms") == pytest.approx([80 * 60 * 4, 90 * 60 * 2])
    assert found.io("write_stall_ms") == pytest.approx([30 * 60, 40 * 60])


def test_the_queries_of_cloudwatch_are_those_that_are_mapped():
    [queries] = run_jq(block("jq", "# rds.jq"))
    assert {f"{query['Label']} value" for query in queries} == names_of("rds.csv").keys()
    assert all(query["MetricStat"]["Metric"]["MetricName"] == query["Label"] for query in queries)


COUNTER_SAMPLES = """\
#TYPE Microsoft.PowerShell.Commands.GetCounter.PerformanceCounterSample
"Path","InstanceName","CookedValue","RawValue","SecondValue","MultipleCount","CounterType","Timestamp",\
"Timestamp100NSec","Status","DefaultScale","TimeBase"
"""
"""The properties of Microsoft.PowerShell.Commands.GetCounter.PerformanceCounterSample, as Export-Csv of PowerShell 5.1
writes them."""


def test_counter_samples_of_powershell(import_texts):
    option = re.search(r"`(--map '[^`]*CookedValue[^`]*)`", PAGE.read_text())
    names = _names(shlex.split(option[1])[1:])
    [path] = [name.removesuffix(" CookedValue") for name in names]
    rows = "".join(
        f'"{name}","{name}","{rate}.5","9","9","1","Rate","3/2/2026 10:00:{second} AM","9","0","0","9"\n'
        for second, rate in ((10, 100), (20, 200), (30, 300))
        for name in (path, path.replace("0 c:", "_total"))
    )
    assert import_texts(COUNTER_SAMPLES + rows, names=names, zone="UTC").io("reads") == [2005, 3005]


def test_azure_monitor(import_texts):
    found = import_texts(
        "\n".join(run_jq(block("jq", "# metrics.jq"), SAMPLES / "metrics.json")), names=names_of("vm.csv")
    )
    assert found.io("reads") == [120 * 60, None] and found.io("write_bytes") == [98304 * 60, 114688 * 60]
    assert found.io("read_stall_ms") == [None, None]
