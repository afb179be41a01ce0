"""Entities that were gone while they counted, read a batch at a time, against a look at each sample."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.tables import InMemory

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.statements import Dropped, read_dropped

Sample = Mapping[str, int | None]
"""The counts of the plans in the cache, by name."""
SAMPLES = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(0, 6), max_size=4), min_size=1, max_size=8
)


def record_of(samples: Sequence[Sample], size: int) -> InMemory:
    rows = [
        {"t": 10.0 * i, "planned": f"of {plan}", "plan": plan, "executions": count}
        for i, sample in enumerate(samples)
        for plan, count in sample.items()
    ]
    return InMemory({"statements": pa.Table.from_pylist(rows, schema=SCHEMA)}, [size])


SCHEMA = pa.schema([("t", pa.float64()), ("planned", pa.string()), ("plan", pa.string()), ("executions", pa.int64())])


def looked_at(samples: Sequence[Sample], within_s: float) -> set[tuple[str, float, float]]:
    times = [i for i, sample in enumerate(samples) if sample]  # without a row there was no sample
    found = set()
    for before, last, gone in zip(times, times[1:], times[2:], strict=False):
        for plan, count in samples[last].items():
            earlier = [samples[i][plan] for i in times if i < last and plan in samples[i]]
            rose = count is not None and (not earlier or earlier[-1] is not None) and count > (earlier or [0])[-1]
            later = any(plan in samples[i] for i in times if i > last)
            if rose and not later and 10.0 * (gone - before) < within_s:
                found.add((f"of {plan}", 10.0 * last, 10.0 * gone))
    return found


@given(SAMPLES, st.integers(1, 5), st.sampled_from([25.0, 35.0, 1e9]))
def test_batches_give_what_a_look_at_each_sample_gives(samples, size, within_s):
    record = record_of(samples, size)
    found = read_dropped(record, "statements", "planned", "plan", "executions", within_s)
    assert {(one.group, one.last, one.gone) for one in found} == looked_at(samples, within_s)


def test_a_table_that_has_no_such_column_tells_nothing():
    record = record_of([{"a": 1}, {"a": 2}, {}, {"b": 1}], 9)
    assert read_dropped(record, "statements", "planned", "plan", "calls") == []


def test_what_was_lost_belongs_to_the_intervals_that_it_touches():
    dropped = Dropped("a", last=20.0, gone=30.0)
    intervals = [Interval(0, begin, end, 9.0, cut=False) for begin, end in ((0, 20), (20, 25), (29, 40), (30, 40))]
    assert [dropped.overlaps(interval) for interval in intervals] == [False, True, True, False]
