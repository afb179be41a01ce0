"""Deltas of cumulative counters: against a truth that is known at every moment."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import InMemory

from stallmark.analysis.read import rises
from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.rises import NONE, Codes, PairCodes
from stallmark.analysis.read.times import longest_apart_s
from stallmark.errors import StallmarkError
from stallmark.stats.thresholds import GAP_S

SAMPLE = st.tuples(
    st.floats(0.2, 2.5, allow_nan=False),  # since the sample before
    st.lists(st.integers(0, 1000), min_size=3, max_size=3),  # rise of each entity
    st.booleans(),  # a restart just before it, announced by a new epoch
)


def read(rows: list[dict], **options: Any) -> Counters:
    """Return the counter `reads` of all rows together."""
    [counted] = read_counters(InMemory({"any": pa.Table.from_pylist(rows)}), "any", ["reads"], **options).values()
    return counted


def rows(samples, announce: bool = True) -> tuple[list[dict], list[float]]:
    t, totals, epoch, result, restarts = 0.0, [0, 0, 0], 0, [], []
    for gap, rose, restart in samples:
        t += gap
        if restart:
            totals, epoch = [0, 0, 0], epoch + announce
            restarts.append(t)
        totals = [a + b for a, b in zip(totals, rose, strict=True)]
        result += [
            {"t": t, "epoch": f"start {epoch}", "entity": f"e{i}", "kind": "data", "reads": total}
            for i, total in enumerate(totals)
        ]
    return result, restarts


@given(st.lists(SAMPLE, min_size=2, max_size=30), st.floats(0, 40), st.floats(0, 40))
def test_deltas_are_never_negative_and_add_up(samples, a, b):
    table, _ = rows(samples)
    counters = read(table, group="kind")
    begin, end = sorted((a, b))
    middle = (begin + end) / 2
    whole, left, right = (counters.delta(x, y) for x, y in ((begin, end), (begin, middle), (middle, end)))
    assert all(np.diff(counters.totals["reads"]) >= 0)
    parts = sum(part["reads"] for part in (left, right) if part)
    if whole:
        assert whole["reads"] >= 0
        assert parts == pytest.approx(whole["reads"])
    per_second = counters.per_second(45)["reads"]
    assert np.all(per_second[~np.isnan(per_second)] >= 0)


@given(st.lists(SAMPLE, min_size=2, max_size=30))
def test_without_restart_the_delta_is_what_was_counted(samples):
    samples = [(gap, rises, False) for gap, rises, _ in samples]
    table, _ = rows(samples)
    counters = read(table)
    delta = counters.delta(-1, 1e6)
    assert delta is not None and not delta.broken
    assert delta["reads"] == pytest.approx(sum(sum(rises) for _, rises, _ in samples[1:]))


@given(st.lists(SAMPLE, min_size=3, max_size=30))
def test_a_restart_inside_the_interval_breaks_it_and_only_it(samples):
    table, restarts = rows(samples)
    counters = read(table)
    times = counters.t
    for begin, end in pairwise(times):
        assert counters.delta(begin, end).broken == (end in restarts)


def test_a_fall_of_one_entity_is_seen_though_the_sum_rises():
    table = [
        {"t": t, "epoch": "same", "entity": entity, "reads": reads}
        for t, values in ((0.0, (500, 100)), (1.0, (10, 9000)), (2.0, (20, 9100)))
        for entity, reads in zip("ab", values, strict=True)
    ]
    counters = read(table)
    assert counters.delta(0, 2).broken
    after = counters.delta(1, 2)
    assert not after.broken and after["reads"] == 110


def test_an_entity_that_appears_later_in_the_same_epoch_began_at_zero():
    table = [
        {"t": 0.0, "epoch": "x", "entity": "a", "reads": 70},
        {"t": 1.0, "epoch": "x", "entity": "a", "reads": 80},
        {"t": 1.0, "epoch": "x", "entity": "b", "reads": 5},
        {"t": 2.0, "epoch": "y", "entity": "c", "reads": 1000},
    ]
    counters = read(table)
    assert counters.delta(0, 2)["reads"] == 15


def test_interpolates_between_samples_and_never_beyond_them():
    table = [{"t": t, "reads": r} for t, r in ((0.5, 0), (1.5, 100), (2.5, 400))]
    counters = read(table)
    assert counters.delta(1, 2)["reads"] == pytest.approx(50 + 150)
    early = counters.delta(0, 1)
    assert early.seconds == 0.5 and early["reads"] == pytest.approx(50)
    assert counters.delta(3, 4) is None
    assert counters.per_second(3)["reads"] == pytest.approx([np.nan, 200, np.nan], nan_ok=True)


def test_seconds_between_samples_that_are_far_apart_are_unknown():
    table = [{"t": float(t), "reads": 10 * t} for t in (0, 1, 2, 7, 8, 9)]
    reads = read(table).per_second(9)["reads"]
    assert np.isnan(reads[2:7]).all()
    assert reads[[0, 1, 7, 8]] == pytest.approx(10)


def test_a_counter_the_source_does_not_have_is_missing_and_not_zero():
    table = [{"t": float(t), "reads": t, "syncs": None} for t in range(3)]
    record = InMemory({"any": pa.Table.from_pylist(table)})
    delta = read_counters(record, "any", ["reads", "syncs", "hits"])[""].delta(0, 2)
    assert delta.values == {"reads": 2}
    with pytest.raises(StallmarkError, match="syncs"):
        delta["syncs"]


def test_nothing_recorded_is_no_counter():
    empty = pa.table({"t": pa.array([], pa.float64()), "reads": pa.array([], pa.int64())})
    assert read_counters(InMemory({"any": empty}), "any", ["reads"], group="kind") == {}


def test_late_reports_are_dated_back_and_a_break_lasts_until_it_was_seen():
    table = [
        {"t": float(t), "epoch": "a" if t < 4 else "b", "reads": reads}
        for t, reads in enumerate((0, 10, 20, 30, 5, 15, 25, 35))
    ]
    counters = read(table, delay_s=0.5)
    assert counters.t[0] == -0.5
    unknown = np.flatnonzero(np.isnan(counters.per_second(6)["reads"]))
    assert unknown.tolist() == [2, 3, 4]  # from 2.5, the last before it, to 4, and what is dated back into that
    assert counters.delta(4.5, 6.5)["reads"] == 20 and not counters.delta(4.5, 6.5).broken


@pytest.mark.parametrize(
    ("values", "seen", "rise"),
    [
        ((0, 10, None, 30, 40), (0, 4), 40),  # filled evenly: what was counted around a null is known
        ((None, 10, 20, 30, 40), (1, 4), 30),
        ((0, 10, 20, 30, None), (0, 3), 30),
        ((None, 2_000_000, 2_000_010, None, None), (1, 2), 10),
    ],
)
def test_next_to_a_null_a_difference_is_unknown_and_no_break(values, seen, rise):
    """Beside an entity that always has a value, and one that has no such counter."""
    table = [
        {"t": float(t), "epoch": "same", "entity": entity, "reads": reads}
        for t, value in enumerate(values)
        for entity, reads in (("a", value), ("b", 5 * t), ("c", None))
    ]
    counters = read(table)
    delta = counters.delta(0, 4)
    assert (delta.begin, delta.end) == seen and not delta.broken
    assert delta["reads"] == rise + 5 * (seen[1] - seen[0])


def test_a_counter_that_fell_behind_a_null_began_again():
    table = [{"t": float(t), "epoch": "same", "entity": "a", "reads": r} for t, r in enumerate((90, None, 10, 20))]
    assert read(table).delta(0, 3).broken


@given(st.integers(2, 40), st.floats(0.1, 60), st.floats(0.5, 10))
def test_samples_of_a_view_that_always_answers_late_leave_no_gap(count, apart, interval_s):
    t = np.cumsum(np.full(count, apart))
    gaps = np.diff(t) > longest_apart_s(t, interval_s)
    assert not gaps.any() or (count == 2 and apart > GAP_S)  # of one distance nobody knows whether it is usual


@given(st.integers(3, 40), st.data(), st.floats(1, 10), st.floats(3.1, 50))
def test_a_standstill_is_a_gap_against_the_usual_distance(count, data, usual, times):
    apart = np.full(count, usual)
    still = data.draw(st.integers(0, count - 1))
    apart[still] *= times
    t = np.append(0.0, np.cumsum(apart))
    assert np.flatnonzero(np.diff(t) > longest_apart_s(t, 1.0)).tolist() == [still]


def test_what_is_usual_may_change_in_a_run():
    """A view that answers at once without load, and takes 4 s under it."""
    t = np.append(np.arange(20.0), np.arange(20.0, 60.0, 4.0))
    assert not np.any(np.diff(t) > longest_apart_s(t, 1.0))


RATES = st.lists(st.floats(0, 2), min_size=240, max_size=240)


@given(RATES, st.lists(st.floats(3.1, 9), min_size=8, max_size=13), st.floats(2, 30), st.floats(10, 60))
def test_a_rate_lies_within_its_uncertainty_of_the_truth(rates, apart, begin, seconds):
    """The rate is never more than twice the mean, 1 per second, in any half second."""
    t = np.cumsum(apart)
    grid = np.arange(0, 120.5, 0.5)
    true = np.append(0.0, np.cumsum(rates)) / 2
    counted = Counters(t, {"reads": np.interp(t, grid, true)}, np.zeros(len(t) - 1, bool), np.zeros(len(t) - 1, bool))
    delta = counted.delta(begin, begin + seconds)
    if delta is not None and t[-1] <= 120:
        really = float(np.diff(np.interp([delta.begin, delta.end], grid, true))[0])
        assert abs(delta["reads"] - really) <= delta.open_s + 1e-6


def test_five_samples_in_twenty_seconds_are_uncertain_by_a_fifth():
    table = [{"t": float(t), "reads": 10 * t} for t in range(2, 60, 4)]
    counters = read(table)
    delta = counters.delta(20, 40)
    assert delta["reads"] == 200 and delta.uncertainty == pytest.approx(0.2)
    assert counters.delta(2, 58).uncertainty <= 0.075
    dense = [{"t": float(t), "reads": 10 * t} for t in range(60)]
    assert read(dense).delta(20.5, 40.5).uncertainty == 0


@pytest.mark.parametrize(("begin", "end", "seen"), [(1, 9, (1, 9)), (4, 9, (7, 9)), (0, 5, (0, 2)), (3, 6, None)])
def test_an_end_is_never_sought_in_a_gap(begin, end, seen):
    table = [{"t": float(t), "reads": 10 * t} for t in (0, 1, 2, 7, 8, 9)]
    delta = read(table).delta(begin, end)
    assert (delta and (delta.begin, delta.end)) == seen
    assert delta is None or delta["reads"] == 10 * delta.seconds


# Texts and pairs have the codes in the order in which they were met, whatever batches they come in.


texts = st.lists(st.lists(st.none() | st.sampled_from("abcdef"), max_size=8), max_size=6)
pairs = st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8), max_size=6)


@given(texts, st.booleans())
def test_a_text_has_one_code_in_all_batches(batches, encoded):
    found, seen = Codes(), []
    for rows in batches:
        column = pa.array(rows, pa.string())
        batch = pa.record_batch({"name": column.dictionary_encode() if encoded else column})
        told = found.codes(batch, "name")
        seen += [row if row is not None else NONE for row in rows]
        assert [found.names[code] for code in told] == [row if row is not None else NONE for row in rows]
    assert len(found.names) == len(set(found.names)) and set(found.names) == set(seen)


def test_a_dictionary_may_hold_what_no_row_has():
    found = Codes()
    column = pa.DictionaryArray.from_arrays([1, 1, 2], ["other", "read", "write"])
    assert found.codes(pa.record_batch({"name": column}), "name").tolist() == [0, 0, 1]
    assert found.names == ["read", "write"]


@pytest.mark.parametrize("dense", [rises.DENSE, 9])
@given(batches=pairs)
def test_a_pair_has_one_code_in_all_batches(dense, batches):
    found, known = PairCodes(), {}
    before, rises.DENSE = rises.DENSE, dense
    try:
        for rows in batches:
            first, second = np.array(rows, dtype=np.int64).reshape(-1, 2).T
            told = found.codes(first, second)
            assert told.tolist() == [known.setdefault(row, len(known)) for row in rows]
            assert found.pairs == list(known) and len(found) == len(known)
    finally:
        rises.DENSE = before
