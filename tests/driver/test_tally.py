"""Samples become rows: sums and histograms of parts are those of the whole, and nothing is lost."""

import itertools
import math
from collections import Counter, defaultdict
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.driver.client import COMMITTED, GIVEN_UP, ROLLED_BACK, Failure
from stallmark.driver.controller import Merger
from stallmark.driver.tally import (
    SECOND_NS,
    as_table,
    deferred_rows,
    error_rows,
    parts_by_second,
    transaction_rows,
    user_rows,
)
from stallmark.errors import CallFailed, ErrorClass
from stallmark.record import histogram as hdr

START = 1_000 * SECOND_NS
NAMES = ["transfer", "order"]
US = st.integers(0, hdr.HIGHEST_US)
TRANSACTION, SCHEDULED, STARTED, ENDED, FREE, OUTCOME, RETRIES = range(7)


def counts(blob: bytes) -> dict[int, int]:
    """By the lowest value of a bucket, in µs."""
    found = hdr.counts(blob)
    return {int(hdr.VALUES_US[index]): int(found[index]) for index in np.flatnonzero(found)}


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


@settings(max_examples=30)
@given(values=st.lists(US, min_size=1), cut=st.lists(st.integers(0, 9)))
def test_merging_histograms_of_parts_gives_the_histogram_of_the_whole(values, cut):
    edges = [0, *sorted(min(at, len(values)) for at in cut), len(values)]
    parts = [values[begin:end] for begin, end in itertools.pairwise(edges)]
    merged = hdr.merge([hdr.encode(np.array(part, np.int64)) for part in parts])
    whole = hdr.encode(np.array(values, np.int64))
    assert counts(merged) == counts(whole)


@settings(max_examples=30)
@given(values=st.lists(US, max_size=20))
def test_our_own_decoding_agrees_with_the_packages(values):
    blob = hdr.encode(np.array(values, np.int64))
    ours = hdr.counts(blob)
    theirs = HdrHistogram.decode(blob, b64_wrap=False)
    assert ours.sum() == theirs.get_total_count() == len(values)
    assert counts(blob) == Counter(int(hdr.LAYOUT.get_lowest_equivalent_value(max(value, 1))) for value in values)


@given(value=US)
def test_a_histogram_keeps_three_significant_digits(value):
    [(kept, count)] = counts(hdr.encode(np.array([value]))).items()
    assert count == 1
    assert kept == pytest.approx(max(value, 1), rel=10**-hdr.DIGITS)


def test_what_is_out_of_range_is_counted_at_the_end_of_the_range():
    assert sum(counts(hdr.encode(np.array([-5, 0, 2 * hdr.HIGHEST_US]))).values()) == 3


def test_a_histogram_of_another_layout_is_refused():
    other = HdrHistogram(1, 1000, 2, b64_wrap=False)
    with pytest.raises(ValueError, match="another range"):
        hdr.counts(other.encode())


