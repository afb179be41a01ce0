"""Intervals made of raw tables, whatever the size of the batches that these are read in."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.whole_profile import WholeTable

from stallmark.analysis import profile_intervals as room
from stallmark.analysis.profile_intervals import Samples, intervals_of, sample_times
from stallmark.errors import StallmarkError
from stallmark.record.profile import FILE_IO
from stallmark.record.profile_tables import GONE, RAW_TABLES, SAMPLES

NOWHERE, TAKEN = Path("nowhere"), 6
IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")
ENTITIES = [("a", "data"), ("b", "data"), ("c", "log"), ("d", "tempdb")]


@st.composite
def sampled(draw) -> Samples:
    """Draw samples 15 s apart, some of which were not written whole, and between some nothing was seen."""
    number = np.array(sorted(draw(st.sets(st.integers(0, TAKEN - 1), min_size=2))))
    seen = np.array(
        draw(st.lists(st.sampled_from([True, True, False]), min_size=len(number) - 1, max_size=len(number) - 1))
    )
    none = np.empty(0, dtype=int)
    return Samples(number, 15.0 * number, seen, none, (), np.full(len(number), np.nan), np.ones(len(number)))


def counts():
    return st.one_of(st.none(), st.integers(0, 50))


@st.composite
def rows_of(draw, names, columns: int) -> list[tuple]:
    """Draw rows of samples, in which an entity may be left out, begin anew or be gone."""
    found = []
    for sample in range(TAKEN):
        for name in names:
            if draw(st.booleans()):
                epoch = draw(st.sampled_from(["1", "1", "1", "2", GONE]))
                values = [None] * columns if epoch == GONE else [draw(counts()) for _ in range(columns)]
                found.append((sample, *name, epoch, *values))
    return found


def table(name: str, rows: list[tuple], **constant: Any) -> pa.Table:
    names = [one for one in RAW_TABLES[name].names if one not in constant]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) | constant for row in rows], RAW_TABLES[name])


class InBatches:
    """Stands for a profile of these tables, read so many rows at a time."""

    def __init__(self, tables: dict[str, pa.Table], at_once: int):
        self.tables, self.at_once = tables, at_once

    def schema(self, name: str) -> pa.Schema:
        return RAW_TABLES[name]

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches as Parquet has them: their dictionaries hold the texts of all rows."""
        for batch in self.tables[name].combine_chunks().to_batches() if name in self.tables else []:
            encoded = [one.dictionary_encode() if one.type == pa.string() else one for one in batch.columns]
            whole = pa.RecordBatch.from_arrays(encoded, batch.schema.names).select(columns)
            yield from (whole.slice(begin, self.at_once) for begin in range(0, whole.num_rows, self.at_once))


def intervals(samples: Samples, tables: dict[str, pa.Table], at_once: int):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(room, "Profile", lambda _: InBatches(tables, at_once))
        return intervals_of(NOWHERE, samples)


@given(sampled(), rows_of(ENTITIES, 7), st.integers(1, 40))
def test_counts_of_files_are_those_of_the_whole_table(samples, rows, at_once):
    files = table("file_counters", rows, database=None)
    found = intervals(samples, {"file_counters": files}, at_once)
    whole = WholeTable(files, samples)
    names = {row["file_class"] for row in files.to_pylist() if row["sample"] in samples.number}
    assert set(found.classes) == names
    for name in names:
        wanted = whole.rises("file_class", name, "entity", IO)
        wanted["size_bytes"] = whole.state("file_class", name, "entity", "size_bytes")
        for column in FILE_IO.names[3:]:
            mine = found.column(f"{name}.{column}")
            assert mine == pytest.approx(wanted[column][samples.seen], nan_ok=True), column


