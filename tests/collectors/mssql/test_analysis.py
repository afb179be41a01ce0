"""SQL Server's tables in analysis and report."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.findings import facts_of
from support.html_page import Page
from support.manifests import changed
from support.mssql_records import DATA, LOG, OTHER, SECONDS, TEMP, File, run, step, summary
from support.pages import render
from support.synthetic import Truth, make_run
from support.tables import get, put

from stallmark.analysis.finding import invalid
from stallmark.analysis.read.server_views import transaction_of
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.validity import CounterSource, ValidityKind
from stallmark.collectors.mssql.statements import Statements
from stallmark.collectors.mssql.waits import class_of, is_benign
from stallmark.lab.selftest_checks import deadlocks as selftest_deadlocks
from stallmark.record.manifest import read_manifest
from stallmark.record.reader import Record
from stallmark.report.sections import server as tables
from stallmark.report.sections import transactions
from stallmark.report.sections.cause import wait_figure
from stallmark.report.sections.transactions import statements as statements_table

pytestmark = pytest.mark.thorough

# Files


def test_io_is_that_of_our_files(tmp_path):
    found = step(tmp_path / "run")
    assert found.validity.invalid == []
    assert (found.storage.data.reads, found.storage.data.seconds) == (800 * 30, 30)  # immediate: nothing is dated back
    assert found.storage.data.read_ms == pytest.approx(6.25) and found.storage.data.write_ms == pytest.approx(2.5)
    assert (found.storage.wal.writes, found.storage.wal.write_ms) == (400 * 30, pytest.approx(0.75))
    assert found.storage.data.syncs is None
    assert found.storage.reads_per_transaction == pytest.approx(2)
    assert found.storage.read_stall_ms_per_s == pytest.approx(800 * 6.25)


def test_every_file_is_shown_even_if_it_never_stalled(tmp_path):
    quiet = File("bank/bank2", "data")
    fast = File("bank/bank3", "data", reads=50, read_ms=0.001)
    nobody = File("hr/hr", "foreign")
    found = {file.name: file for file in step(tmp_path / "run", (DATA, fast, quiet, LOG, OTHER, nobody)).server.files}
    assert list(found) == ["bank/bank", "bank/bank2", "bank/bank3", "bank/bank_log", "crm/crm"]
    assert (found["bank/bank3"].io.reads, found["bank/bank3"].io.read_ms) == (1500, pytest.approx(0.001, abs=1e-3))
    assert (found["bank/bank2"].io.reads, found["bank/bank2"].io.read_ms) == (0, None)
    assert found["crm/crm"].kind == "foreign"


def test_growth_is_counted_by_file(tmp_path):
    sizes = {0: 1 << 20, 2: 2 << 20, 10: 3 << 20, 20: 4 << 20, 25: 3 << 20}  # one in the warm-up, at last a shrink
    data = File("bank/bank", "data", reads=800, sizes=sizes)
    assert {file.name: file.growths for file in step(tmp_path / "run", (data, LOG)).server.files} == {
        "bank/bank": 2,
        "bank/bank_log": 0,
    }


def test_a_new_handle_begins_a_new_epoch(tmp_path):
    restored = File("bank/bank", "data", reads=800, handles={0: "0x01", 20: "0x02"})
    found = step(tmp_path / "run", (restored, LOG))
    assert invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=CounterSource.DATA_FILES) in found.validity.invalid
    assert found.storage.data is None
    assert {file.name: file.io for file in found.server.files}["bank/bank"] is None


def test_a_new_handle_before_the_interval_is_nothing(tmp_path):
    restored = File("bank/bank", "data", reads=800, handles={0: "0x01", 3: "0x02"})
    found = step(tmp_path / "run", (restored, LOG))
    assert found.validity.invalid == [] and found.storage.data.reads == 800 * 30


# Foreign I/O


def test_foreign_io_makes_a_step_invalid_when_it_matters(tmp_path):
    ours = 880 * 8192 + 400 * 4096 + 2 * 8192
    much = File("crm/crm", "foreign", reads=50, writes=50)
    found = step(tmp_path / "much", (DATA, LOG, TEMP, much))
    assert found.storage.foreign_io_share == pytest.approx(100 * 8192 / (ours + 100 * 8192))
    assert found.validity.invalid == [
        invalid(ValidityKind.FOREIGN_IO, share=found.storage.foreign_io_share, with_writes=True)
    ]
    little = step(tmp_path / "little", (DATA, LOG, TEMP, File("crm/crm", "foreign", writes=40)))
    assert (
        little.storage.foreign_io_share == pytest.approx(40 * 8192 / (ours + 40 * 8192))
        and little.validity.invalid == []
    )


def test_few_foreign_ios_delay_nobody(tmp_path):
    idle = File("bank/bank", "data", reads=1)
    found = step(tmp_path / "run", (idle, File("msdb/MSDBData", "foreign", writes=4)))
    assert found.storage.foreign_io_share is None and found.validity.invalid == []


def test_foreign_io_that_began_again_is_not_known(tmp_path):
    reopened = File("crm/crm", "foreign", reads=500, handles={0: "0x01", 20: "0x02"})
    found = step(tmp_path / "run", (DATA, LOG, reopened))
    assert found.storage.foreign_io_share is None and found.validity.invalid == []


@settings(max_examples=10)
@given(rates=st.lists(st.tuples(st.sampled_from(["data", "wal", "temp", "foreign"]), st.integers(0, 400),
                                st.integers(0, 400)), min_size=1, max_size=6))  # fmt: skip
def test_files_add_up(tmp_path_factory, rates):
    files = [File(f"f{n}", kind, reads=reads, writes=writes) for n, (kind, reads, writes) in enumerate(rates)]
    files.append(File("bank/bank", "data", reads=1))
    found = step(tmp_path_factory.mktemp("runs") / "run", files)
    of = {
        kind: [file for file in found.server.files if file.kind == kind] for kind in ("data", "wal", "temp", "foreign")
    }
    assert sum(file.io.reads for file in of["data"]) == found.storage.data.reads
    if of["wal"]:
        assert sum(file.io.writes for file in of["wal"]) == found.storage.wal.writes
    bytes_of = {kind: sum(file.io.read_bytes + file.io.write_bytes for file in some) for kind, some in of.items()}
    if found.storage.foreign_io_share is not None:
        assert found.storage.foreign_io_share == pytest.approx(
            bytes_of["foreign"] / max(sum(bytes_of.values()), 1), abs=1e-6
        )
    held_against = any(one.kind == ValidityKind.FOREIGN_IO for one in found.validity.invalid)
    assert held_against == ((found.storage.foreign_io_share or 0) > 0.05)


# Waits


def wait_rows(
    wait_type: str, waits: float, wait_ms: float, signal_ms: float, cleared: int | None = None
) -> Iterable[dict]:
    for t in range(0, SECONDS + 1, 5):
        since = t - cleared if cleared is not None and t >= cleared else t
        yield {
            "t": float(t), "server_time": float(t), "epoch": "start 1", "wait_type": wait_type,
            "wait_class": class_of(wait_type), "benign": is_benign(wait_type), "waits": int(waits * since),
            "wait_ms": wait_ms * since, "signal_ms": signal_ms * since, "max_ms": 9.0,
        }  # fmt: skip


def test_the_longest_waits_by_resource(tmp_path):
    rows = [
        *wait_rows("PAGEIOLATCH_SH", 800, 5000, 200),
        *wait_rows("SOS_SCHEDULER_YIELD", 900, 9000, 8990),
        *wait_rows("WRITELOG", 400, 300, 10),
        *wait_rows("LAZYWRITER_SLEEP", 1, 1000, 0),
        *wait_rows("LATCH_EX", 0, 0, 0),
    ]
    found = step(tmp_path / "run", server_waits=rows).waits.server_waits
    assert [wait.wait_type for wait in found] == ["PAGEIOLATCH_SH", "WRITELOG", "SOS_SCHEDULER_YIELD"]
    assert found[0].wait_class == "io" and found[0].waits == 800 * 30
    assert found[0].resource_ms == pytest.approx(4800 * 30) and found[0].signal_ms == pytest.approx(200 * 30)


def test_the_device_is_judged_by_the_users_waits(tmp_path):
    seen = {("io", "PAGEIOLATCH_SH"): 220, ("wal", "WRITELOG"): 30, ("cpu", "CPU"): 40, ("client", "idle"): 10}
    rows = [
        {"t": s + 1.0, "second": s, "wait_class": kind, "event": event, "samples": n, "polls": 10}
        for s in range(SECONDS)
        for (kind, event), n in seen.items()
    ]
    found = step(tmp_path / "run", waits=rows)
    assert found.waits.share["io"] == pytest.approx(220 / 300) and found.waits.top[0] == (
        "PAGEIOLATCH_SH",
        pytest.approx(220 / 300),
    )
    assert found.bottleneck.is_device is True
    assert found.bottleneck.device_verdict.facts["io_share"] == pytest.approx(220 / 300)


@pytest.mark.parametrize("waits", [{}, {("replica", "HADR_SYNC_COMMIT"): 60, ("latch", "PAGELATCH_EX"): 30}])
def test_classes_that_only_some_servers_have_are_shown_where_anybody_waited_so(tmp_path, waits):
    seen = {("io", "PAGEIOLATCH_SH"): 100, ("wal", "WRITELOG"): 30, ("cpu", "CPU"): 80} | waits
    rows = [
        {"t": s + 1.0, "second": s, "wait_class": kind, "event": event, "samples": n, "polls": 10}
        for s in range(SECONDS)
        for (kind, event), n in seen.items()
    ]
    experiment = summary(run(tmp_path / "run", waits=rows))
    figure = wait_figure(experiment)
    shown = {"replica", "latch"} & set(figure.header)
    assert shown == ({"replica", "latch"} if waits else set()) and "memory" not in figure.header
    assert ("Replica: a commit waited" in figure.method) is bool(waits)
    budget = experiment.steps[0].cause.budget
    log, other = budget.parts_ms["log"], budget.parts_ms["rest"]
    assert log / budget.parts_ms["read"] == pytest.approx((30 + 60 * bool(waits)) / 100, rel=0.01)
    assert bool(other) is bool(waits)


# Procedures


def plan_rows(
    plan: str, begin: int, end: int, rate: float, reads: float, procedure: str = "bank.transfer"
) -> Iterable[dict]:
    """A plan in the cache from `begin` to `end`, executed `rate` times a second."""
    for t in range(0, SECONDS + 1, 5):
        if begin <= t < end:
            n = int(rate * (t - begin))
            yield {
                "t": float(t), "server_time": float(t), "epoch": "plan cache", "procedure": procedure, "plan": plan,
                "executions": n, "worker_us": 100 * n, "elapsed_us": 2000 * n, "physical_reads": int(reads * n),
                "logical_reads": 20 * n, "logical_writes": 5 * n, "spills": 0,
            }  # fmt: skip


def test_physical_reads_per_execution(tmp_path):
    [found] = step(tmp_path / "run", procedures=plan_rows("A", 0, 99, 400, 2.5)).server.procedures
    assert (found.name, found.executions, found.physical_reads) == ("bank.transfer", 12_000, pytest.approx(2.5))
    assert (found.logical_reads, found.logical_writes, found.elapsed_ms) == (20, 5, pytest.approx(2))


def named(folder: Path, transaction: str) -> Path:
    """The record's transactions under another name."""
    table = get(folder, "transactions")
    at = table.column_names.index("transaction")
    return put(folder, "transactions", table.set_column(at, "transaction", pa.array([transaction] * table.num_rows)))