@settings(max_examples=30)
@given(given_samples=st.lists(samples(), max_size=30))
def test_every_sample_is_in_exactly_one_row(given_samples):
    rows = transaction_rows(as_table(given_samples), NAMES, START)
    keys = [(row["second"], row["transaction"]) for row in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        mine = [
            s for s in given_samples if NAMES[s[TRANSACTION]] == row["transaction"] and second_of(s) == row["second"]
        ]
        done = [s for s in mine if s[OUTCOME] != GIVEN_UP]
        assert row["committed"] == sum(s[OUTCOME] == COMMITTED for s in mine)
        assert row["rolled_back"] == sum(s[OUTCOME] == ROLLED_BACK for s in mine)
        assert row["failed"] == len(mine) - len(done)
        assert row["retries"] == sum(s[RETRIES] for s in mine)
        # A transaction that was given up has no latency: it never was answered.
        assert row["latency_us"] == sum(s[ENDED] - s[SCHEDULED] for s in done) / 1000
        assert row["service_us"] == sum(s[ENDED] - s[STARTED] for s in done) / 1000
        assert sum(counts(row["latency"]).values()) == sum(counts(row["service"]).values()) == len(done)
    assert sum(row["committed"] + row["rolled_back"] + row["failed"] for row in rows) == len(given_samples)


class Tables:
    """Stands for a record: keeps what was appended."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict]] = defaultdict(list)

    def append(self, name: str, rows: list[dict]) -> None:
        self.rows[name] += rows


def report(part: list[tuple[int, ...]], executor: int) -> dict[str, list[dict[str, Any]]]:
    users = [
        {"second": second, "executor": executor, "running": 0.5, "cpu_us": 7} | row
        for second, row in user_rows(as_table(part), START).items()
    ]
    transactions = transaction_rows(as_table(part), NAMES, START)
    deferred = [{"executor": executor} | row for row in deferred_rows(as_table(part), {0: len(part)}, START)]
    return {
        "transactions": transactions,
        "users": users,
        "errors": [],
        "deferred_queue": deferred,
        "transaction_io": [],
    }


def comparable(row: dict) -> dict:
    return {name: counts(value) if isinstance(value, bytes) else value for name, value in row.items()}


@settings(max_examples=30)
@given(parts=st.lists(st.tuples(st.integers(0, 1), st.lists(samples(), max_size=8)), max_size=6))
def test_merging_the_reports_of_executors_gives_what_one_report_would_have(parts):
    tables = Tables()
    merger = Merger(tables)  # type: ignore[arg-type]
    for executor, part in parts:
        merger.add(report(part, executor))
    merger.write_before(2)
    early = list(tables.rows["transactions"])
    assert all(row["second"] < 2 for row in early)
    merger.write_before(math.inf)

    whole = [sample for _, part in parts for sample in part]
    at_once = transaction_rows(as_table(whole), NAMES, START)
    expected = {(r["second"], r["transaction"]): comparable(r) for r in at_once}
    got = tables.rows["transactions"]
    assert len(got) == len(expected)
    assert {(r["second"], r["transaction"]): comparable(r) for r in got} == expected
    assert sum(merger.seen.committed.values()) == sum(s[OUTCOME] == COMMITTED for s in whole)

    for executor in (0, 1):
        mine = [sample for number, part in parts if number == executor for sample in part]
        times = {r["second"]: r for r in tables.rows["users"] if r["executor"] == executor}
        expected_users = user_rows(as_table(mine), START)
        assert times.keys() == expected_users.keys()
        for second, row in expected_users.items():
            assert row.items() <= times[second].items()
        waited = [len(part) for number, part in parts if number == executor]
        expected_agenda = deferred_rows(as_table(mine), {0: max(waited)}, START) if waited else []
        found = [row for row in tables.rows["deferred_queue"] if row["executor"] == executor]
        assert sorted(found, key=itemgetter("second")) == sorted(
            ({"executor": executor} | row for row in expected_agenda), key=itemgetter("second")
        )
    assert len(tables.rows["users"]) == len({(r["second"], r["executor"]) for r in tables.rows["users"]})


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
    row = user_rows(as_table([sample]), START)[0]
    assert row == {"busy_us": busy, "think_us": think, "lag_us": lag, "lag_max_us": lag}


def test_the_largest_lag_is_kept():
    late = [at(scheduled=0, started=lag, ended=lag, free_since=0) for lag in (3, 9, 5)]
    row = user_rows(as_table(late), START)[0]
    assert (row["lag_us"], row["lag_max_us"]) == (17, 9)


def test_lateness_counts_from_when_it_was_due():
    """Also for a background session that was busy: that too few are there is the market's lag."""
    attended = [
        at(scheduled=500, started=530, ended=900, free_since=100),
        at(scheduled=100, started=620, ended=900, free_since=600),
        at(scheduled=1_999_000, started=1_999_500, ended=2_000_100, free_since=900),
    ]
    assert deferred_rows(as_table(attended), {0: 4, 1: 7}, START) == [
        {"second": 0, "taken": 2, "late_us": 550, "late_max_us": 520, "waiting": 4},
        {"second": 1, "taken": 0, "late_us": 0, "late_max_us": 0, "waiting": 7},
        {"second": 2, "taken": 1, "late_us": 500, "late_max_us": 500, "waiting": 0},
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
    rows = error_rows(failures, START)
    assert sum(row["attempts"] for row in rows) == len(failures)
    assert [tuple(row.values()) for row in rows] == [
        (0, "transfer", "deadlock", "40P01", 2, 1, "first"),
        (1, "transfer", "deadlock", "40P01", 1, 1, "second"),
        (0, "order", "deadlock", "40P01", 1, 0, "first"),
        (0, "transfer", "other", "22003", 1, 1, "out of range"),
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
