"""The figures of raw loads, from records of known truth."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import Truth, histogram, make_run

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.load_io import RawIo, read_raw_io
from stallmark.record import schema
from stallmark.record.reader import Record, recorded_seconds
from stallmark.record.writer import RecordWriter

STEP = Interval(index=0, begin=10, end=20, planned_s=10, cut=False)
BLOCK = 262_144


def row(
    second: int,
    load: str = "scan",
    cell: int = 1,
    us: list[int] | None = None,
    writes: int = 0,
    waiting: list[int] | None = None,
) -> dict:
    latencies = [2000, 4000] if us is None else us
    reads = len(latencies) - writes
    return {
        "second": second,
        "load": load,
        "cell": cell,
        "reads": reads,
        "read_bytes": reads * BLOCK,
        "writes": writes,
        "write_bytes": writes * BLOCK,
        "latency_us": sum(latencies),
        **histogram("latency", latencies),
        **({} if waiting is None else histogram("waiting", waiting)),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Record:
    return Record(make_run(tmp_path_factory.mktemp("made") / "run", Truth(measured_s=1)))


@pytest.fixture
def read(made, tmp_path):
    def of(rows: list[dict], *intervals: Interval, seconds: int = 30) -> RawIo:
        writer = RecordWriter(tmp_path / "run", made.manifest)
        writer.add_table("raw_io", schema.RAW_IO)
        for start in range(0, len(rows), 7):
            writer.append("raw_io", rows[start : start + 7])
        writer.close()
        return read_raw_io(Record(tmp_path / "run"), seconds, intervals or (STEP,))

    return of


def test_a_load_has_its_rate_and_latency_in_the_measured_seconds_alone(read):
    found = read([row(second) for second in range(5, 25)]).summaries(STEP)
    assert [one.load for one in found] == ["scan"]
    figures = found[0].together
    assert (figures.seen_s, figures.reads, figures.writes) == (10, 20, 0)
    assert (figures.iops, figures.mb_per_s) == (2, pytest.approx(2 * BLOCK / 1e6))
    assert figures.mean_ms == pytest.approx(3)
    assert figures.latency_ms["p50"] == pytest.approx(2, rel=1e-3)
    assert figures.latency_ms["p99"] is None, "twenty I/Os have no p99"


def test_cells_stand_by_themselves_and_add_up(read):
    rows = [row(second, cell=cell, us=[1000 * cell] * 100) for second in range(10, 20) for cell in (1, 2)]
    [found] = read(rows).summaries(STEP)
    assert [found.cells[cell].mean_ms for cell in (1, 2)] == [1, 2]
    assert (found.together.iops, found.together.mean_ms) == (200, pytest.approx(1.5))
    assert found.together.latency_ms["p99"] == pytest.approx(2, rel=1e-3)
    assert found.cells[1].latency_ms["p99"] == pytest.approx(1, rel=1e-3)


def test_what_has_not_ended_counts_with_the_time_it_has_waited(read):
    waits = {second: [7_000_000] for second in range(5, 19)} | {19: [2_000_000] * 100, 20: [9_000_000]}
    [found] = read([row(second, us=[1000] * 90, waiting=waits.get(second, [])) for second in range(5, 25)]).summaries(
        STEP
    )
    figures = found.together
    assert (figures.reads, figures.waiting) == (900, 100)
    assert figures.mean_ms == pytest.approx(0.9 + 200, rel=1e-3)
    assert figures.latency_ms["p90"] == pytest.approx(1, rel=1e-3)
    assert figures.latency_ms["p95"] == pytest.approx(2000, rel=1e-3)


def test_what_waits_is_of_all_cells_or_not_known(read):
    rows = [row(second, cell=cell, waiting=[cell * 1000] * cell) for second in range(10, 20) for cell in (1, 2)]
    [found] = read(rows).summaries(STEP)
    assert [found.cells[cell].waiting for cell in (1, 2)] == [1, 2] and found.together.waiting == 3
    assert found.together.mean_ms == pytest.approx((20 * (2 + 4) + 5) / 43, rel=1e-3)


def test_a_record_from_before_has_times_from_issuing(read, monkeypatch):
    monkeypatch.setattr(schema, "RAW_IO", pa.schema([one for one in schema.RAW_IO if "waiting" not in one.name]))
    [found] = read([row(second) for second in range(10, 20)]).summaries(STEP)
    assert found.together.waiting is None and found.together.mean_ms == pytest.approx(3)


def test_a_load_that_ended_early_has_its_rate_over_the_seconds_it_ran(read):
    [found] = read([row(second) for second in range(10, 14)]).summaries(STEP)
    assert (found.together.seen_s, found.together.iops) == (4, 2)


def test_a_second_without_io_is_a_measurement_and_one_without_a_row_is_not(read):
    raw = read([row(10), row(11, us=[])])
    [columns] = raw.counts.values()
    reads = columns["reads"]
    assert reads[10] == 2 and reads[11] == 0 and np.isnan(reads[12])
    [found] = raw.summaries(STEP)
    assert (found.together.seen_s, found.together.iops) == (2, 1)


def test_a_load_that_rests_is_not_there(read):
    raw = read([row(3), row(12, load="web")])
    assert [one.load for one in raw.summaries(STEP)] == ["web"] and sorted(raw.loads) == ["scan", "web"]


def test_writes_count_as_ios(read):
    [found] = read([row(12, us=[1000, 1000, 4000], writes=1)]).summaries(STEP)
    assert (found.together.reads, found.together.writes, found.together.iops) == (2, 1, 3)
    assert found.together.mean_ms == pytest.approx(2)


def test_a_record_without_raw_loads_has_none(made):
    assert read_raw_io(made, 30, [STEP]).summaries(STEP) == []


def test_a_run_lasted_as_long_as_its_raw_loads(made, tmp_path):
    writer = RecordWriter(tmp_path / "run", made.manifest)
    writer.add_table("raw_io", schema.RAW_IO)
    writer.append("raw_io", [row(99)])
    writer.close()
    assert recorded_seconds(Record(tmp_path / "run")) == 100


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(1, 3), st.integers(1, 10_000_000)), max_size=60))
def test_nothing_is_lost_between_cells_and_together(made, tmp_path_factory, ios):
    folder = tmp_path_factory.mktemp("raw")
    writer = RecordWriter(folder / "run", made.manifest)
    writer.add_table("raw_io", schema.RAW_IO)
    writer.append("raw_io", [row(second, cell=cell, us=[us]) for second, cell, us in ios])
    writer.close()
    found = read_raw_io(Record(folder / "run"), 30, [STEP]).summaries(STEP)
    within = [us for second, _, us in ios if 10 <= second < 20]
    assert sum(one.together.reads for one in found) == len(within)
    for one in found:
        waited = sum(cell.mean_ms * cell.reads for cell in one.cells.values())
        assert math.isclose(waited, sum(within) / 1000)
        assert one.together.latency_ms["max"] == max(cell.latency_ms["max"] for cell in one.cells.values())
