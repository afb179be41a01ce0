"""Rows become the same batch whichever way they come, and the one that Arrow makes of them; a stream likewise."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.record.schema import column
from stallmark.record.table_file import StreamWriter
from stallmark.record.writer import Columns, Rows, batch_of

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
SCHEMA = pa.schema(
    [
        column("at_s", pa.float64(), "when"),
        column("name", pa.string(), "whose"),
        column("reads", pa.int64(), "how many", "I/Os"),
        column("took_s", pa.float32(), "how long"),
        column("own", pa.bool_(), "true: ours"),
        column("counts", pa.list_(pa.int32()), "histogram", "I/Os"),
    ]
)
FLOATS = st.floats(allow_nan=False) | st.integers(-(1 << 53), 1 << 53)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "at_s": FLOATS,
    "name": st.text(),
    "reads": st.integers(-(1 << 63), (1 << 63) - 1),
    "took_s": st.floats(allow_nan=False, width=32) | st.integers(-(1 << 24), 1 << 24),
    "own": st.booleans(),
    "counts": st.lists(st.integers(0, (1 << 31) - 1)),
}
KNOWN = {name: st.none() | values for name, values in VALUES.items()}
WHOLE = st.lists(st.tuples(*KNOWN.values()))


def of_arrow(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@given(st.lists(st.fixed_dictionaries({}, optional=KNOWN | {"unknown": st.integers()})))
def test_mappings_become_columns_and_what_they_do_not_say_is_missing(rows: list[dict[str, Any]]) -> None:
    batch = batch_of(rows, SCHEMA)
    assert batch.equals(of_arrow(rows), check_metadata=True)
    batch.validate(full=True)


@given(WHOLE, st.permutations(SCHEMA.names), st.sets(st.sampled_from(SCHEMA.names)))
def test_tuples_become_the_same_columns_in_whatever_order_and_with_some_left_out(
    values: list[tuple], order: list[str], left_out: set[str]
) -> None:
    whole = Rows(SCHEMA.names, values)
    assert batch_of(whole, SCHEMA).equals(of_arrow(list(whole)), check_metadata=True)
    names = [name for name in order if name not in left_out]
    some = Rows(names, [tuple(row[name] for name in names) for row in whole])
    assert batch_of(some, SCHEMA).equals(of_arrow(list(some)), check_metadata=True)


@given(WHOLE, st.floats(allow_nan=False))
def test_a_constant_comes_before_the_columns_of_every_row(values: list[tuple], at_s: float) -> None:
    rows = Rows(SCHEMA.names[1:], [row[1:] for row in values]).with_constants(at_s=at_s)
    assert rows.names == SCHEMA.names
    assert list(rows) == [{"at_s": at_s} | dict(zip(SCHEMA.names[1:], row[1:], strict=True)) for row in values]


def test_what_a_reader_does_to_a_row_is_nobody_elses() -> None:
    rows = Rows(["reads"], [(1,), (2,), (3,)])
    rows[0]["reads"] = 7
    assert [row["reads"] for row in rows] == [1, 2, 3] and [row["reads"] for row in rows[1:]] == [2, 3]
    assert rows[-1] == {"reads": 3} and len(rows) == 3
    with pytest.raises(IndexError):
        rows[3]


def test_a_row_of_another_length_than_the_names_is_refused() -> None:
    rows = Rows(SCHEMA.names, [(1.0, "one", 2)])
    with pytest.raises(pa.ArrowInvalid):
        batch_of(rows, SCHEMA)
    with pytest.raises(ValueError, match="shorter"):
        rows[0]


@pytest.mark.parametrize("value", ["many", 1 << 63, 1.5, True])
def test_what_is_no_whole_number_is_no_count(value: Any) -> None:
    for rows in ([{"reads": value}], Rows(["reads"], [(value,)])):
        try:
            of_arrow(list(rows))
        except (pa.ArrowException, OverflowError) as refused:
            with pytest.raises(type(refused)):
                batch_of(rows, SCHEMA)
        else:
            assert batch_of(rows, SCHEMA).equals(of_arrow(list(rows)))


def test_what_is_no_number_stays_so() -> None:
    [found] = batch_of([{"at_s": math.nan}], SCHEMA).column("at_s").to_pylist()
    assert math.isnan(found)


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_a_stream_holds_the_bytes_that_arrow_itself_writes(tmp_path: Path, compression: str | None) -> None:
    batches = [batch_of([{"name": "one" * 100, "counts": [1] * number}], SCHEMA) for number in range(9)]
    options = pa.ipc.IpcWriteOptions(compression=compression) if compression else None
    ours = StreamWriter(tmp_path / "ours.arrows", SCHEMA, options)
    with pa.ipc.new_stream(tmp_path / "arrow.arrows", SCHEMA, options=options) as arrows:
        for batch in batches:
            ours.write(batch)
            arrows.write_batch(batch)
    ours.close()
    whole = (tmp_path / "arrow.arrows").read_bytes()
    assert (tmp_path / "ours.arrows").read_bytes() == whole.removesuffix(END_OF_STREAM) != whole


def test_rows_may_be_an_array_for_each_column():
    schema = pa.schema([("t", pa.float64()), ("op", pa.int8()), ("size", pa.int32())])
    rows = Columns({"op": np.array([0, 2], "u4"), "size": np.array([8192, 0])}).with_constants(t=1.5)
    assert len(rows) == 2 and dict(rows[1]) == {"t": 1.5, "op": 2, "size": 0}
    assert [dict(one) for one in rows[:1]] == [dict(rows[0])]
    assert batch_of(rows, schema).to_pylist() == [{"t": 1.5, "op": 0, "size": 8192}, {"t": 1.5, "op": 2, "size": 0}]
    assert len(Columns({})) == 0
