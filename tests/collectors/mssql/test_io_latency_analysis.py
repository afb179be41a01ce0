"""Percentiles of single I/Os from the server's histograms, and when there are none."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mssql_records import DATA, LOG, SECONDS, File, run, step, summary
from support.pages import render

from stallmark.analysis.read.io_latency import _percentiles, _unit_ms
from stallmark.analysis.read.times import ReadKind
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections import server as server_tables

READS = {2: 480, 6: 240, 20: 76, 70: 4}  # 800 a second, as DATA has them; mean 6.25 ms but for 1 ms
SYNCS = {0: 200, 1: 160, 3: 40}


def rows(
    operation: str, per_second: Mapping[int, float], every: int = 5, begins: int = 0, **more: Any
) -> Iterable[dict[str, Any]]:
    """Return a histogram that grows evenly; `more`: other values of columns, by the second or for all."""
    for t in range(0, SECONDS + 1, every):
        own = {name: value(t) if callable(value) else value for name, value in more.items()}
        counts = [(value, round(rate * (t - begins))) for value, rate in per_second.items() if t > begins]
        for duration, ios in counts or [(None, 0)]:
            yield {
                "t": float(t), "server_time": float(t), "epoch": "session 1", "operation": operation,
                "duration": duration, "ios": ios, "slots": 4096, "dropped": 0,
            } | own  # fmt: skip


def test_percentiles_of_the_measured_interval(tmp_path):
    found = step(tmp_path / "run", io_latency=[*rows("read", READS), *rows("log write", SYNCS)]).server.io_latency
    reads, writes = found
    assert (reads.operation, reads.ios, reads.doubt) == ("read", 800 * 30, None)
    assert reads.coverage == pytest.approx(1) and writes.coverage == pytest.approx(1)
    assert reads.latency_ms == {"p50": 2, "p90": 6, "p95": 20, "p99": 20, "p99.9": 70, "max": 70}
    assert writes.latency_ms == {"p50": 0, "p90": 1, "p95": 3, "p99": 3, "p99.9": 3, "max": 3}


def test_microseconds_are_told_by_the_file_counters(tmp_path):
    found = step(
        tmp_path / "run", io_latency=rows("read", {value * 1000: n for value, n in READS.items()})
    ).server.io_latency
    assert found[0].resolution_ms == 0.001
    assert found[0].latency_ms["p50"] == pytest.approx(2) and found[0].latency_ms["max"] == pytest.approx(70)


def test_durations_that_fit_no_unit_give_no_percentile(tmp_path):
    [found] = step(tmp_path / "run", io_latency=rows("read", {70_000_000: 800})).server.io_latency
    assert set(found.latency_ms.values()) == {None} and found.ios == 24_000
    assert found.doubt.kind == ReadKind.HISTOGRAM_UNIT_UNKNOWN


def test_a_histogram_that_ran_out_of_room_gives_no_percentile(tmp_path):
    [found] = step(tmp_path / "run", io_latency=rows("read", READS, slots=4)).server.io_latency
    assert set(found.latency_ms.values()) == {None}
    assert found.doubt.kind == ReadKind.HISTOGRAM_FULL


@pytest.mark.parametrize(("per_second", "doubtful"), [(0.5, False), (2, True)])
def test_lost_events_count_when_they_could_be_the_slow_ones(tmp_path, per_second, doubtful):
    lost = rows("read", READS, dropped=lambda t: int(per_second * t))
    [found] = step(tmp_path / "run", io_latency=lost).server.io_latency
    assert (found.doubt is not None) == doubtful == (found.latency_ms["p99"] is None)


def test_sessions_that_were_made_again_in_the_interval_say_nothing(tmp_path):
    again = rows("read", READS, epoch=lambda t: f"session {t >= 20}")
    assert step(tmp_path / "run", io_latency=again).server.io_latency == []
    before = rows("read", READS, epoch=lambda t: f"session {t >= 5}")
    assert step(tmp_path / "before", io_latency=before).server.io_latency[0].ios == 24_000


def test_an_interval_that_was_not_sampled_whole_says_nothing(tmp_path):
    late = [row for row in rows("read", READS) if row["t"] >= 10]
    assert step(tmp_path / "run", io_latency=late).server.io_latency == []


def test_a_histogram_that_begins_a_little_late_covers_the_rest(tmp_path):
    late = [row for row in rows("read", READS, every=1) if row["t"] >= 7]
    [found] = step(tmp_path / "run", io_latency=late).server.io_latency
    assert found.ios == 800 * 28 and found.coverage == pytest.approx(1) and found.latency_ms["p99"] == 20


def test_counting_that_begins_with_the_first_sample(tmp_path):
    """The first row has no duration: nothing was counted yet."""
    [found] = step(tmp_path / "run", io_latency=rows("read", READS, begins=5)).server.io_latency
    assert found.ios == 24_000 and found.coverage == pytest.approx(1)


def test_a_server_that_read_nothing(tmp_path):
    quiet = (File("bank/bank", "data", writes=80, write_ms=1), LOG)
    [found] = step(tmp_path / "run", quiet, io_latency=rows("read", {})).server.io_latency
    assert (found.ios, found.coverage, found.doubt) == (0, None, None)
    assert set(found.latency_ms.values()) == {None}


@given(durations=st.lists(st.integers(0, 500), min_size=1, max_size=400))
def test_a_percentile_is_the_least_that_so_many_did_not_exceed(durations):
    values, counts = np.unique(durations, return_counts=True)
    found = _percentiles(values.astype(float), counts.astype(float))
    for name, share in {"p50": 0.5, "p90": 0.9, "p95": 0.95}.items():
        if found[name] is None:
            assert len(durations) < 10 / (1 - share) + 1
        else:
            assert found[name] == sorted(durations)[math.ceil(round(share * len(durations), 6)) - 1]
    assert found["max"] == max(durations)


@given(ms=st.floats(0, 1000), apart=st.floats(0.3, 3))
def test_a_unit_is_recognised(ms, apart):
    assert _unit_ms(ms, ms * apart) == 1.0
    if ms > 0.1:
        assert _unit_ms(ms * 1000, ms * apart) == 0.001
    assert _unit_ms(ms, None) is None


def test_the_report_shows_them(tmp_path):
    folder = run(tmp_path / "run", (DATA, LOG), io_latency=[*rows("read", READS), *rows("log write", SYNCS, slots=3)])
    experiment = summary(folder)
    reads, writes = (
        [str(cell).replace("\u00a0", " ") for cell in row[1:]] for row in server_tables.io_latency(experiment).rows
    )
    assert reads == ["read", "24,000", "100 %", "2", "6", "20", "20", "70", "70"]
    assert writes[:3] == ["log write", "12,000", "100 %"] and set(writes[3:]) == {"–?"}
    notes = " ".join(server_tables.io_latency(experiment).notes)
    assert "The histogram is full" in notes and "whole numbers of milliseconds" in notes
    assert "Durations of single I/Os" in render(experiment)
    assert experiment_in_json(experiment)["runs"][0]["steps"][0]["io_latency"][0]["latency_ms"]["p99"] == 20


def test_less_than_the_unit_is_no_zero(tmp_path):
    folder = run(
        tmp_path / "run", (File("b/b", "data", reads=400, read_ms=0.4), LOG), io_latency=rows("read", {0: 400})
    )
    [row] = server_tables.io_latency(summary(folder)).rows
    assert {str(cell) for cell in row[4:]} == {"< 1"}
