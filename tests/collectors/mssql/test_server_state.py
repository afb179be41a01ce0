"""How the server stood in the measured interval, 5 s to 35 s: pool, memory, log, tempdb, what was pending."""

from collections.abc import Iterable
from typing import Any

import pytest
from support import published_waits as published
from support.mssql_records import SECONDS, run, step, summary
from support.synthetic import Truth, make_run

from stallmark.analysis.read.server_state import WANTED
from stallmark.collectors.mssql.collector import statement
from stallmark.report.page import render
from stallmark.report.sections import server as server_tables

GAUGE, TOTAL = 65792, 272696576
COUNTERS: dict[tuple[str, str], Any] = {  # by what they are at a second
    ("Buffer Manager", "Page life expectancy"): lambda t: 1000 - t,
    ("Buffer Manager", "Page lookups/sec"): lambda t: 50_000 * t,
    ("Buffer Manager", "Page reads/sec"): lambda t: 10**9 + 800 * t,
    ("Buffer Manager", "Readahead pages/sec"): lambda t: 200 * t,
    ("Buffer Manager", "Lazy writes/sec"): lambda t: 30 * t,
    ("Buffer Manager", "Checkpoint pages/sec"): lambda t: 90 * t,
    ("Buffer Manager", "Free list stalls/sec"): lambda t: 7,
    ("Databases", "Log Flushes/sec"): lambda t: 400 * t,
    ("Databases", "Log Bytes Flushed/sec"): lambda t: 400 * 6144 * t,
    ("Memory Manager", "Total Server Memory (KB)"): lambda t: 2 << 20,
    ("Memory Manager", "Target Server Memory (KB)"): lambda t: 3 << 20,
}


def looks(every: int = 5) -> Iterable[tuple[float, dict[str, Any]]]:
    for t in range(0, SECONDS + 1, every):
        yield float(t), {"t": float(t), "server_time": float(t)}


def performance(change: Any = lambda t, name, value: value) -> list[dict[str, Any]]:
    rows = []
    for t, common in looks():
        for (thing, name), value in COUNTERS.items():
            kinds = {"": value(t), "tempdb": 10**12 + t} if thing == "Databases" else {"": value(t)}
            for instance, one in kinds.items():
                rows.append(
                    common | {"epoch": "start 1", "object": thing, "counter": name, "instance": instance,
                              "type": TOTAL, "value": int(change(t, name, one))}
                )  # fmt: skip
    return rows


def everything() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("log_space", "tempdb", "pending_io", "schedulers")}
    for t, common in looks():
        why = "ACTIVE_TRANSACTION" if t < 10 else "LOG_BACKUP"
        tables["log_space"].append(
            common | {"size_bytes": 1000, "used_bytes": int(10 * t), "since_backup_bytes": 0, "reuse_wait": why}
        )
        for file in (1, 2):
            tables["tempdb"].append(common | {"file": file, "size_bytes": 8 << 20, "free_bytes": int(8 - t / 10) << 20})
        for handle, requests in (("0x01", 3), ("0x02", int(t) % 2)):
            tables["pending_io"].append(common | {"handle": handle, "requests": requests})
        tables["schedulers"].append(common | {"schedulers": 8, "runnable": 4})
    return tables


