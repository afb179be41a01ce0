"""Query Store's totals over the measured interval."""

from collections.abc import Iterable
from typing import Any

import pytest
from support.mssql_records import SECONDS, run, step, summary

from stallmark.report.in_json import experiment_in_json
from stallmark.report.page import render
from stallmark.report.sections import server as server_tables


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
    assert step(tmp_path / "run", query_store=rows).server.query_store == []


def test_the_longest_waits_stand_beside_their_procedure(tmp_path):
    rows = [
        *waits("bank.transfer: Buffer IO", 4000), *waits("bank.transfer: Tran Log IO", 300),
        *waits("bank.transfer: Idle", 0), *waits("bank.balance: Lock", 9000),
    ]  # fmt: skip
    [found] = step(
        tmp_path / "run", query_store=statements("1 in 9 as 0", 400, 1), query_store_waits=rows
    ).server.query_store
    assert found.waits == [("Buffer IO", pytest.approx(4000)), ("Tran Log IO", pytest.approx(300))]


def test_the_report_shows_it(tmp_path):
    folder = run(
        tmp_path / "run",
        query_store=[*statements("1 in 9 as 0", 400, 2.5), *statements("3 in 9 as 0", 1, 0, procedure="bank.balance")],
        query_store_waits=waits("bank.transfer: Buffer IO", 4000),
    )
    experiment = summary(folder)
    first, second = ([str(cell) for cell in row[1:]] for row in server_tables.query_store(experiment).rows)
    assert first == ["bank.transfer", "12,000", "2.50", "20.0", "5.00", "0.100", "2.00", "Buffer IO 4,000"]
    assert second[0] == "bank.balance" and second[-1] == "–"
    assert "Query Store" in render(experiment)
    assert experiment_in_json(experiment)["runs"][0]["steps"][0]["query_store"][0]["name"] == "bank.transfer"
