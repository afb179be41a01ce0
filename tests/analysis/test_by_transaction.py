"""Reads by transaction and waits by table, from either engine's view of them."""

from dataclasses import replace

import pytest
from support.synthetic import Brokerage, Truth, make_run
from support.tables import With

from stallmark.analysis.experiment import summarise
from stallmark.record.reader import Record
from stallmark.report.sections import transactions

TRUTH = Truth(tps=250, noise=0.0, warm_up_s=12, measured_s=40, brokerage=Brokerage())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run", TRUTH)


def looks(read_us=600):
    """One Trade-Lookup in each second, and a Trade-Order in every second one."""

    def row(second, transaction, reads, hits):
        io = {"reads": reads, "read_bytes": reads * 16384, "hits": hits, "read_us": read_us, "writes": 0}
        return {"second": second, "transaction": transaction, "sampled": 2} | io

    return [row(s, "trade_lookup", 12, 200) for s in range(52)] + [
        row(s, "trade_order", 2, 60) for s in range(0, 52, 2)
    ]


def test_reads_are_those_of_the_sessions_that_were_looked_at(folder):
    summary = summarise([With(folder, transaction_io=looks())])
    order, lookup = summary.steps[0].reads
    assert (order.transaction, lookup.transaction) == ("trade_order", "trade_lookup")
    assert (lookup.counted, lookup.reads, lookup.read_bytes, lookup.hits, lookup.read_ms) == (80, 6, 98304, 100, 0.3)
    assert (order.counted, order.reads) == (40, 1) and order.sampled
    assert order.share + lookup.share == pytest.approx(1)
    done = {one.name: one.done_count for one in summary.steps[0].transactions}
    assert lookup.share / order.share == pytest.approx(6 * done["trade_lookup"] / done["trade_order"])
    table = transactions.reads(summary)
    assert [list(row) for row in table.rows] == [["Trade-Order", "1.00"], ["Trade-Lookup", "6.00"]]
    ((_, by_step),) = transactions.reads_by_step(summary)
    assert list(by_step.rows[1])[:6] == ["Trade-Lookup", "80", "6.00", "96.0", "0.300", "100"]


@pytest.mark.parametrize("seconds", [1, 14])
def test_a_mean_and_a_share_of_too_few_are_not_shown(folder, seconds):
    few = [row for row in looks() if row["transaction"] == "trade_order" or 30 <= row["second"] < 30 + seconds]
    summary = summarise([With(folder, transaction_io=few)])
    table = transactions.reads(summary)
    assert [str(row[1]) for row in table.rows] == ["1.00", "–*"] and "fewer than 30" in table.notes[-1]
    order, lookup = summary.steps[0].reads
    assert lookup.counted == 2 * seconds and lookup.share is None and order.share is not None
    ((_, by_step),) = transactions.reads_by_step(summary)
    assert [str(row[-1]) for row in by_step.rows][1] == "–*"


def test_a_server_that_takes_no_times_leaves_them_unknown(folder):
    reads = summarise([With(folder, transaction_io=looks(read_us=None))]).steps[0].reads
    assert [one.read_ms for one in reads] == [None, None] and reads[1].reads == 6


def procedures():
    """Cumulative, every ten seconds: two procedures of Trade-Lookup, one of nobody's."""
    each = {"brokerage.trade_lookup_trades": (70, 90), "brokerage.trade_lookup_history": (14, 30), "dbo.backup": (9, 9)}
    return [
        {
            "t": float(t), "server_time": float(t), "epoch": "one", "procedure": name, "plan": f"{name} plan",
            "executions": t * 20, "elapsed_us": t * 1000, "physical_reads": t * physical,
            "logical_reads": t * logical, "logical_writes": 0,
        }
        for t in range(0, 61, 10)
        for name, (physical, logical) in each.items()
    ]  # fmt: skip