def pool(t: float, database: str, page_type: str, pages: int, read: int = 0) -> dict[str, Any]:
    return {"t": t, "server_time": t, "database": database, "file": 1, "page_type": page_type, "pages": pages,
            "dirty": pages // 4, "in_extension": 0, "read": read, "read_us": read * 5000}  # fmt: skip


def test_rates_and_values_of_the_measured_interval(tmp_path):
    found = step(tmp_path / "run", performance=performance(), **everything()).server_state
    assert (found.page_lookups_per_s, found.page_reads_per_s) == (pytest.approx(50_000), pytest.approx(800))
    assert found.read_ahead_share == pytest.approx(0.25)
    assert (found.lazy_writes_per_s, found.checkpoint_pages_per_s) == (pytest.approx(30), pytest.approx(90))
    assert found.free_list_stalls_per_s == 0
    assert found.page_life_s == 1000 - 35
    assert (found.memory_bytes, found.memory_target_bytes) == (2 << 30, 3 << 30)
    assert (found.log_flushes_per_s, found.log_bytes_per_flush) == (pytest.approx(400), pytest.approx(6144))
    assert (found.log_used_share, found.log_kept_by) == (pytest.approx(0.35), "LOG_BACKUP")
    assert found.tempdb_used_bytes == 2 * 4 << 20  # of 2 × 8 MiB, 2 × 4 are free at 35 s
    assert (found.pending_ios, found.runnable_tasks) == (pytest.approx(3 + 4 / 7), 4)


def test_a_counter_that_fell_has_no_rate(tmp_path):
    def restarted(t: float, name: str, value: float) -> float:
        return value - 10**6 * (t >= 20) * (name == "Page lookups/sec")

    found = step(tmp_path / "run", performance=performance(restarted)).server_state
    assert found.page_lookups_per_s is None and found.page_reads_per_s == pytest.approx(800)


def test_the_pool_is_shown_as_last_seen_in_the_interval(tmp_path):
    rows = [
        *(pool(3, "bank", "DATA_PAGE", 9000), pool(20, "bank", "DATA_PAGE", 100), pool(30, "bank", "INDEX_PAGE", 50)),
        *(pool(30, "bank", "DATA_PAGE", 400, read=100), pool(30, "bank", "DATA_PAGE", 400, read=300)),
        pool(36, "crm", "DATA_PAGE", 9999),
    ]
    first, second = step(tmp_path / "run", buffer_pool=rows).server_state.contents
    assert (first.database, first.page_type, first.size_bytes) == ("bank", "DATA_PAGE", 800 * 8192)
    assert (first.dirty_bytes, first.read_ms) == (200 * 8192, pytest.approx(5))
    assert (second.page_type, second.read_ms) == ("INDEX_PAGE", None)


def test_hits_and_cpu_of_the_summary_come_from_here(tmp_path):
    """Notes of the minutes around −21, 9 and 39 s: the one in the middle of the interval counts."""
    notes = [
        {"t": t, "server_time": t, "record": n, "age_s": 1.0, "process_percent": 40, "idle_percent": idle,
         "memory_percent": 100}
        for n, (t, idle) in enumerate([(10.0, 99), (40.0, 30), (70.0, 99)])
    ]  # fmt: skip
    found = step(tmp_path / "run", performance=performance(), cpu=notes)
    assert found.cpu_busy_share == pytest.approx(0.7)
    assert found.hit_share == pytest.approx(1 - 800 / 50_000)


def test_where_idle_time_is_not_known_the_server_s_own_part_counts(tmp_path):
    note = {"t": 40.0, "record": 1, "age_s": 1.0, "process_percent": 40, "idle_percent": None}
    assert step(tmp_path / "run", cpu=[note]).cpu_busy_share == pytest.approx(0.4)


def test_a_server_that_tells_none_of_it(tmp_path):
    assert step(tmp_path / "run").server_state is None
    experiment = summary(make_run(tmp_path / "other", Truth(measured_s=10)))
    for table in (server_tables.memory, server_tables.log_and_tempdb, server_tables.pool_contents):
        assert table(experiment) is None


def test_what_is_wanted_is_asked_for():
    sql, names = statement("performance", 17), {(o.partition(":")[2], c) for o, c, *_ in published.COUNTERS}
    assert set(WANTED) == set(COUNTERS)
    for thing, counter in WANTED:
        assert f"'{thing}'" in sql and f"'{counter}'" in sql
        assert (thing, counter) in names or thing == "Memory Manager"


def test_the_report_shows_it(tmp_path):
    rows = [pool(30, "bank", "DATA_PAGE", 131072, read=10)]
    experiment = summary(run(tmp_path / "run", performance=performance(), buffer_pool=rows, **everything()))
    [memory] = server_tables.memory(experiment).rows
    assert [str(cell).replace("\u00a0", " ") for cell in memory[1:]] == [
        *("965", "50,000", "800", "25.0 %", "30.0", "90.0", "0", "2 GiB", "3 GiB")
    ]
    [log] = server_tables.log_and_tempdb(experiment).rows
    assert [str(cell).replace("\u00a0", " ") for cell in log[1:]] == [
        *("400", "6.00", "35.0 %", "log backup", "8 MiB", "3.57", "4.00")
    ]
    [held] = server_tables.pool_contents(experiment).rows
    assert [str(cell).replace("\u00a0", " ") for cell in held[1:4]] == ["bank", "data page", "1 GiB"]
    assert "What the buffer pool held" in render(experiment)