def coverage(folder: Path, rows: Iterable[dict], transaction: str = "transfer") -> float | None:
    [only] = summary(named(run(folder, procedures=rows), transaction)).steps
    [found] = only.server.procedures
    return found.coverage


def test_coverage_tells_what_left_the_cache(tmp_path):
    assert coverage(tmp_path / "all", plan_rows("A", 0, 99, 400, 1)) == pytest.approx(1)
    # A was seen last at 15 s and left the cache; B came at 20 s: what happened between is lost.
    gone = [*plan_rows("A", 0, 20, 400, 1), *plan_rows("B", 20, 99, 400, 1)]
    assert coverage(tmp_path / "gone", gone) == pytest.approx((10 + 15) / 30)
    # Two plans at once (other SET options) are added up.
    two = [*plan_rows("A", 0, 99, 300, 1), *plan_rows("B", 0, 99, 100, 1)]
    assert coverage(tmp_path / "two", two) == pytest.approx(1)
    assert coverage(tmp_path / "other", plan_rows("A", 0, 99, 400, 1), "balance") is None


@pytest.mark.parametrize(
    ("procedure", "transaction"),
    [
        ("bank.transfer", "transfer"),
        ("brokerage.trade_order_frame1", "trade_order"),
        ("brokerage.trade", "trade"),
        ("transfer", "transfer"),
        ("bank.transferred", None),
        ("sys.sp_who", None),
    ],
)
def test_which_transaction_calls_a_procedure(procedure, transaction):
    assert transaction_of(procedure, ["trade", "trade_order", "transfer"]) == transaction


