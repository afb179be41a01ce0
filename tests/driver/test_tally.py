"""Samples become rows: sums and histograms of parts are those of the whole, and nothing is lost."""

import math
from collections import Counter, defaultdict
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from stallmark.driver.client import COMMITTED, GIVEN_UP, ROLLED_BACK
from stallmark.driver.messages import Report, decode, encode
from stallmark.driver.retry import Failure
from stallmark.driver.rows import DeferredRow, RowMerger, Rows
from stallmark.driver.run_state import Merger
from stallmark.driver.tally import (
    SECOND_NS,
    as_table,
    deferred_rows,
    error_rows,
    parts_by_second,
    statement_rows,
    statement_table,
    transaction_rows,
    user_rows,
)
from stallmark.errors import CallFailed, ErrorClass
from stallmark.record import histogram as hdr
from stallmark.record.schema import OWN_STATEMENTS, TRANSACTIONS
from stallmark.transactions.workload import FAILED

START = 1_000 * SECOND_NS
LOAD, NAMES = "shop", ["transfer", "order"]
TRANSACTION, SCHEDULED, STARTED, ENDED, FREE, OUTCOME, RETRIES = range(7)


def size(histogram: hdr.Histogram) -> int:
    return int(hdr.used(histogram)[1].sum())


@st.composite
def samples(draw: st.DrawFn) -> tuple[int, ...]:
    """Times in order, in whole µs: free, then scheduled (or late for it), started, ended."""
    free = draw(st.integers(0, 3_000_000))
    scheduled = free + draw(st.integers(-1_000_000, 1_000_000))
    started = max(free, scheduled) + draw(st.integers(0, 100_000))
    ended = started + draw(st.integers(0, 1_000_000))
    times = (START + 1000 * us for us in (scheduled, started, ended, free))
    outcome = draw(st.sampled_from([COMMITTED, ROLLED_BACK, GIVEN_UP]))
    return (draw(st.integers(0, 1)), *times, outcome, draw(st.integers(0, 10)))


def second_of(sample: tuple[int, ...]) -> int:
    return (sample[ENDED] - START) // SECOND_NS


