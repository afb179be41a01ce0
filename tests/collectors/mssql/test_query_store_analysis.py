"""Query Store's totals over the measured interval."""

from collections.abc import Iterable
from typing import Any

import pytest
from support.findings import facts_of
from support.mssql_records import SECONDS, run, step, summary
from support.pages import render
from support.terminal import show

from stallmark.analysis.read.times import ReadKind
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections import server as server_tables

pytestmark = pytest.mark.thorough


def statements(
    plan: str, rate: float, reads: float, begin: int = 0, end: int = SECONDS + 1, procedure: str = "bank.transfer"
) -> Iterable[dict[str, Any]]:
    """A plan that Query Store shows from `begin` to before `end`, executed `rate` times a second from `begin` on."""
    for t in range(0, SECONDS + 1, 5):
        if begin <= t < end:
            n = int(rate * (t - begin))
            yield {
                "t": float(t), "server_time": float(t), "epoch": "query store", "procedure": procedure, "plan": plan,
                "executions": n, "worker_us": 100.0 * n, "elapsed_us": 2000.0 * n, "physical_reads": reads * n,
                "logical_reads": 20.0 * n, "logical_writes": 5.0 * n,
            }  # fmt: skip


def waits(wait: str, ms_per_s: int) -> Iterable[dict[str, Any]]:
    for t in range(0, SECONDS + 1, 5):
        common = {"t": float(t), "server_time": float(t), "epoch": "query store", "plan": "1 in 9 as 0"}
        yield common | {"wait": wait, "wait_ms": ms_per_s * t}


def test_statements_of_a_procedure_are_added_up(tmp_path):
    rows = [*statements("1 in 9 as 0", 400, 2.5), *statements("2 in 9 as 0", 100, 0)]
    [found] = step(tmp_path / "run", query_store=rows).server.query_store
    assert (found.name, found.executions) == ("bank.transfer", 500 * 30)
    assert found.physical_reads == pytest.approx(2) and found.logical_reads == pytest.approx(20)
    assert (found.worker_ms, found.elapsed_ms) == (pytest.approx(0.1), pytest.approx(2))


def test_an_interval_of_query_store_that_ends_is_followed_by_the_next(tmp_path):
    rows = [*statements("1 in 9 as 0", 400, 1, end=25), *statements("1 in 10 as 0", 400, 1, begin=20)]
    [found] = step(tmp_path / "run", query_store=rows).server.query_store
    assert found.executions == 400 * 30


def test_rounding_is_no_restart(tmp_path):
    """A total is a mean × a count: of a plan at rest its last digits change when Query Store merges its rows."""
    rows = [row | {"elapsed_us": row["elapsed_us"] * (1 - 1e-13 * row["t"])} for row in statements("1 in 9 as 0", 0, 1)]
    rows = [row | {"executions": 10**6, "elapsed_us": 1e9 * (1 - 1e-13 * row["t"])} for row in rows]
    busy = statements("2 in 9 as 0", 100, 1)
    [found] = step(tmp_path / "run", query_store=[*rows, *busy]).server.query_store
    assert found.executions == 3000


def test_a_store_that_was_cleared_says_nothing(tmp_path):
    rows = [row if row["t"] < 20 else row | {"executions": 1} for row in statements("1 in 9 as 0", 400, 1)]
    found = step(tmp_path / "run", query_store=rows)
    assert found.server.query_store == []
    assert facts_of(found.validity.gaps, ReadKind.COUNTERS_RESTARTED) == [{"sources": ["Query Store"]}]


@pytest.mark.parametrize(
    ("gone", "begun", "dropped"),
    [
        (25, 25, True),  # removed to make room, and captured anew
        (99, 99, False),
        (5, 5, False),  # before the step
    ],
)
def test_counts_that_it_dropped_while_they_rose_are_said(tmp_path, gone, begun, dropped):
    rows = [
        *statements("1 in 9 as 0", 400, 1, end=gone), *statements("7 in 9 as 0", 400, 1, begin=begun),
        *statements("2 in 9 as 0", 10, 1, procedure="bank.balance"),
    ]  # fmt: skip
    found = step(tmp_path / "run", query_store=rows)
    facts = facts_of(found.validity.gaps, ReadKind.QUERY_STORE_DROPPED)
    assert facts == ([{"procedures": ["bank.transfer"]}] if dropped else [])
    assert {one.name: one.whole for one in found.server.query_store} == {
        "bank.transfer": not dropped,
        "bank.balance": True,
    }


def test_an_interval_that_ended_long_ago_is_no_longer_shown_and_nothing_is_dropped(tmp_path):
    ended = [row | {"executions": min(row["executions"], 4000)} for row in statements("1 in 9 as 0", 400, 1, end=25)]
    found = step(tmp_path / "run", query_store=[*ended, *statements("1 in 10 as 0", 400, 1, begin=10)])
    assert not facts_of(found.validity.gaps, ReadKind.QUERY_STORE_DROPPED)


def test_the_longest_waits_stand_beside_their_procedure(tmp_path):
    rows = [
        *waits("bank.transfer: Buffer IO", 4000), *waits("bank.transfer: Tran Log IO", 300),
        *waits("bank.transfer: Idle", 0), *waits("bank.balance: Lock", 9000),
    ]  # fmt: skip
    [found] = step(
        tmp_path / "run", query_store=statements("1 in 9 as 0", 400, 1), query_store_waits=rows
    ).server.query_store
    assert found.waits == [("Buffer IO", pytest.approx(4000)), ("Tran Log IO", pytest.approx(300))]


