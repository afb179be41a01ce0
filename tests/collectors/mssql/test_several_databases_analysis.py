"""The analysis of a record of two databases that are ours: sums where sums are right, and each by itself."""

from dataclasses import replace
from typing import Any

import pytest
from support.manifests import changed
from support.mssql_records import DATA, LOG, OTHER, SECONDS, TEMP, File, put, run, step, summary

from stallmark.analysis.read.load_io import OTHER_SESSIONS, LoadSessions
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.times import Interval
from stallmark.analysis.service_level import ReadSource
from stallmark.analysis.validity import ValidityKind
from stallmark.collectors.mssql.counters import LoadIO
from stallmark.record.reader import Record
from stallmark.report.sections import server as tables

pytestmark = pytest.mark.thorough

MAIL = File("mail/mail", "data", reads=200, read_ms=20, writes=20, write_ms=2.5)
MAIL_LOG = File("mail/mail_log", "wal", writes=100, write_ms=8, io_bytes=4096)
FILES = (DATA, LOG, MAIL, MAIL_LOG, TEMP, OTHER)
FLUSHES = {"bank": 400, "mail": 100}


def common(t: int) -> dict[str, Any]:
    return {"t": float(t), "server_time": float(t)}


def performance(databases: tuple[str, ...] = ("bank", "mail"), every: int = 5) -> list[dict[str, Any]]:
    """Flushes of each as often as its log is written, of 4 KiB and 8 KiB, and of others."""
    rows = []
    for t in range(0, SECONDS + 1, every):
        for database in databases:
            rate = FLUSHES[database]
            size, write_ms = {"bank": (4096, 0.75), "mail": (8192, 8)}[database]
            counters = {
                "Log Flushes/sec": rate * t, "Log Bytes Flushed/sec": rate * size * t,
                "Log Flush Write Time (ms)": int(rate * write_ms), "Log Growths": 3 + (database == "mail" and t > 10),
            }  # fmt: skip
            rows += [
                common(t) | {"epoch": "start 1", "object": "Databases", "counter": name, "instance": database,
                             "type": 272696576, "value": value}
                for name, value in counters.items()
            ]  # fmt: skip
        rows.append(rows[-1] | {"counter": "Log Flushes/sec", "instance": "tempdb", "value": 10**9 * t})
    return rows


def log_space(used: dict[str | None, int]) -> list[dict[str, Any]]:
    return [
        common(t) | {"size_bytes": 1000, "used_bytes": share, "since_backup_bytes": 0, "database": name,
                     "reuse_wait": "LOG_BACKUP" if name == "mail" else "NOTHING"}
        for t in range(0, SECONDS + 1, 5) for name, share in used.items()
    ]  # fmt: skip


# Files


def test_io_is_that_of_the_files_of_both(tmp_path):
    found = step(tmp_path / "run", FILES).storage
    assert (found.data.reads, found.wal.writes) == (30 * 1000, 30 * 500)
    assert found.data.read_ms == pytest.approx((800 * 6.25 + 200 * 20) / 1000)
    assert found.wal.write_ms == pytest.approx((400 * 0.75 + 100 * 8) / 500)


def test_each_log_has_its_own_time(tmp_path):
    files = {file.name: file for file in step(tmp_path / "run", FILES).server.files}
    assert files["bank/bank_log"].io.write_ms == pytest.approx(0.75)
    assert files["mail/mail_log"].io.write_ms == pytest.approx(8)
    assert [files[name].kind for name in ("mail/mail", "mail/mail_log", "crm/crm")] == ["data", "wal", "foreign"]


@pytest.mark.parametrize(("kind", "doubtful"), [("data", False), ("foreign", True)])
def test_a_second_database_is_foreign_only_where_it_is_not_ours(tmp_path, kind, doubtful):
    found = step(tmp_path / "run", (DATA, LOG, replace(MAIL, kind=kind)))
    assert (ValidityKind.FOREIGN_IO in {one.kind for one in found.validity.invalid}) == doubtful


def test_the_reads_of_the_loads_add_up_to_those_of_the_server(tmp_path):
    folder = run(tmp_path / "run", (DATA, LOG, MAIL, MAIL_LOG))
    changed(folder, loads=[{"name": name, "kind": "users", "counts": [2]} for name in ("bank", "mail")])
    rows = [
        {"t": float(t), "epoch": "start", "application": f"stallmark-user-{name}", "sessions": 2, "reads": t * rate,
         "writes": 0}
        for t in range(SECONDS + 1) for name, rate in (("bank", 800), ("mail", 190))
    ]  # fmt: skip
    put(folder, LoadIO, rows)
    interval = Interval(index=0, begin=5, end=35, planned_s=30, cut=False)
    record = Record(folder)
    sessions = LoadSessions(record, [interval])
    [found] = sessions.io_by_load(read_server_io(record, sessions.stretches)).values()
    assert found is not None and found.server.reads == 30 * 1000
    assert found.loads_share == pytest.approx(0.99) and found.others == {OTHER_SESSIONS: pytest.approx(300)}


# Logs