@given(sampled(), rows_of([("batches",), ("cpu_ms",), ("connections",)], 1), st.integers(1, 20))
def test_counts_of_the_server_are_those_of_the_whole_table(samples, rows, at_once):
    counters = table("server_counters", rows)
    found = intervals(samples, {"server_counters": counters}, at_once)
    whole = WholeTable(counters, samples)
    of = {name: whole.rises("counter", name, "counter", ["value"])["value"] for name in ("batches", "cpu_ms")}
    state = whole.state("counter", "connections", "counter", "value")
    for column, wanted in {"batches": of["batches"], "cpu_s": of["cpu_ms"] / 1000, "connections": state}.items():
        assert found.column(f"server.{column}") == pytest.approx(wanted[samples.seen], nan_ok=True), column


def test_transactions_are_without_those_of_parallel_workers():
    """Two for each. They may be counted an interval before the worker is, or the worker not at all, as before 18."""
    counted = {"transactions": [100, 150, 170, 175, 180], "parallel_workers": [None, 0, 5, 10, 11]}
    rows = [(at, name, "1", value) for name, values in counted.items() for at, value in enumerate(values) if at < TAKEN]
    none = np.empty(0, dtype=int)
    number = np.arange(5)
    samples = Samples(number, 15.0 * number, number[1:] > 0, none, (), np.full(5, np.nan), np.ones(5))
    found = intervals(samples, {"server_counters": table("server_counters", rows)}, 100)
    assert found.column("server.transactions").tolist() == [50.0, 10.0, 0.0, 3.0]


@pytest.mark.thorough
@given(sampled(), rows_of([("WRITELOG", "wal"), ("LCK_M_X", "lock"), ("PAGEIOLATCH_SH", "io")], 3), st.integers(1, 20))
def test_waits_are_those_of_the_whole_table(samples, rows, at_once):
    waits = table("wait_counters", rows)
    found = intervals(samples, {"wait_counters": waits}, at_once).waits
    mine = {one.wait_type: (one.waits, one.wait_ms) for one in found}
    wanted = WholeTable(waits, samples).waits()
    assert mine.keys() == wanted.keys()
    for name, sums in wanted.items():
        assert mine[name] == pytest.approx(sums), name


def test_sessions_that_were_met_waiting_waited_for_the_interval_before():
    at, none = np.array([0.0, 15.0, 30.0, 90.0]), np.empty(0, dtype=int)
    samples = Samples(np.arange(4), at, np.array([True, True, False]), none, (), np.zeros(4), np.ones(4))
    users = [(0, "IO", 7), (1, "IO", 2), (2, "IO", 1), (2, "Lock", 3), (3, "IO", 9), (9, "IO", 9)]
    met = table("sessions_seen", [(sample, name, name.lower(), count) for sample, name, count in users])
    for at_once in (1, 2, 10):
        found = intervals(samples, {"sessions_seen": met}, at_once).waits
        assert found == [("IO", "io", None, 45_000.0), ("Lock", "lock", None, 45_000.0)]


# The times of samples: one clock that is wrong changes nothing, and what two say is refused where it cannot be.


CLOCKS = ("clock", "monotonic_s", "server_clock")
YEAR_S = 365.25 * 86_400


def samples(jump_s: float, *jumping: str) -> pa.Table:
    """Return four samples, 15 s apart; between the second and the third some clocks jump."""
    return pa.Table.from_pylist(
        [
            {"sample": number, "session": 1, "server": 1, "start": "", "took_s": 0.1}
            | {name: 1e9 + 15.0 * number + jump_s * (name in jumping and number > 1) for name in CLOCKS}
            for number in range(4)
        ],
        SAMPLES,
    )


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("jump_s", [-3600.0, 40 * YEAR_S, 1e30])
def test_one_clock_that_jumps_changes_no_length(name, jump_s):
    assert list(sample_times(samples(jump_s, name), 15.0).elapsed_s) == [15.0, 15.0, 15.0]


def test_two_clocks_that_jump_by_years_are_refused():
    jumped = sample_times(samples(9 * YEAR_S, *CLOCKS[:2]), 15.0)
    assert np.array_equal(jumped.seen, [True, False, True])
    with pytest.raises(StallmarkError, match="ten years"):
        sample_times(samples(11 * YEAR_S, *CLOCKS[1:]), 15.0)