def test_reads_are_those_of_a_transactions_procedures_together(folder):
    (step,) = summarise([With(folder, procedures=procedures())]).steps
    (lookup,) = step.reads
    per_second = next(one.tps for one in step.transactions if one.name == "trade_lookup")
    assert lookup.transaction == "trade_lookup" and not lookup.sampled
    assert lookup.reads == pytest.approx(84 / per_second, rel=0.01)
    assert lookup.read_bytes == lookup.reads * 8192
    assert lookup.hits == pytest.approx(36 / per_second, rel=0.01)
    assert lookup.share == 1


def test_nobody_tells_nothing_is_shown(folder):
    summary = summarise([Record(folder)])
    assert summary.steps[0].reads == [] and summary.steps[0].waits.row_waits is None
    assert transactions.reads(summary) is None and transactions.reads_by_step(summary) == []
    assert transactions.row_waits(summary) is None


def seen(second, relation, samples):
    return {"t": second + 1.0, "second": second, "relation": relation, "samples": samples, "polls": 10}


def test_sessions_seen_waiting_are_averaged_over_all_looks(folder):
    rows = [seen(second, None, 0) for second in range(52)]
    rows += [seen(second, "brokerage.broker", 15) for second in range(0, 52, 2)]
    rows += [seen(20, "brokerage.last_trade", 4), seen(5, "brokerage.trade", 100)]
    summary = summarise([With(folder, row_locks=rows)])
    broker, last_trade = summary.steps[0].waits.row_waits
    assert (broker.table, broker.waiting) == ("brokerage.broker", pytest.approx(0.75))
    assert last_trade.waiting == pytest.approx(0.4 / 40)
    table = transactions.row_waits(summary)
    assert list(table.rows[0])[1:] == ["brokerage.broker", "0.750", "2.5\N{NO-BREAK SPACE}%"]


def test_nobody_waited_is_not_nobody_looked(folder):
    summary = summarise([With(folder, row_locks=[seen(second, None, 0) for second in range(52)])])
    assert summary.steps[0].waits.row_waits == []
    assert transactions.row_waits(summary).rows == []


def test_summed_waits_are_sessions_too(folder):
    """SQL Server: 700 ms of waiting for rows and 50 ms for pages in a second are 0.75 sessions; by index, summed."""

    def row(t, index, factor):
        waits = {"row_lock_waits": 5, "row_lock_wait_ms": 700, "page_lock_waits": 0, "page_lock_wait_ms": 50}
        waits |= {
            "page_latch_waits": 3,
            "page_latch_wait_ms": 20,
            "page_io_latch_waits": 9,
            "page_io_latch_wait_ms": 900,
        }
        clock = {"t": float(t), "server_time": float(t), "epoch": "one"}
        entity = {"entity": f"brokerage.broker/{index}", "relation": "brokerage.broker"}
        return clock | entity | {name: int(value * t * factor) for name, value in waits.items()}

    rows = [row(t, index, factor) for t in range(0, 61, 15) for index, factor in (("pk_broker", 1), ("idle", 0))]
    summary = summarise([With(folder, row_locks=rows)])
    (broker,) = summary.steps[0].waits.row_waits
    assert broker.table == "brokerage.broker" and broker.waiting == pytest.approx(0.75)
    assert (broker.waits_per_s, broker.wait_ms) == (pytest.approx(5), pytest.approx(150))
    assert (broker.latched, broker.reading) == (pytest.approx(0.02), pytest.approx(0.9))
    assert len(transactions.row_waits(summary).rows[0]) == 8


def test_a_table_whose_counters_began_again_is_left_out(folder):
    rows = [
        {
            "t": float(t), "epoch": "one", "entity": "brokerage.broker/pk", "relation": "brokerage.broker",
            "row_lock_waits": t if t < 30 else 1, "row_lock_wait_ms": t * 100 if t < 30 else 1,
        }
        for t in range(0, 61, 15)
    ]  # fmt: skip
    assert summarise([With(folder, row_locks=rows)]).steps[0].waits.row_waits == []


def test_old_records_without_either_still_read(tmp_path):
    (step,) = summarise([Record(make_run(tmp_path / "run", replace(TRUTH, brokerage=None)))]).steps
    assert step.reads == [] and step.waits.row_waits is None