# Statements


def statement_rows(plan: str, begin: int, end: int, rate: float, reads: float, **more: Any) -> Iterable[dict]:
    """A statement executed `rate` times a second by `plan` while it was in the cache, 0.1 of its 2 ms on a CPU."""
    about = {"procedure": "bank.transfer", "position": 120, "text": "UPDATE bank.accounts", **more}
    name = f"{about['procedure']}-{about['position']}"
    for row in plan_rows(plan, begin, end, rate, reads):
        kept = {key: row[key] for key in row.keys() & set(Statements.columns.names)} | {"t": row["t"]}
        yield kept | about | {"statement": name, "planned": f"{name}-{plan}", "plan_hash": f"0x{plan}"}


def test_a_statements_counts_are_those_of_all_its_plans(tmp_path):
    rows = [*statement_rows("A", 0, 20, 400, 2.5), *statement_rows("B", 20, 99, 100, 10)]
    [found] = step(tmp_path / "run", statements=rows).server.statements
    assert (found.procedure, found.position, found.plans) == ("bank.transfer", 120, ("0xA", "0xB"))
    per_execution = (found.physical_reads, found.cpu_ms, found.waited_ms)
    assert found.executions > 4000 and all(per_execution)
    assert found.waited_ms / found.executions == pytest.approx(1.9)


