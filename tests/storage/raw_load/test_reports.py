"""The reports of a running fio, and the seconds that they are of."""

import json
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.record.histogram import TOPS_US, VALUES_US, count
from stallmark.storage.raw_load.arrivals import NOTHING, Seconds, Work, documents, parse

NOTES = st.text(st.characters(codec="ascii", exclude_characters="{}\r\n"), min_size=1, max_size=30).filter(str.strip)
VALUES = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20), max_size=4)
BINS = st.dictionaries(st.integers(0, 10**12), st.integers(1, 10**6), max_size=30)


def document(bins: dict[int, int], *, mean: float = 0.0, size: int = 0, runtime: int = 1000) -> dict:
    """Return a report like those of fio 3.33, without what is not read."""
    done = {"io_bytes": size, "runtime": runtime, "total_ios": 0}
    done["lat_ns"] = {"mean": mean, "N": sum(bins.values()), **({"bins": bins} if bins else {})}
    return {"fio version": "fio-3.33", "jobs": [{"error": 0, "read": done, "write": {}}]}


def work(*us: int) -> Work:
    return Work(len(us) * 4096, sum(us), count(np.array(us, dtype=np.int64), np.ones(len(us))))


@given(st.lists(NOTES | VALUES, max_size=12))
def test_documents_and_notes_come_as_they_were_written(parts):
    text = "".join(f"{part}\n" if isinstance(part, str) else json.dumps({"a": part}, indent=2) + "\n" for part in parts)
    found = list(documents(StringIO(text)))
    assert found == [part.strip() if isinstance(part, str) else {"a": part} for part in parts]


@given(VALUES, st.data())
def test_a_document_that_was_cut_is_left_out(values, data):
    lines = json.dumps({"a": values}, indent=2).splitlines(keepends=True)
    cut = data.draw(st.integers(1, len(lines) - 1))
    assert list(documents(iter(lines[:cut]))) == []


@given(BINS, st.floats(0, 1e12), st.integers(0, 2**50))
def test_a_report_has_all_ios_with_their_bytes_and_times(bins, mean, size):
    report = parse(json.loads(json.dumps(document(bins, mean=mean, size=size))), "read")
    assert (report.work.ios, report.work.bytes, report.seconds) == (sum(bins.values()), size, 1.0)
    assert report.work.latency_us == pytest.approx(mean * sum(bins.values()) / 1000, abs=0.6)
    for ns, ios in bins.items():
        us = min(max(ns // 1000, 1), 3_600_000_000)
        [place] = np.flatnonzero((us >= VALUES_US) & (us <= TOPS_US))
        assert report.work.buckets[place] >= ios


@given(BINS)
def test_a_report_of_ios_at_a_rate_has_what_still_waits(bins):
    waiting = parse(json.loads(json.dumps(document({}) | {"waiting": bins})), "read").waiting
    assert waiting is not None and waiting.sum() == sum(bins.values())
    assert parse(document(bins), "read").waiting is None


@pytest.mark.parametrize("broken", [{}, {"jobs": []}, {"jobs": [{}]}, {"jobs": [{"error": 0, "read": {"lat_ns": 1}}]}])
def test_what_is_not_fios_is_refused(broken):
    with pytest.raises(StallmarkError, match=r"fio 3\.0"):
        parse(broken, "read")


@given(
    st.floats(0, 50),
    st.lists(st.tuples(st.floats(0.01, 4), st.lists(st.integers(1, 10**6), max_size=30)), min_size=1, max_size=8),
)
def test_nothing_is_lost_or_doubled_between_seconds(begin, windows):
    seconds, all_of_it, t = Seconds(), NOTHING, begin
    for length, us in windows:
        seconds.add(t, t + length, work(*us))
        all_of_it, t = all_of_it + work(*us), t + length
    early = seconds.take(t)
    assert all(second + 1 <= t for second, _ in early)
    found = early + seconds.take(float("inf"))
    assert [second for second, _ in found] == sorted({second for second, _ in found})
    assert found[0][0] == int(begin) and found[-1][0] <= int(t)
    total = sum((each for _, each in found), NOTHING)
    assert (total.bytes, total.latency_us) == (all_of_it.bytes, all_of_it.latency_us)
    assert np.array_equal(total.buckets, all_of_it.buckets)
    assert all((each.buckets >= 0).all() for _, each in found)


def test_a_stretch_over_seconds_is_spread_evenly_fast_and_slow_alike():
    seconds = Seconds()
    seconds.add(10.5, 12.5, work(*[100] * 400, *[9000] * 400))
    found = dict(seconds.take(float("inf")))
    assert [found[second].ios for second in (10, 11, 12)] == [200, 400, 200]
    for second in (10, 11, 12):
        slow = found[second].buckets[VALUES_US > 1000].sum()
        assert slow == found[second].ios / 2


def test_a_second_is_held_back_until_it_is_over():
    seconds = Seconds()
    seconds.add(3.2, 4.4, work(100, 100))
    assert [second for second, _ in seconds.take(4.4)] == [3]
    assert [second for second, _ in seconds.take(4.4)] == []
