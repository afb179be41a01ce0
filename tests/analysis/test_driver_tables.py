"""The driver's tables are read once for a run and all its loads, to what a reading of each by itself tells."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest

from stallmark.analysis.read.throughput import DriverTables, Part, read_load
from stallmark.analysis.read.times import Interval
from stallmark.errors import StallmarkError
from stallmark.record import histogram as hdr
from stallmark.record.manifest import Manifest
from stallmark.record.reader import LoadRecord, Record
from stallmark.record.schema import OWN_STATEMENTS, TABLES

SCHEMAS = TABLES | {"own_statements": OWN_STATEMENTS}
SECONDS, LOADS, TYPES = 12, ("bank", "mail", "shop"), ("read", "write")
COUNTS = ("committed", "rolled_back", "failed", "retries")


@dataclass
class InMemory(Record):
    """A record whose tables are rows in memory, so many of them in a batch."""

    stored: dict[str, list[dict]]
    at_once: int
    loads: tuple = ()
    manifest: Manifest = field(default_factory=a_manifest)
    folder: Path = Path("run")

    def schema(self, name: str) -> pa.Schema:
        return SCHEMAS[name]

    def batches(self, name: str, columns: Sequence[str]):
        rows = self.stored.get(name, [])
        for begin in range(0, len(rows), self.at_once):
            yield pa.RecordBatch.from_pylist(rows[begin : begin + self.at_once], schema=SCHEMAS[name]).select(columns)


def transaction(second: int, load: str, name: str, values_us: Sequence[int], counts: Sequence[int]) -> dict:
    latency, service = hdr.encode(np.array(values_us)), hdr.encode(np.array(values_us) // 2)
    row = {"second": second, "load": load, "transaction": name, "latency_us": sum(values_us), "service_us": 7}
    return (
        row | dict(zip(COUNTS, counts, strict=True)) | hdr.columns("latency", latency) | hdr.columns("service", service)
    )


def statement(second: int, load: str, name: str, values_us: Sequence[int], errors: int) -> dict:
    row = {"second": second, "load": load, "statement": f"{name} 1", "executions": len(values_us), "rows": 3}
    return (
        row | {"errors": errors, "latency_us": sum(values_us)} | hdr.columns("latency", hdr.encode(np.array(values_us)))
    )


seconds = st.integers(0, SECONDS + 1)  # later ones are of the partial second in which a run was cut
transactions = st.builds(
    transaction,
    seconds,
    st.sampled_from(LOADS),
    st.sampled_from(TYPES),
    st.lists(st.integers(1, 5_000_000), max_size=4),
    st.tuples(*[st.integers(0, 3)] * 4),
)
statements = st.builds(
    statement,
    seconds,
    st.sampled_from(LOADS),
    st.sampled_from(TYPES),
    st.lists(st.integers(1, 5_000_000), max_size=4),
    st.integers(0, 3),
)
users = st.fixed_dictionaries(
    {"second": seconds, "load": st.sampled_from(LOADS), "machine": st.just(0), "executor": st.integers(0, 3)}
    | {"running": st.integers(0, 9).map(float)}
    | dict.fromkeys(("busy_us", "think_us", "lag_us", "lag_max_us", "cpu_us"), st.integers(0, 10**6))
)
own_io = st.fixed_dictionaries(
    {"second": seconds, "load": st.sampled_from(LOADS), "transaction": st.sampled_from(TYPES)}
    | dict.fromkeys(("sampled", "reads", "read_bytes", "hits", "writes"), st.integers(0, 9))
    | {"read_us": st.none() | st.integers(0, 9)}
)


@st.composite
def parts(draw, load: str | None) -> Part:
    """Seconds and intervals as a load may have them that rested in some steps, or ended before others."""
    until = draw(st.integers(1, SECONDS))
    ends = sorted(draw(st.sets(st.integers(0, until), max_size=6)))
    spans = [span for span in zip(ends[::2], ends[1::2], strict=False)]
    return Part(load, until, [Interval(n, begin, end, end - begin, False) for n, (begin, end) in enumerate(spans)])


def by_hand(rows: dict[str, list[dict]], part: Part) -> dict:
    """Return what a load is, a row at a time."""
    found: dict = {"counts": {}, "latency": {}, "service": {}, "own_io": {}, "users": {}}
    found |= {"statements": {}, "statement_latency": {}}

    def add(table: str, name, row: dict, columns: Sequence[str]) -> None:
        for column in columns:
            line = found[table].setdefault(name, {}).setdefault(column, np.zeros(part.seconds))
            line[row["second"]] += np.nan if row[column] is None else row[column]

    def add_histogram(to: str, key, row: dict, time: str) -> None:
        histogram = hdr.Histogram(*(row[f"{time}_{one}"].tobytes() for one in ("gaps", "counts")))
        buckets, counts = hdr.used(histogram)
        np.add.at(found[to].setdefault(key, np.zeros(hdr.BUCKETS)), buckets, counts)

    def own(table: str):
        return (row for row in rows[table] if row["second"] < part.seconds and part.load in (None, row["load"]))

    for row in own("transactions"):
        add("counts", row["transaction"], row, (*COUNTS, "latency_us", "service_us"))
        for interval in part.intervals:
            if interval.begin <= row["second"] < interval.end:
                for time in ("latency", "service"):
                    add_histogram(time, (interval.index, row["transaction"]), row, time)
    for row in own("own_statements"):
        add("statements", row["statement"], row, ("executions", "rows", "errors", "latency_us"))
        for interval in part.intervals:
            if interval.begin <= row["second"] < interval.end:
                add_histogram("statement_latency", (interval.index, row["statement"]), row, "latency")
    for row in own("transaction_io"):
        add("own_io", row["transaction"], row, ("sampled", "reads", "read_bytes", "hits", "read_us"))
    for row in own("users"):
        add("users", row["executor"], row, ("running", "busy_us", "think_us", "lag_us"))
    for executor, lines in found["users"].items():
        lines["cpu_us"] = np.zeros(part.seconds)
        for row in rows["users"]:
            if row["executor"] == executor and row["second"] < part.seconds:
                lines["cpu_us"][row["second"]] += row["cpu_us"]
    return found


def told(load) -> dict:
    some = {
        time: {key: one.counts for key, one in getattr(load, time).items() if one.size}
        for time in ("latency", "service", "statement_latency")
    }
    return some | {name: getattr(load, name) for name in ("counts", "own_io", "users", "statements")}


@pytest.mark.thorough
@given(
    st.fixed_dictionaries(
        {
            "transactions": st.lists(transactions, max_size=25),
            "transaction_io": st.lists(own_io, max_size=10),
            "own_statements": st.lists(statements, max_size=15),
            "users": st.lists(users, max_size=15),
        }
    ),
    st.integers(1, 9),
    st.tuples(*(parts(load) for load in (None, *LOADS))),
)
def test_one_reading_for_all_loads_tells_of_each_what_its_rows_say(rows, at_once, asked):
    run = InMemory(rows, at_once)
    together = DriverTables(run, asked)
    for part in asked:
        expected = by_hand(rows, part)
        for time in ("latency", "service", "statement_latency"):
            expected[time] = {key: counts for key, counts in expected[time].items() if counts.any()}
        found = together.load_of(part)
        np.testing.assert_equal(told(found), expected)
        alone = DriverTables(run, [part]).load_of(part)
        np.testing.assert_equal(told(alone), told(found))
        assert alone.executors == found.executors


def test_a_load_of_a_run_is_read_by_itself_as_with_the_others():
    row = {"machine": 2, "running": 5.0, "busy_us": 0, "think_us": 0, "lag_us": 0, "lag_max_us": 0, "cpu_us": 1}
    rows = [row | {"second": 0, "load": load, "executor": n} for n, load in enumerate(LOADS)]
    run = InMemory({"users": rows}, 2)
    assert set(read_load(run, 3, []).users) == {0, 1, 2} and read_load(run, 3, []).executors == {2: [0, 1, 2]}
    loads = [{"name": name, "kind": "users", "counts": [], "workload": {"name": name}} for name in LOADS]
    run.manifest = a_manifest(loads=loads)
    run._sources = run._layouts = run._small = {}
    mail = LoadRecord.__new__(LoadRecord)
    mail._whole, mail.load = run, "mail"
    assert list(read_load(mail, 3, []).users) == [1]


def test_loads_are_not_told_apart_where_rows_do_not_name_them():
    class Older(InMemory):
        def schema(self, name: str) -> pa.Schema:
            return pa.schema([field for field in TABLES[name] if field.name != "load"])

        def batches(self, name: str, columns: Sequence[str]):
            yield from super().batches(name, [column for column in columns if column != "load"])

        def _refuse(self, name, why):
            raise StallmarkError(why)

    older = Older({"transactions": [transaction(1, "bank", "read", [5, 6], [2, 0, 0, 0])]}, 5)
    found = read_load(older, 3, [Interval(0, 0, 3, 3, False)])
    assert found.all("committed").tolist() == [0, 2, 0] and found.latency[0, "read"].size == 2
    with pytest.raises(StallmarkError, match="no column load"):
        DriverTables(older, [Part("bank", 3, [])])


def test_sums_that_are_no_small_whole_numbers_are_kept_as_they_are():
    row = {"load": "bank", "machine": 0, "executor": 0, "think_us": 0, "lag_us": 0, "lag_max_us": 0, "cpu_us": 1}
    busy, running = [3, 2**31 - 1, 2**40 + 1, 5], [1.0, 2.0, 2.0, 0.5]
    rows = [row | {"second": n, "busy_us": busy[n], "running": running[n]} for n in (0, 1, 2, 3, 1)]
    for at_once in (1, 2, 5):
        users = read_load(InMemory({"users": rows}, at_once), 4, []).users[0]
        assert users["busy_us"].tolist() == [3, 2**32 - 2, 2**40 + 1, 5]
        assert users["running"].tolist() == [1, 4, 2, 0.5] and users["cpu_us"].tolist() == [1, 2, 1, 1]