@pytest.mark.parametrize(
    ("rows", "plans"),
    [
        ([("A", 0, 99)], 0),
        ([("A", 0, 20), ("B", 20, 99)], 1),
        ([("A", 0, 20), ("B", 20, 30), ("C", 30, 99)], 2),
        ([("A", 0, 5), ("B", 5, 99)], 0),  # gone before the step
        ([("A", 0, 36), ("B", 20, 99)], 0),  # both there to the end
    ],
)
def test_plans_that_left_the_cache_leave_a_part_of_the_counts(tmp_path, rows, plans):
    statement = [row for plan, begin, end in rows for row in statement_rows(plan, begin, end, 400, 2.5)]
    other = list(statement_rows("X", 0, 99, 10, 1, procedure="bank.other"))
    experiment = summary(run(tmp_path / "run", statements=[*statement, *other]))
    [only] = experiment.steps
    facts = facts_of(only.validity.gaps, ReadKind.PLANS_LEFT)
    assert facts == ([{"plans": plans, "procedures": ["bank.transfer"]}] if plans else [])
    assert {one.procedure: one.whole for one in only.server.statements} == {
        "bank.transfer": not plans,
        "bank.other": True,
    }
    shown = {str(row[1]): str(row[3]) for row in statements_table(experiment).rows}
    assert shown["bank.transfer"].startswith("≥ ") == bool(plans) and "≥" not in shown["bank.other"]


def test_a_plan_at_rest_that_leaves_the_cache_loses_no_counts(tmp_path):
    rest = [row | {"executions": 900} for row in statement_rows("A", 0, 20, 1, 1)]
    found = step(tmp_path / "run", statements=[*rest, *statement_rows("B", 0, 99, 10, 1, procedure="bank.other")])
    assert not facts_of(found.validity.gaps, ReadKind.PLANS_LEFT)


