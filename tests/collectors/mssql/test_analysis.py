"""What the analysis and the report make of SQL Server's tables."""

from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.mssql_records import DATA, LOG, OTHER, SECONDS, TEMP, File, run, step, summary
from support.synthetic import Truth, make_run

from stallmark.analysis.finding import invalid
from stallmark.analysis.read.server_views import transaction_of
from stallmark.analysis.validity.kinds import Counted, ValidityKind
from stallmark.collectors.mssql.waits import class_of, is_benign
from stallmark.report.in_json import experiment_in_json
from stallmark.report.page import render
from stallmark.report.sections import server as tables

# Files


def test_io_is_that_of_our_files(tmp_path):
    found = step(tmp_path / "run")
    assert found.invalid == []
    assert (found.data_io.reads, found.data_io.seconds) == (800 * 30, 30)  # immediate: nothing is dated back
    assert found.data_io.read_ms == pytest.approx(6.25) and found.data_io.write_ms == pytest.approx(2.5)
    assert (found.wal_io.writes, found.wal_io.write_ms) == (400 * 30, pytest.approx(0.75))
    assert found.data_io.syncs is None
    assert found.reads_per_transaction == pytest.approx(2)
    assert found.read_stall_ms_per_s == pytest.approx(800 * 6.25)


def test_every_file_is_shown_even_if_it_never_stalled(tmp_path):
    quiet = File("bank/bank2", "data")
    fast = File("bank/bank3", "data", reads=50, read_ms=0.001)
    nobody = File("hr/hr", "foreign")
    found = {file.name: file for file in step(tmp_path / "run", (DATA, fast, quiet, LOG, OTHER, nobody)).files}
    assert list(found) == ["bank/bank", "bank/bank2", "bank/bank3", "bank/bank_log", "crm/crm"]
    assert (found["bank/bank3"].io.reads, found["bank/bank3"].io.read_ms) == (1500, pytest.approx(0.001, abs=1e-3))
    assert (found["bank/bank2"].io.reads, found["bank/bank2"].io.read_ms) == (0, None)
    assert found["crm/crm"].kind == "foreign"


def test_growth_is_counted_by_file(tmp_path):
    sizes = {0: 1 << 20, 2: 2 << 20, 10: 3 << 20, 20: 4 << 20, 25: 3 << 20}  # one in the warm-up, at last a shrink
    data = File("bank/bank", "data", reads=800, sizes=sizes)
    assert {file.name: file.growths for file in step(tmp_path / "run", (data, LOG)).files} == {
        "bank/bank": 2,
        "bank/bank_log": 0,
    }


def test_a_new_handle_begins_a_new_epoch(tmp_path):
    restored = File("bank/bank", "data", reads=800, handles={0: "0x01", 20: "0x02"})
    found = step(tmp_path / "run", (restored, LOG))
    assert invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=Counted.DATA_FILES) in found.invalid
    assert found.data_io is None
    assert {file.name: file.io for file in found.files}["bank/bank"] is None


def test_a_new_handle_before_the_interval_is_nothing(tmp_path):
    restored = File("bank/bank", "data", reads=800, handles={0: "0x01", 3: "0x02"})
    found = step(tmp_path / "run", (restored, LOG))
    assert found.invalid == [] and found.data_io.reads == 800 * 30


# Foreign I/O


def test_foreign_io_makes_a_step_invalid_when_it_matters(tmp_path):
    ours = 880 * 8192 + 400 * 4096 + 2 * 8192
    much = File("crm/crm", "foreign", reads=50, writes=50)
    found = step(tmp_path / "much", (DATA, LOG, TEMP, much))
    assert found.foreign_io_share == pytest.approx(100 * 8192 / (ours + 100 * 8192))
    assert found.invalid == [invalid(ValidityKind.FOREIGN_IO, share=found.foreign_io_share, with_writes=True)]
    little = step(tmp_path / "little", (DATA, LOG, TEMP, File("crm/crm", "foreign", writes=40)))
    assert little.foreign_io_share == pytest.approx(40 * 8192 / (ours + 40 * 8192)) and little.invalid == []


def test_few_foreign_ios_delay_nobody(tmp_path):
    idle = File("bank/bank", "data", reads=1)
    found = step(tmp_path / "run", (idle, File("msdb/MSDBData", "foreign", writes=4)))
    assert found.foreign_io_share is None and found.invalid == []


def test_foreign_io_that_began_again_is_not_known(tmp_path):
    reopened = File("crm/crm", "foreign", reads=500, handles={0: "0x01", 20: "0x02"})
    found = step(tmp_path / "run", (DATA, LOG, reopened))
    assert found.foreign_io_share is None and found.invalid == []


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rates=st.lists(st.tuples(st.sampled_from(["data", "wal", "temp", "foreign"]), st.integers(0, 400),
                                st.integers(0, 400)), min_size=1, max_size=6))  # fmt: skip
