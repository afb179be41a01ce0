"""Rows that no run can have are refused in a sentence; columns of every table are of the kind that their name has."""

import numpy as np
import pyarrow as pa
import pytest
from support.synthetic import Truth, make_run
from support.tables import get, put

from stallmark.analysis.experiment import summarise
from stallmark.collectors import data_format
from stallmark.errors import StallmarkError
from stallmark.record.manifest.course import LONGEST_S
from stallmark.record.manifest.workload import PHASES
from stallmark.record.plausible import TEXTS, wrong_columns, wrong_rows
from stallmark.record.reader import Record
from stallmark.record.schema import EXTERNAL, RAW_IO


def test_every_table_that_a_record_may_have_passes():
    for table in data_format.tables():
        empty = pa.RecordBatch.from_pylist([], table.columns)
        assert wrong_columns(table.name, table.columns) is None and wrong_rows(table.name, empty) is None, table.name
    columns = {column.name for table in data_format.tables() for column in table.columns}
    assert columns >= TEXTS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("plausible") / "run", Truth(measured_s=10))


def with_column(table: pa.Table, name: str, values) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


@pytest.mark.parametrize(
    ("name", "column", "values", "said"),
    [
        ("users", "second", lambda old: pa.array([None, *old.to_pylist()[1:]], pa.int32()), "without a value"),
        ("users", "second", lambda old: pa.array([-1, *old.to_pylist()[1:]], pa.int32()), "no time of a run"),
        ("users", "second", lambda old: pa.array([LONGEST_S, *old.to_pylist()[1:]], pa.int32()), "no time of a run"),
        ("users", "second", lambda old: old.cast(pa.float64()), "second is double"),
        ("transactions", "committed", lambda old: old.cast(pa.float64()), "committed is double"),
        ("wal", "t", lambda old: pa.array(np.full(len(old), np.inf)), "no time of a run"),
        ("wal", "epoch", lambda old: pa.array(range(len(old))), "epoch is int64"),
        ("server_io", "reads", lambda old: pa.array(["x"] * len(old)), "reads is "),
        ("transactions", "committed", lambda old: pa.array(["x"] * len(old)), "committed is string"),
        (
            "transactions",
            "latency_gaps",
            lambda old: pa.array([[None]] * len(old), old.type),
            "buckets without a value",
        ),
        ("transactions", "transaction", lambda old: pa.nulls(len(old), pa.string()), "without a value"),
    ],
)
def test_what_no_run_can_have_is_refused(run, name, column, values, said):
    whole = get(run, name)
    put(run, name, with_column(whole, column, values(whole[column])))
    with pytest.raises(StallmarkError, match=rf"{name} is damaged \(its column .*{said}"):
        list(Record(run).batches(name, [column]))
    put(run, name, whole)


def test_a_histogram_without_its_counts_is_refused(run):
    whole = get(run, "transactions")
    counts = [[] if place == 7 else count for place, count in enumerate(whole["latency_counts"].to_pylist())]
    put(run, "transactions", with_column(whole, "latency_counts", pa.array(counts, whole["latency_counts"].type)))
    with pytest.raises(StallmarkError, match=r"transactions is damaged .*more buckets than counts"):
        summarise([Record(run)])
    put(run, "transactions", whole)


def test_a_column_that_is_there_twice_or_missing_is_said(run):
    whole = get(run, "users")
    for table in (whole.append_column("busy_us", whole["busy_us"]), whole.drop_columns("busy_us")):
        put(run, "users", table)
        for read in (Record(run).table, lambda name: list(Record(run).batches(name, ["second"]))):
            with pytest.raises(StallmarkError, match=r"is damaged \(.*(busy_us|a column twice)"):
                read("users")
    put(run, "users", whole)


def test_a_column_of_a_collector_that_figures_need_is_said_where_it_is_missing(run):
    whole = get(run, "database")
    put(run, "database", whole.drop_columns("blocks_read"))
    with pytest.raises(StallmarkError, match=r"database is damaged \(it has no column blocks_read"):
        summarise([Record(run)])
    put(run, "database", whole)


@pytest.mark.parametrize("name", EXTERNAL.names)
def test_what_was_attached_has_each_value(name):
    row = {"t": 1.0, "source": "db1", "counter": "r/s", "instance": "", "unit": "", "value": 2.0}
    given = pa.RecordBatch.from_pylist([row], EXTERNAL)
    assert wrong_columns("external_x", given.schema) is None and wrong_rows("external_x", given) is None
    at = EXTERNAL.get_field_index(name)
    assert name in (wrong_rows("external_x", given.set_column(at, name, pa.nulls(1, EXTERNAL.field(at).type))) or "")
    assert name in (wrong_columns("external_x", given.set_column(at, name, pa.nulls(1)).schema) or "")


@pytest.mark.parametrize("name", RAW_IO.names)
def test_the_io_of_a_raw_load_has_each_column(name):
    assert wrong_columns("raw_io", RAW_IO) is None
    wrong = wrong_columns("raw_io", RAW_IO.remove(RAW_IO.get_field_index(name)))
    assert (wrong is None) if name.startswith("waiting_") else name in (wrong or "")  # older records lack these


@pytest.mark.parametrize("query", ["x", "Q", "Q0", "Q23", "RF3", "Q1;"])
def test_a_query_that_there_is_none_of_is_refused(query):
    given = pa.RecordBatch.from_pydict({"query": ["Q1", "Q22", "RF2", query]})
    assert wrong_rows("queries", given.slice(0, 3)) is None
    assert "query" in (wrong_rows("queries", given) or "")
    assert "query" in (wrong_rows("queries", given.set_column(0, "query", given["query"].dictionary_encode())) or "")


@pytest.mark.parametrize("name", ["outstanding", "seconds", "ios", "mean_ms"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_step_of_a_probe_without_io_is_refused(name, value):
    assert wrong_rows("probe_steps", pa.RecordBatch.from_pydict({name: [1]})) is None
    assert name in (wrong_rows("probe_steps", pa.RecordBatch.from_pydict({name: [1, value]})) or "")


@pytest.mark.parametrize("phase", ["x", "", None])
def test_a_phase_that_there_is_none_of_is_refused(phase):
    given = pa.RecordBatch.from_pydict({"phase": [*PHASES, "beside", phase]})
    assert wrong_rows("queries", given.slice(0, len(PHASES) + 1)) is None
    assert "phase" in (wrong_rows("queries", given) or "")


@pytest.mark.parametrize(
    "waits", ["", "x", "[1]", '{"IO": "1"}', '{"IO": NaN}', '{"IO": 1' + 400 * "0" + "}", 9999 * "["]
)
def test_waits_of_a_query_that_are_none_are_refused(waits):
    given = pa.RecordBatch.from_pydict({"wait_ms": ['{"IO": 1.5, "CXPACKET": 2}', "{}", None, waits]})
    assert wrong_rows("queries", given.slice(0, 3)) is None
    assert "wait_ms" in (wrong_rows("queries", given) or "")
