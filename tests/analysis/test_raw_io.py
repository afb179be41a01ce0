"""The figures of raw loads, from records of known truth."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import Truth, histogram, make_run

from stallmark.analysis.read.load_io import RawFigures, read_raw_io
from stallmark.analysis.read.times import Interval
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
    def of(rows: list[dict]) -> dict[str, RawFigures]:
        writer = RecordWriter(tmp_path / "run", made.manifest)
        writer.add_table("raw_io", schema.RAW_IO)
        for start in range(0, len(rows), 7):
            writer.append("raw_io", rows[start : start + 7])
        writer.close()
        return read_raw_io(Record(tmp_path / "run"), [STEP])[0]

    return of


def test_a_load_has_its_rate_and_latency_in_the_measured_seconds_alone(read):
    [(load, figures)] = read([row(second) for second in range(5, 25)]).items()
    assert load == "scan"
    assert (figures.seen_s, figures.reads, figures.writes) == (10, 20, 0)
    assert (figures.iops, figures.mb_per_s) == (2, pytest.approx(2 * BLOCK / 1e6))
    assert figures.mean_ms == pytest.approx(3)
    assert figures.latency_ms["p50"] == pytest.approx(2, rel=1e-3)
    assert figures.latency_ms["p99"] is None, "twenty I/Os have no p99"


def test_cells_add_up(read):
    rows = [row(second, cell=cell, us=[1000 * cell] * 100) for second in range(10, 20) for cell in (1, 2)]
    figures = read(rows)["scan"]
    assert (figures.iops, figures.mean_ms) == (200, pytest.approx(1.5))
    assert figures.latency_ms["p99"] == pytest.approx(2, rel=1e-3)


def test_what_has_not_ended_counts_with_the_time_it_has_waited(read):
    waits = {second: [7_000_000] for second in range(5, 19)} | {19: [2_000_000] * 100, 20: [9_000_000]}
    figures = read([row(second, us=[1000] * 90, waiting=waits.get(second, [])) for second in range(5, 25)])["scan"]
    assert (figures.reads, figures.waiting) == (900, 100)
    assert figures.mean_ms == pytest.approx(0.9 + 200, rel=1e-3)
    assert figures.latency_ms["p90"] == pytest.approx(1, rel=1e-3)
    assert figures.latency_ms["p95"] == pytest.approx(2000, rel=1e-3)


def test_what_waits_is_of_all_cells_or_not_known(read):
    rows = [row(second, cell=cell, waiting=[cell * 1000] * cell) for second in range(10, 20) for cell in (1, 2)]
    figures = read(rows)["scan"]
    assert figures.waiting == 3
    assert figures.mean_ms == pytest.approx((20 * (2 + 4) + 5) / 43, rel=1e-3)


def test_a_record_from_before_has_times_from_issuing(read, monkeypatch):
    monkeypatch.setattr(schema, "RAW_IO", pa.schema([one for one in schema.RAW_IO if "waiting" not in one.name]))
    figures = read([row(second) for second in range(10, 20)])["scan"]
    assert figures.waiting is None and figures.mean_ms == pytest.approx(3)


def test_a_load_that_ended_early_has_its_rate_over_the_seconds_it_ran(read):
    figures = read([row(second, cell=cell) for cell, end in ((1, 14), (2, 20)) for second in range(10, end)])["scan"]
    assert (figures.seen_s, figures.reads, figures.iops) == (4, 28, 4)
    assert figures.mb_per_s == pytest.approx(4 * BLOCK / 1e6)


def test_a_second_without_io_is_a_measurement_and_one_without_a_row_is_not(read):
    figures = read([row(10), row(11, us=[])])["scan"]
    assert (figures.seen_s, figures.iops) == (2, 1)


def test_a_load_that_rests_is_not_there(read):
    assert read([row(3), row(12, load="web")]).keys() == {"web"}


def test_writes_count_as_ios(read):
    figures = read([row(12, us=[1000, 1000, 4000], writes=1)])["scan"]
    assert (figures.reads, figures.writes, figures.iops, figures.mb_per_s) == (2, 1, 3, pytest.approx(3 * BLOCK / 1e6))
    assert figures.mean_ms == pytest.approx(2)


def test_a_record_without_raw_loads_has_none(made):
    assert read_raw_io(made, [STEP]) == {}


def test_a_run_lasted_as_long_as_its_raw_loads(made, tmp_path):
    writer = RecordWriter(tmp_path / "run", made.manifest)
    writer.add_table("raw_io", schema.RAW_IO)
    writer.append("raw_io", [row(99)])
    writer.close()
    assert recorded_seconds(Record(tmp_path / "run")) == 100


@pytest.mark.thorough
@given(st.lists(st.tuples(st.integers(0, 29), st.integers(1, 3), st.integers(1, 10_000_000)), max_size=60))
def test_nothing_is_lost_between_cells_and_together(made, tmp_path_factory, ios):
    folder = tmp_path_factory.mktemp("raw")
    writer = RecordWriter(folder / "run", made.manifest)
    writer.add_table("raw_io", schema.RAW_IO)
    writer.append("raw_io", [row(second, cell=cell, us=[us]) for second, cell, us in ios])
    writer.close()
    found = read_raw_io(Record(folder / "run"), [STEP]).get(0, {})
    within = [us for second, _, us in ios if 10 <= second < 20]
    assert sum(figures.reads for figures in found.values()) == len(within)
    for figures in found.values():
        assert math.isclose(figures.mean_ms * figures.reads, sum(within) / 1000)
        assert figures.latency_ms["max"] == pytest.approx(max(within) / 1000, rel=1e-3)