@given(given_samples=st.lists(samples(), max_size=30))
def test_every_sample_is_in_exactly_one_row(given_samples):
    rows = transaction_rows(as_table(given_samples), LOAD, NAMES, START)
    keys = [(row.second, row.transaction) for row in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        mine = [s for s in given_samples if NAMES[s[TRANSACTION]] == row.transaction and second_of(s) == row.second]
        done = [s for s in mine if s[OUTCOME] != GIVEN_UP]
        assert row.committed == sum(s[OUTCOME] == COMMITTED for s in mine)
        assert row.rolled_back == sum(s[OUTCOME] == ROLLED_BACK for s in mine)
        assert row.failed == len(mine) - len(done)
        assert row.retries == sum(s[RETRIES] for s in mine)
        # A transaction that was given up has no latency: it never was answered.
        assert row.latency_us == sum(s[ENDED] - s[SCHEDULED] for s in done) / 1000
        assert row.service_us == sum(s[ENDED] - s[STARTED] for s in done) / 1000
        assert size(row.latency) == size(row.service) == len(done)
    assert sum(row.committed + row.rolled_back + row.failed for row in rows) == len(given_samples)


class Tables:
    """Stands for a record: keeps what was appended."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict]] = defaultdict(list)

    def append(self, name: str, rows: list[dict]) -> None:
        self.rows[name] += rows


def report(part: list[tuple[int, ...]], executor: int) -> Report:
    table = as_table(part)
    users = list(user_rows(table, LOAD, START, executor=executor).values())
    for user in users:
        user.running, user.cpu_us = 0.5, 7
    deferred = deferred_rows(table, LOAD, {0: len(part)}, START, executor=executor)
    return Report.from_rows(Rows(transaction_rows(table, LOAD, NAMES, START), users, deferred_queue=deferred))


def comparable(row: dict) -> dict:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()}


@given(parts=st.lists(st.tuples(st.integers(0, 1), st.lists(samples(), max_size=8)), max_size=6))
def test_merging_the_reports_of_executors_gives_what_one_report_would_have(parts):
    tables = Tables()
    merger = Merger(tables)  # type: ignore[arg-type]
    for executor, part in parts:
        passed_on = decode(encode(report(part, executor)))
        merger.add(decode(encode(passed_on)).rows())
    merger.write_before(2)
    assert all(row["second"] < 2 for row in tables.rows["transactions"])
    merger.write_before(math.inf)

    whole = [sample for _, part in parts for sample in part]
    expected = {
        (r.second, r.transaction): comparable(r.columns())
        for r in transaction_rows(as_table(whole), LOAD, NAMES, START)
    }
    got = tables.rows["transactions"]
    assert len(got) == len(expected)
    assert {(r["second"], r["transaction"]): comparable(r) for r in got} == expected
    assert all(set(row) == set(TRANSACTIONS.names) for row in got)
    assert sum(merger.seen.committed.values()) == sum(s[OUTCOME] == COMMITTED for s in whole)

    for executor in (0, 1):
        mine = as_table([sample for number, part in parts if number == executor for sample in part])
        reports = Counter(
            second for number, part in parts if number == executor for second in set(map(second_of, part))
        )
        expected_users = user_rows(mine, LOAD, START, executor=executor)
        for second, row in expected_users.items():
            row.running, row.cpu_us = 0.5 * reports[second], 7 * reports[second]
        found = [row for row in tables.rows["users"] if row["executor"] == executor]
        assert found == [expected_users[second].columns() for second in sorted(expected_users)]
        waited = [len(part) for number, part in parts if number == executor]
        expected_deferred = deferred_rows(mine, LOAD, {0: max(waited)}, START, executor=executor) if waited else []
        found = [row for row in tables.rows["deferred_queue"] if row["executor"] == executor]
        assert found == [row.columns() for row in sorted(expected_deferred, key=attrgetter("second"))]


def at(scheduled: int, started: int, ended: int, free_since: int) -> tuple[int, ...]:
    """A sample whose times are µs after the start."""
    times = (START + 1000 * us for us in (scheduled, started, ended, free_since))
    return (0, *times, COMMITTED, 0)


@pytest.mark.parametrize(
    ("sample", "busy", "think", "lag"),
    [
        (at(scheduled=500, started=530, ended=900, free_since=100), 370, 400, 30),
        # It was busy at the scheduled time: the server's doing.
        (at(scheduled=100, started=620, ended=900, free_since=600), 280, 0, 20),
        (at(scheduled=600, started=600, ended=900, free_since=600), 300, 0, 0),
    ],
)
def test_only_what_a_free_user_was_late_is_the_drivers_lag(sample, busy, think, lag):
    row = user_rows(as_table([sample]), LOAD, START)[0]
    assert (row.busy_us, row.think_us, row.lag_us, row.lag_max_us) == (busy, think, lag, lag)


def test_the_largest_lag_is_kept():
    late = [at(scheduled=0, started=lag, ended=lag, free_since=0) for lag in (3, 9, 5)]
    row = user_rows(as_table(late), LOAD, START)[0]
    assert (row.lag_us, row.lag_max_us) == (17, 9)


def test_lateness_counts_from_when_it_was_due():
    """Also for a background session that was busy: that too few are there is the market's lag."""
    late = [
        at(scheduled=500, started=530, ended=900, free_since=100),
        at(scheduled=100, started=620, ended=900, free_since=600),
        at(scheduled=1_999_000, started=1_999_500, ended=2_000_100, free_since=900),
    ]
    assert deferred_rows(as_table(late), LOAD, {0: 4, 1: 7}, START) == [
        DeferredRow(0, LOAD, 0, 0, taken=2, late_us=550, late_max_us=520, waiting=4),
        DeferredRow(1, LOAD, 0, 0, waiting=7),
        DeferredRow(2, LOAD, 0, 0, taken=1, late_us=500, late_max_us=500),
    ]


def test_failures_are_counted_by_second_transaction_class_and_code():
    deadlock = CallFailed(ErrorClass.DEADLOCK, "40P01", "first")
    again = CallFailed(ErrorClass.DEADLOCK, "40P01", "second")
    other = CallFailed(ErrorClass.OTHER, "22003", "out of range")
    failures = [
        Failure("transfer", START + 1, deadlock, given_up=False),
        Failure("transfer", START + 2, again, given_up=True),
        Failure("transfer", START + SECOND_NS, again, given_up=True),
        Failure("order", START + 3, deadlock, given_up=False),
        Failure("transfer", START + 4, other, given_up=True),
    ]
    rows = error_rows(failures, LOAD, START)
    assert sum(row.attempts for row in rows) == len(failures)
    assert [astuple(row) for row in rows] == [
        (0, LOAD, "transfer", "deadlock", "40P01", 2, 1, "first"),
        (1, LOAD, "transfer", "deadlock", "40P01", 1, 1, "second"),
        (0, LOAD, "order", "deadlock", "40P01", 1, 0, "first"),
        (0, LOAD, "transfer", "other", "22003", 1, 1, "out of range"),
    ]


@given(begin=st.integers(0, 10**11), length=st.integers(0, 5 * SECOND_NS))
def test_a_stretch_is_cut_at_whole_seconds_and_nothing_of_it_is_lost(begin, length):
    parts = list(parts_by_second(begin, begin + length))
    assert sum(part for _, part in parts) == length
    assert [second for second, _ in parts] == list(range(begin // SECOND_NS, -(-(begin + length) // SECOND_NS)))[
        : len(parts)
    ]
    assert all(0 < part <= SECOND_NS for _, part in parts)
    assert all(part == SECOND_NS for _, part in parts[1:-1])


@st.composite
def statements(draw: st.DrawFn) -> list[int]:
    """The statements of one transaction, one after the other."""
    moment, numbers = START + 1000 * draw(st.integers(0, 3_000_000)), []
    for rows, took_us in draw(st.lists(st.tuples(st.integers(FAILED, 9), st.integers(0, 10**6)), min_size=1)):
        numbers += draw(st.integers(0, 1)), rows, moment, moment + 1000 * took_us
        moment = numbers[-1]
    return numbers


@given(st.lists(st.lists(statements(), max_size=8), max_size=3))
def test_rows_of_statements_merge_to_those_of_all_transactions(executors):
    """Reports of several executors merge to the report that one would have made."""

    def rows(transactions):
        return statement_rows(statement_table(transactions), LOAD, ["transfer 1", "order 1"], START)

    merger = RowMerger()
    for transactions in executors:
        merger.add(decode(encode(Report.from_rows(Rows(own_statements=rows(transactions))))).rows())
    every = [transaction for transactions in executors for transaction in transactions]
    merged = merger.pop_before(math.inf).own_statements
    assert [astuple(row) for row in merged] == sorted(map(astuple, rows(every)), key=lambda row: row[:3])
    assert all(size(row.latency) == row.executions for row in merged)
    assert [set(row.columns()) for row in merged] == [set(OWN_STATEMENTS.names)] * len(merged)
    counted: Counter = Counter()
    for numbers in every:
        for place, returned, began, ended in zip(*(numbers[part::4] for part in range(4)), strict=True):
            key = (numbers[-1] - START) // SECOND_NS, place
            counted[key, "errors"] += returned == FAILED
            if returned != FAILED:
                counted.update({(key, "done"): 1, (key, "rows"): returned, (key, "us"): (ended - began) // 1000})
    found = Counter()
    for row in merged:
        key = row.second, ["transfer 1", "order 1"].index(row.statement)
        found.update({(key, "errors"): row.errors, (key, "done"): row.executions, (key, "rows"): row.rows})
        found[key, "us"] += row.latency_us
    assert +found == +counted