WAITED = ["LATCH_EX", "PAGEIOLATCH_SH"]


@pytest.mark.parametrize(("cleared", "names"), [(None, WAITED), (20, []), (5, WAITED)])
def test_waits_that_somebody_cleared_are_left_out_and_it_is_said(tmp_path, cleared, names):
    """DBCC SQLPERF clears all types; one that has as many again at the next sample does not show it."""
    rows = [*wait_rows("PAGEIOLATCH_SH", 80, 500, 20), *wait_rows("LATCH_EX", 80, 500, 20, cleared)]
    found = step(tmp_path / "run", server_waits=rows)
    assert sorted(wait.wait_type for wait in found.waits.server_waits) == names
    facts = facts_of(found.validity.gaps, ReadKind.COUNTERS_RESTARTED)
    assert facts == ([] if names else [{"sources": ["Waits of the server"]}])


def test_the_report_names_who_reads_who_computes_and_who_waits(tmp_path):
    rows = [
        *statement_rows("A", 0, 99, 400, 2.5),
        *(one for n in range(5) for one in statement_rows("B", 0, 99, 10 - n, 0.5, procedure=f"bank.p{n}")),
    ]
    table = statements_table(summary(run(tmp_path / "run", statements=rows)))
    assert [str(row[1]) for row in table.rows] == ["bank.transfer", "bank.p0", "bank.p1"]
    [first, *_] = ([str(cell).replace("\u00a0", " ") for cell in row[3:]] for row in table.rows)
    assert first == ["400", "98.0 %", "90.9 %", "90.9 %", "2.50", "0.100", "1.90", "a"]


# Blocking


def test_the_report_shows_who_blocked_whom_and_deadlocks_by_their_shape(tmp_path):
    pair = {"blocked": "a.b", "blocker": "c.d", "wait_type": "LCK_M_S", "polls": 1}
    lock = {"victim": "a.b", "others": "c.d", "isolation": "read committed", "resources": "a.t (pk): X held, S wanted"}
    folder = run(
        tmp_path / "run",
        blocking=[{"t": s + 0.5, "second": s, "samples": 3} | pair for s in range(10, 20)],
        deadlocks=[{"t": 60.0, "happened": "…", "graph": name} | lock for name in ("deadlocks/01.xdl", None)],
    )
    manifest = read_manifest(folder)
    every = {"title": "Who blocks whom", "interval_s": 2.0}
    changed(folder, collectors={**manifest.model_dump()["collectors"], "blocking": every})
    experiment = summary(folder)
    [row] = transactions.blocked(experiment).rows
    assert [str(cell) for cell in row[1:]] == ["a.b", "c.d", "LCK_M_S", "2.00"]  # 3 in 10 of 15 moments of 30 s
    [row] = transactions.deadlocks(experiment).rows
    assert [str(cell) for cell in row[1:]] == ["2", *lock.values(), "deadlocks/01.xdl"]
    assert (
        "Blocked sessions and their blockers" in (page := Page(render(experiment)).text)
        and "a.t (pk): X held, S wanted" in page
    )
    assert [check.subject for check in selftest_deadlocks(Record(folder))] == ["deadlocks (2)"]


# The error log


def test_trouble_with_the_storage_leaves_no_figure_standing(tmp_path):
    line = {"t": 12.0, "log_time": "2026-03-02 09:00", "number": 825, "text": "A read succeeded after failing."}
    found = step(tmp_path / "run", error_log=[line])
    assert found.validity.invalid == [invalid(ValidityKind.STORAGE_ERROR, text=line["text"], error=825)]


# The report


def test_the_report_of_another_server_has_its_processes_alone(tmp_path):
    experiment = summary(make_run(tmp_path / "run", Truth(measured_s=10)))
    assert tables.files(experiment) is tables.server_waits(experiment) is tables.procedures(experiment) is None
    section = render(experiment).split('id="server"')[1].split("</details>")[0]
    assert re.findall(r"<h3>(.*?)</h3>", section) == ["Processes"]
    for one in experiment.steps:
        one.server.processes.clear()
    assert "server" not in Page(render(experiment)).ids
