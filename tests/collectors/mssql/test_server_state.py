"""How the server stood in the measured interval, 5 s to 35 s: pool, memory, log, tempdb, what was pending."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support import published_waits as published
from support.manifests import changed
from support.mssql_records import DATA, LOG, SECONDS, File, run, step, summary
from support.pages import render
from support.synthetic import Truth, make_run

from stallmark.analysis.environment_cautions import KEPT, ServerKind
from stallmark.analysis.read.server_state import WANTED
from stallmark.collectors.mssql import statement
from stallmark.record.manifest import read_manifest
from stallmark.report.sections import server as server_tables

pytestmark = pytest.mark.thorough


def counted_anew(t: float, age_s: float | None, statistic: str = "accounts_pkey") -> dict[str, Any]:
    return {"t": t, "server_time": t, "table": "bank.accounts", "statistic": statistic, "age_s": age_s}


GAUGE, TOTAL = 65792, 272696576
COUNTERS: dict[tuple[str, str], Any] = {  # by what they are at a second
    ("Buffer Manager", "Page life expectancy"): lambda t: 1000 - t,
    ("Buffer Manager", "Page lookups/sec"): lambda t: 50_000 * t,
    ("Buffer Manager", "Page reads/sec"): lambda t: 10**9 + 800 * t,
    ("Buffer Manager", "Readahead pages/sec"): lambda t: 200 * t,
    ("Buffer Manager", "Lazy writes/sec"): lambda t: 30 * t,
    ("Buffer Manager", "Checkpoint pages/sec"): lambda t: 90 * t,
    ("Buffer Manager", "Background writer pages/sec"): lambda t: 60 * t,
    ("Buffer Manager", "Database pages"): lambda t: 200_000 + 1000 * t,
    ("Buffer Manager", "Free list stalls/sec"): lambda t: 7,
    ("Databases", "Log Flushes/sec"): lambda t: 400 * t,
    ("Databases", "Log Bytes Flushed/sec"): lambda t: 400 * 6144 * t,
    ("Databases", "Log Flush Waits/sec"): lambda t: 390 * t,
    ("Databases", "Log Flush Write Time (ms)"): lambda t: 500,
    ("Databases", "Log Flush Wait Time"): lambda t: 780 * t,
    ("Databases", "Log Growths"): lambda t: 4 + (t > 10),
    ("Locks", "Number of Deadlocks/sec"): lambda t: 0.2 * t,
    ("Database Replica", "Transaction Delay"): lambda t: 900 * t,
    ("Database Replica", "Mirrored Write Transactions/sec"): lambda t: 300 * t,
    ("General Statistics", "Processes blocked"): lambda t: 2 + t % 2,
    ("Memory Manager", "Memory Grants Pending"): lambda t: 3 * (t == 20),
    ("Memory Manager", "Stolen Server Memory (KB)"): lambda t: 300 << 10,
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


def nodes(lives: Sequence[float]) -> list[dict[str, Any]]:
    return [
        common | {"epoch": "start 1", "object": "Buffer Node", "counter": "Page life expectancy",
                  "instance": f"{node:03}", "type": GAUGE, "value": int(life + t)}
        for t, common in looks() for node, life in enumerate(lives)
    ]  # fmt: skip


def replica(name: str, mode: str, state: Callable[[float], str], queue: int) -> list[dict[str, Any]]:
    return [
        common | {"replica": name, "commit_mode": mode, "state": state(t), "send_queue_bytes": queue * int(t),
                  "redo_queue_bytes": None if t > 30 else 2 * queue}
        for t, common in looks()
    ]  # fmt: skip


SOUND = replica("replica 1", "SYNCHRONOUS_COMMIT", lambda t: "SYNCHRONIZED" if t else "SYNCHRONIZING", 1 << 20)
BEHIND = replica("replica 1", "SYNCHRONOUS_COMMIT", lambda t: "SYNCHRONIZED" if t < 30 else "NOT SYNCHRONIZING", 1)
FAR = replica("replica 2", "ASYNCHRONOUS_COMMIT", lambda t: "SYNCHRONIZING", 4 << 20)


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
    found = step(tmp_path / "run", performance=performance(), **everything()).server.state
    assert (found.page_lookups_per_s, found.page_reads_per_s) == (pytest.approx(50_000), pytest.approx(800))
    assert found.read_ahead_share == pytest.approx(0.25)
    assert (found.lazy_writes_per_s, found.checkpoint_pages_per_s) == (pytest.approx(30), pytest.approx(90))
    assert found.free_list_stalls_per_s == 0
    assert found.page_life_s == 1000 - 35
    assert (found.memory_bytes, found.memory_target_bytes) == (2 << 30, 3 << 30)
    assert (found.log.flushes_per_s, found.log.bytes_per_flush) == (pytest.approx(400), pytest.approx(6144))
    assert (found.log.used_share, found.log.kept_by) == (pytest.approx(0.35), "LOG_BACKUP")
    assert found.tempdb_used_bytes == 2 * 4 << 20  # of 2 × 8 MiB, 2 × 4 are free at 35 s
    assert found.background_pages_per_s == pytest.approx(60)
    assert found.pool_bytes == pytest.approx(220_000 * 8192) and found.stolen_bytes == 300 << 20
    assert (found.log.write_ms, found.log.waits_per_s, found.log.growths) == (
        pytest.approx(1.25),
        pytest.approx(390),
        1,
    )
    assert (found.deadlocks, found.grants_pending) == (6, 3) and found.blocked == pytest.approx(2.5, abs=0.1)
    assert (found.pending_ios, found.runnable_tasks) == (pytest.approx(3 + 4 / 7), 4)


def test_queues_of_replicas_and_how_long_commits_waited_for_them(tmp_path):
    experiment = summary(run(tmp_path / "run", performance=performance(), replicas=[*SOUND, *FAR]))
    state = experiment.steps[0].server.state
    assert (state.delayed_per_s, state.commit_delay_ms) == (pytest.approx(300), pytest.approx(3))
    near, far = state.replicas
    assert (near.synchronous, near.synchronized_share, far.synchronous) == (True, 1.0, False)
    assert (near.send_queue_bytes, near.most_send_queue_bytes) == (pytest.approx(20 << 20), 35 << 20)
    assert (far.redo_queue_bytes, far.most_redo_queue_bytes) == (8 << 20, 8 << 20)  # one look has none
    table = server_tables.replicas(experiment)
    assert len(table.rows) == 2 and "Other replicas of the database" in render(experiment)
    assert server_tables.replicas(summary(run(tmp_path / "alone", performance=performance()))) is None


@pytest.mark.parametrize(("counter", "each_ms"), [(lambda t: 780 * t, 2), (lambda t: 700 + 160 * (t % 2), 2)])
def test_waits_for_the_log_are_a_total_or_of_the_last_second(tmp_path, counter, each_ms):
    def told(t: float, name: str, value: float) -> float:
        return counter(t) if name == "Log Flush Wait Time" else value

    found = step(tmp_path / "run", performance=performance(told)).server.state
    assert found.log.wait_ms == pytest.approx(each_ms, rel=0.05)


def test_page_life_is_told_by_node_where_there_are_several(tmp_path):
    two = step(tmp_path / "two", performance=[*performance(), *nodes([4000, 900])]).server.state
    assert two.node_life_s == {"000": 4005, "001": 905} and two.page_life_s == 1000 - 35
    assert step(tmp_path / "one", performance=[*performance(), *nodes([4000])]).server.state.node_life_s == {}


def test_what_the_pool_held_is_the_axis(tmp_path):
    found = step(tmp_path / "run", performance=performance())
    assert found.pool_held_bytes == pytest.approx(220_000 * 8192) and found.buffer_pool_bytes == 64 << 20
    assert found.pool_held_share == pytest.approx(found.pool_held_bytes / (320 << 20))
    without = step(tmp_path / "without")
    assert (without.pool_held_bytes, without.pool_held_share) == (64 << 20, pytest.approx(0.2))


def test_null_is_no_value(tmp_path):
    """A counter that the server does not tell at times, and another that it never does."""

    def hidden(row: dict[str, Any]) -> dict[str, Any]:
        null = row["counter"] == "Database pages" or (row["counter"] == "Page reads/sec" and row["t"] % 2)
        return row | {"value": None} if null else row

    found = step(tmp_path / "run", performance=[hidden(row) for row in performance()]).server.state
    assert found.pool_bytes is None and found.page_reads_per_s == pytest.approx(800)


GREW = {0: 1 << 20, 2: 2 << 20, 10: 3 << 20}
GRANTS, LOCKED = "Memory Grants Pending", "Number of Deadlocks/sec"
CLOSES = "database auto close"
FULL = {"database recovery model": "FULL"}
SECOND_FULL = {"database recovery model": "SIMPLE", "mail: database recovery model": "FULL"}


@pytest.mark.parametrize(
    ("kinds", "case"),
    [
        (set(), {}),
        ({ServerKind.FILES_GREW}, {"files": (replace(DATA, sizes=GREW), LOG)}),
        ({ServerKind.FILES_GREW}, {"files": (DATA, replace(LOG, sizes=GREW))}),
        (set(), {"files": (DATA, LOG, File("crm/crm", "foreign", sizes=GREW))}),
        (set(), {"files": (replace(DATA, sizes={0: 1 << 20, 2: 2 << 20}), LOG)}),  # in the warm-up
        ({ServerKind.GRANTS_PENDING}, {"change": {GRANTS: lambda t: 2}}),
        (set(), {"change": {GRANTS: lambda t: 2 * (t == 0)}}),
        ({ServerKind.DEADLOCKS}, {"change": {LOCKED: lambda t: t}}),
        (set(), {"change": {LOCKED: lambda t: 900}}),  # all before
        ({ServerKind.NODES_UNEVEN}, {"more": nodes([4000, 900])}),
        (set(), {"more": nodes([4000, 3000])}),
        ({ServerKind.LOG_KEPT}, {"settings": FULL}),
        ({ServerKind.LOG_KEPT}, {"settings": FULL, "momentary": {KEPT: "1"}}),
        (set(), {"settings": FULL, "momentary": {KEPT: "0"}}),  # there was no full backup yet
        ({ServerKind.LOG_KEPT}, {"settings": SECOND_FULL, "momentary": {KEPT: "0", f"mail: {KEPT}": "1"}}),
        (set(), {"settings": SECOND_FULL, "momentary": {KEPT: "0"}}),
        (set(), {"settings": SECOND_FULL, "momentary": {KEPT: "1", f"mail: {KEPT}": "0"}}),
        ({ServerKind.AUTO_CLOSE}, {"settings": {CLOSES: "True"}}),
        ({ServerKind.AUTO_CLOSE}, {"settings": {CLOSES: "False", f"mail: {CLOSES}": "True"}}),
        (set(), {"settings": {CLOSES: "False"}}),
        ({ServerKind.STATISTICS_UPDATED}, {"statistics_updates": [counted_anew(12, 6.5), counted_anew(22, 16.5)]}),
        (set(), {"statistics_updates": [counted_anew(8, 7.5), counted_anew(40, 2.0), counted_anew(12, None)]}),
        (set(), {"replicas": [*SOUND, *FAR]}),
        ({ServerKind.REPLICA_BEHIND}, {"replicas": [*BEHIND, *FAR]}),
        (set(), {"settings": {"database recovery model": "SIMPLE"}}),
        (set(), {"settings": FULL, "version": "12.0.2000.8 RTM SQL Azure"}),
    ],
)
def test_what_is_sampled_is_judged(tmp_path, kinds, case):
    quiet = {GRANTS: lambda t: 0, LOCKED: lambda t: 0} | case.get("change", {})

    def changed_value(t: float, name: str, value: float) -> float:
        return quiet[name](t) if name in quiet else value

    rows = [*performance(changed_value), *case.get("more", ())]
    more = {name: case[name] for name in ("replicas", "statistics_updates") if name in case}
    folder = run(tmp_path / "run", case.get("files", (DATA, LOG)), performance=rows, **more)
    told = {name: case.get(name, {}) for name in ("settings", "momentary")}
    told |= {"version": case.get("version", "16.0.4105.2 RTM Developer Edition")}
    found = summary(changed(folder, server=read_manifest(folder).server.changed(**told))).cautions
    assert {one.kind for one in found if isinstance(one.kind, ServerKind)} == kinds


def test_a_counter_that_fell_has_no_rate(tmp_path):
    def restarted(t: float, name: str, value: float) -> float:
        return value - 10**6 * (t >= 20) * (name == "Page lookups/sec")

    found = step(tmp_path / "run", performance=performance(restarted)).server.state
    assert found.page_lookups_per_s is None and found.page_reads_per_s == pytest.approx(800)


def test_the_pool_is_shown_as_last_seen_in_the_interval(tmp_path):
    rows = [
        *(pool(3, "bank", "DATA_PAGE", 9000), pool(20, "bank", "DATA_PAGE", 100), pool(30, "bank", "INDEX_PAGE", 50)),
        *(pool(30, "bank", "DATA_PAGE", 400, read=100), pool(30, "bank", "DATA_PAGE", 400, read=300)),
        pool(36, "crm", "DATA_PAGE", 9999),
    ]
    first, second = step(tmp_path / "run", buffer_pool=rows).server.state.contents
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
    assert found.server.cpu_busy_share == pytest.approx(0.7)
    assert found.server.state.cpu_process_share == pytest.approx(0.4)
    assert found.server.hit_share == pytest.approx(1 - 800 / 50_000)


def test_where_idle_time_is_not_known_the_server_s_own_part_counts(tmp_path):
    note = {"t": 40.0, "record": 1, "age_s": 1.0, "process_percent": 40, "idle_percent": None}
    assert step(tmp_path / "run", cpu=[note]).server.cpu_busy_share == pytest.approx(0.4)


def test_a_server_that_tells_none_of_it(tmp_path):
    assert step(tmp_path / "run").server.state is None
    experiment = summary(make_run(tmp_path / "other", Truth(measured_s=10)))
    for table in (server_tables.memory, server_tables.log_and_tempdb, server_tables.pool_contents):
        assert table(experiment) is None


NOT_PUBLISHED = ("Memory Manager", "Locks", "General Statistics", "Database Replica")


def test_what_is_wanted_is_asked_for():
    sql, names = statement("performance", 17), {(o.partition(":")[2], c) for o, c, *_ in published.COUNTERS}
    assert set(WANTED) == set(COUNTERS)
    for thing, counter in WANTED:
        assert f"'{thing}'" in sql and f"'{counter}'" in sql
        assert (thing, counter) in names or thing in NOT_PUBLISHED