def test_the_flushes_of_all_logs_are_added_up_and_each_is_told(tmp_path):
    found = step(tmp_path / "run", FILES, performance=performance()).server.state
    assert found.log.flushes_per_s == pytest.approx(500)
    assert found.log.bytes_per_flush == pytest.approx((400 * 4096 + 100 * 8192) / 500)
    assert found.log.write_ms == pytest.approx((400 * 0.75 + 100 * 8) / 500) and found.log.growths == 1
    each = {
        name: (log.flushes_per_s, log.bytes_per_flush, log.write_ms, log.growths) for name, log in found.logs.items()
    }
    assert each == {
        "bank": (pytest.approx(400), pytest.approx(4096), pytest.approx(0.75), 0),
        "mail": (pytest.approx(100), pytest.approx(8192), pytest.approx(8), 1),
    }


def test_one_log_is_not_told_twice(tmp_path):
    found = step(tmp_path / "run", performance=performance(("bank",)), log_space=log_space({None: 300})).server.state
    assert found.log.flushes_per_s == pytest.approx(400) and found.log.used_share == 0.3
    assert found.logs == {}


def test_a_database_that_was_away_at_a_sample_takes_nothing_from_the_others(tmp_path):
    rows = [row for row in performance() if not (row["instance"] == "mail" and row["t"] == 20)]
    found = step(tmp_path / "run", FILES, performance=rows).server.state
    assert found.log.flushes_per_s == pytest.approx(500) and found.logs["mail"].flushes_per_s == pytest.approx(100)


def test_how_full_each_log_is(tmp_path):
    found = step(tmp_path / "run", FILES, log_space=log_space({"bank": 200, "mail": 900})).server.state
    assert found.log.used_share == 0.9 and found.log.kept_by == "LOG_BACKUP"
    assert {name: (log.used_share, log.kept_by) for name, log in found.logs.items()} == {
        "bank": (0.2, None),
        "mail": (0.9, "LOG_BACKUP"),
    }


def test_the_report_shows_each_log(tmp_path):
    record = run(tmp_path / "run", FILES, performance=performance(), log_space=log_space({"bank": 200, "mail": 900}))
    shown = tables.logs(summary(record))
    assert shown is not None and [row[1] for row in shown.rows] == ["bank", "mail"]
    assert tables.logs(summary(run(tmp_path / "one", performance=performance(("bank",))))) is None


# How long single I/Os took


def durations(database: str | None, operation: str, per_second: dict[int, int]) -> list[dict[str, Any]]:
    return [
        common(t) | {"epoch": f"session {database}", "operation": operation, "duration": duration, "ios": rate * t,
                     "slots": 4096, "dropped": 0, "database": database}
        for t in range(0, SECONDS + 1, 5) for duration, rate in per_second.items()
    ]  # fmt: skip


BOTH = [
    *durations("bank", "read", {2: 480, 6: 240, 20: 80}),  # as often as its files are read, mean 6 ms
    *durations("mail", "read", {10: 140, 43: 60}),  # mean 20 ms
    *durations("bank", "log write", {0: 200, 1: 200}),
    *durations("mail", "log write", {8: 100}),
]


def test_the_times_of_each_log_and_of_all_together(tmp_path):
    found = step(tmp_path / "run", FILES, io_latency=BOTH).server.io_latency
    shown = {(one.operation, one.database): (one.ios, one.latency_ms["p50"], one.latency_ms["max"]) for one in found}
    assert shown == {
        ("read", None): (30_000, 6, 43),
        ("read", "bank"): (24_000, 2, 20),
        ("read", "mail"): (6_000, 10, 43),
        ("log write", None): (15_000, 1, 8),
        ("log write", "bank"): (12_000, 0, 1),
        ("log write", "mail"): (3_000, 8, 8),
    }
    assert [one.coverage for one in found] == [pytest.approx(1)] * 6  # each against its own files


def test_microseconds_of_one_are_told_by_its_own_files(tmp_path):
    """Together with the log of the other its unit would be another one's."""
    slow = [*durations("bank", "log write", {750: 400}), *durations("mail", "log write", {8000: 100})]
    found = step(tmp_path / "run", FILES, io_latency=slow).server.io_latency
    assert {one.database: one.resolution_ms for one in found} == {None: 0.001, "bank": 0.001, "mail": 0.001}


def test_a_session_that_began_again_leaves_the_other_and_no_sum(tmp_path):
    rows = [row | {"epoch": "again"} if row["database"] == "mail" and row["t"] > 15 else row for row in BOTH]
    found = step(tmp_path / "run", FILES, io_latency=rows).server.io_latency
    assert {(one.operation, one.database) for one in found} == {("read", "bank"), ("log write", "bank")}


def test_a_service_level_is_of_the_reads_of_both(tmp_path):
    folder = run(tmp_path / "run", FILES, io_latency=BOTH)
    changed(folder, service_level={"name": "read", "read_ms": 20, "percentile": "p95"})
    [only] = summary(folder).steps
    level = only.validity.slo
    assert (level.source, level.reads, level.figure_ms) == (ReadSource.HISTOGRAM, 30_000, 43)


# Checkpoints


def bursts(every_s: int = 8) -> list[dict[str, Any]]:
    """Pages that checkpoints wrote, 1000 in a second of every cycle."""
    return [
        common(t) | {"epoch": "start 1", "object": "Buffer Manager", "counter": "Checkpoint pages/sec",
                     "instance": "", "type": 272696576, "value": 1000 * (t // every_s)}
        for t in range(SECONDS + 1)
    ]  # fmt: skip


@pytest.mark.parametrize(("files", "known"), [((DATA, LOG), True), (FILES, False)])
def test_bursts_of_two_databases_are_no_cycles_of_either(tmp_path, files, known):
    found = step(tmp_path / "run", files, performance=bursts())
    assert (found.interval.cycles is not None) == known