def states(
    full_from: float | None, reason: int = 65536, until: float = SECONDS + 1, **more: Any
) -> Iterable[dict[str, Any]]:
    """The state, sampled every 5 s, of a store that is full for a while."""
    for t in range(0, SECONDS + 1, 5):
        stopped = full_from is not None and full_from <= t < until
        yield {
            "t": float(t), "server_time": float(t), "epoch": "query store",
            "state": "READ_ONLY" if stopped else "READ_WRITE", "readonly_reason": 65536 if stopped else 0,
            "stored_bytes": 1000 << 20, "most_bytes": 1000 << 20,
        } | more  # fmt: skip


def still(rows: Iterable[dict[str, Any]], since: float) -> list[dict[str, Any]]:
    """Counts that stand still, as those of a store that is full."""
    rows = list(rows)
    last = max((row for row in rows if row["t"] <= since), key=lambda row: row["t"])
    return [row if row["t"] <= since else last | {"t": row["t"], "server_time": row["server_time"]} for row in rows]


def test_a_store_that_is_full_in_mid_run_has_a_part_of_the_counts_and_says_so(tmp_path):
    folder = run(
        tmp_path / "run", query_store=still(statements("1 in 9 as 0", 400, 1), 20), query_store_state=states(20)
    )
    experiment = summary(folder)
    [only] = experiment.steps
    [found] = only.server.query_store
    assert found.executions == 400 * 15 and not found.whole  # of 12,000
    [facts] = facts_of(only.validity.gaps, ReadKind.QUERY_STORE_STOPPED)
    assert facts == {"database": None, "state": "READ_ONLY", "reason": 65536, "after_s": 15, "measured_s": 30}
    [row] = server_tables.query_store(experiment).rows
    assert str(row[2]) == "≥ 6,000"
    page = render(experiment)
    assert "(it is full) after 15.0 of the 30.0 s measured" in page and "MAX_STORAGE_SIZE_MB" in page
    told = experiment_in_json(experiment)["runs"][0]["steps"][0]
    assert told["query_store"][0]["whole"] is False
    assert "query_store_stopped" in str(told)
    screen = show(experiment, 200)
    assert "Query Store was READ_ONLY (it is full)" in screen


@pytest.mark.parametrize(
    ("full_from", "until", "after_s"),
    [
        (None, 99, None),  # never
        (0, 5, None),  # before the step alone
        (0, 99, 0), (30, 99, 25), (10, 15, 5),
        (35, 99, 30),  # seen at the end: since when is not known
    ],
)  # fmt: skip
def test_only_what_touches_the_measured_interval_counts(tmp_path, full_from, until, after_s):
    rows = {"query_store": statements("1 in 9 as 0", 400, 1), "query_store_state": states(full_from, until=until)}
    found = step(tmp_path / "run", **rows)
    facts = facts_of(found.validity.gaps, ReadKind.QUERY_STORE_STOPPED)
    assert [one["after_s"] for one in facts] == ([] if after_s is None else [after_s])
    assert found.server.query_store[0].whole is (after_s is None)


def test_of_several_databases_only_the_one_that_stopped_is_marked(tmp_path):
    rows = [
        *statements("1 in 9 as 0", 400, 1, procedure="bank.bank.transfer"),
        *statements("1 in 9 as 0", 400, 1, procedure="mail.mail.send"),
    ]
    told = [*states(20, database="mail"), *states(None, database="bank")]
    found = step(tmp_path / "run", query_store=rows, query_store_state=told)
    assert {one.name: one.whole for one in found.server.query_store} == {
        "bank.bank.transfer": True,
        "mail.mail.send": False,
    }
    [facts] = facts_of(found.validity.gaps, ReadKind.QUERY_STORE_STOPPED)
    assert facts["database"] == "mail"


@pytest.mark.parametrize(
    ("column", "option", "before", "now", "whole"),
    [
        ("capture", "QUERY_CAPTURE_MODE", "ALL", "NONE", False),
        ("wait_capture", "WAIT_STATS_CAPTURE_MODE", "ON", "OFF", False),
        ("capture", "QUERY_CAPTURE_MODE", "AUTO", "AUTO", True),  # which was said before the run
        ("capture", "QUERY_CAPTURE_MODE", None, "NONE", True),  # not known what it was
    ],
)
@pytest.mark.parametrize(("changed_at", "after_s"), [(2, 0), (20, 15), (99, None)])
def test_a_mode_that_is_changed_in_mid_run_makes_counts_a_part(
    tmp_path, column, option, before, now, whole, changed_at, after_s
):
    told = [row | {column: before if row["t"] < changed_at else now} for row in states(None)]
    found = step(tmp_path / "run", query_store=statements("1 in 9 as 0", 400, 1), query_store_state=told)
    facts = facts_of(found.validity.gaps, ReadKind.QUERY_STORE_CHANGED)
    if whole or after_s is None:
        assert not facts and found.server.query_store[0].whole
        return
    changed = {"option": option, "before": before, "now": now, "after_s": after_s, "measured_s": 30}
    assert facts == [{"database": None} | changed] and not found.server.query_store[0].whole


def test_an_older_record_has_no_states_and_nothing_is_said(tmp_path):
    found = step(tmp_path / "run", query_store=statements("1 in 9 as 0", 400, 1))
    assert found.server.query_store[0].whole
    kinds = (ReadKind.QUERY_STORE_STOPPED, ReadKind.QUERY_STORE_CHANGED)
    assert not any(facts_of(found.validity.gaps, kind) for kind in kinds)