def test_files_add_up(tmp_path_factory, rates):
    files = [File(f"f{n}", kind, reads=reads, writes=writes) for n, (kind, reads, writes) in enumerate(rates)]
    files.append(File("bank/bank", "data", reads=1))
    found = step(tmp_path_factory.mktemp("runs") / "run", files)
    of = {kind: [file for file in found.files if file.kind == kind] for kind in ("data", "wal", "temp", "foreign")}
    assert sum(file.io.reads for file in of["data"]) == found.data_io.reads
    if of["wal"]:
        assert sum(file.io.writes for file in of["wal"]) == found.wal_io.writes
    bytes_of = {kind: sum(file.io.read_bytes + file.io.write_bytes for file in some) for kind, some in of.items()}
    if found.foreign_io_share is not None:
        assert found.foreign_io_share == pytest.approx(bytes_of["foreign"] / max(sum(bytes_of.values()), 1), abs=1e-6)
    held_against = any(one.kind == ValidityKind.FOREIGN_IO for one in found.invalid)
    assert held_against == ((found.foreign_io_share or 0) > 0.05)


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
        *wait_rows("LCK_M_X", 100, 800, 0, cleared=20),
        *wait_rows("LATCH_EX", 0, 0, 0),
    ]
    found = step(tmp_path / "run", server_waits=rows).server_waits
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
    assert found.wait_share["io"] == pytest.approx(220 / 300) and found.top_waits[0] == (
        "PAGEIOLATCH_SH",
        pytest.approx(220 / 300),
    )
    assert found.device_is_bottleneck is True
    assert found.device_verdict.facts["io_share"] == pytest.approx(220 / 300)


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
    [found] = step(tmp_path / "run", procedures=plan_rows("A", 0, 99, 400, 2.5)).procedures
    assert (found.name, found.executions, found.physical_reads) == ("bank.transfer", 12_000, pytest.approx(2.5))
    assert (found.logical_reads, found.logical_writes, found.elapsed_ms) == (20, 5, pytest.approx(2))


def named(folder: Path, transaction: str) -> Path:
    """The record's transactions under another name."""
    path = folder / "transactions.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("transaction")
    pq.write_table(table.set_column(at, "transaction", pa.array([transaction] * table.num_rows)), path)
    return folder


def coverage(folder: Path, rows: Iterable[dict], transaction: str = "transfer") -> float | None:
    [only] = summary(named(run(folder, procedures=rows), transaction)).steps
    [found] = only.procedures
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


# The error log


def test_trouble_with_the_storage_leaves_no_figure_standing(tmp_path):
    line = {"t": 12.0, "log_time": "2026-03-02 09:00", "number": 825, "text": "A read succeeded after failing."}
    found = step(tmp_path / "run", error_log=[line])
    assert found.invalid == [invalid(ValidityKind.STORAGE_ERROR, text=line["text"], error=825)]


# The report


class Words(HTMLParser):
    def __init__(self, html: str):
        super().__init__()
        self.ids: set[str | None] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.ids.add(dict(attrs).get("id"))

    def handle_data(self, data):
        self.text += data


def test_the_report_shows_files_waits_and_procedures(tmp_path):
    folder = run(
        tmp_path / "run",
        server_waits=wait_rows("PAGEIOLATCH_SH", 800, 5000, 200),
        procedures=plan_rows("A", 0, 99, 400, 2.5),
    )
    experiment = summary(named(folder, "transfer"))
    files = {str(row[1]): [str(cell) for cell in row[2:]] for row in tables.files(experiment).rows}
    assert files["bank/bank"] == ["data", "800", "6.55", "8.00", "6.25", "80.0", "0.655", "8.00", "2.50", "0"]
    assert files["crm/crm"][0] == "another database"
    [wait] = tables.server_waits(experiment).rows
    assert [str(cell) for cell in wait[1:]] == ["PAGEIOLATCH_SH", "I/O", "24,000", "4,800", "200", "6.00"]
    [procedure] = tables.procedures(experiment).rows
    assert [str(c).replace("\u00a0", " ") for c in procedure[1:]] == [
        "bank.transfer", "12,000", "100 %", "2.50", "20.0", "5.00", "2.00",
    ]  # fmt: skip
    page = Words(render(experiment))
    assert "server" in page.ids and "bank/bank_log" in page.text and "PAGEIOLATCH_SH" in page.text
    assert experiment_in_json(experiment)["runs"][0]["steps"][0]["files"][0]["name"] == "bank/bank"


def test_the_report_of_another_server_has_no_such_section(tmp_path):
    experiment = summary(make_run(tmp_path / "run", Truth(measured_s=10)))
    assert tables.files(experiment) is tables.server_waits(experiment) is tables.procedures(experiment) is None
    assert "server" not in Words(render(experiment)).ids
