"""Every table that a record may have is read as it was written, value by value: closed, or while the run goes on."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifests import a_manifest

from stallmark.collectors import data_format
from stallmark.record.plausible import LONGEST_S, may_be_null
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

TABLES = {f"{table.name.replace('…', 'x')} {table.engine}".rstrip(): table.columns for table in data_format.tables()}


def values(field: pa.Field) -> st.SearchStrategy[Any]:
    kind = field.type
    if field.name == "second":
        return st.integers(0, LONGEST_S - 1)
    if field.name == "t":
        return st.floats(-1, LONGEST_S - 1)
    if kinds.is_list(kind):
        return st.lists(values(pa.field("", kind.value_type)), max_size=4)
    if kinds.is_integer(kind):
        return st.integers(-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1)
    if kinds.is_floating(kind):
        return st.floats(allow_nan=False, allow_infinity=False, width=kind.bit_width)
    return st.booleans() if kinds.is_boolean(kind) else st.text(st.characters(codec="utf-8"), max_size=9)


CHECKED: dict[str, dict[str, st.SearchStrategy]] = {
    "queries": {
        "phase": st.sampled_from(["power", "throughput", "each", "concurrent"]),
        "query": st.sampled_from(["Q1", "Q22", "RF1", "RF2"]),
        "wait_ms": st.none() | st.dictionaries(st.text(max_size=9), st.integers(0, 99), max_size=2).map(json.dumps),
    },
    "probe_steps": {
        **{name: st.integers(1, 2**31 - 1) for name in ("outstanding", "ios")},
        **{name: st.floats(1e-9, 1e9) for name in ("seconds", "mean_ms")},
    },
}
"""The values that are checked one by one, and so refused where no run writes them."""


def rows(table: str, columns: pa.Schema) -> st.SearchStrategy[list[dict[str, Any]]]:
    each = {one.name: st.none() | values(one) if may_be_null(table, one.name) else values(one) for one in columns}
    each |= CHECKED.get(table, {})
    return st.lists(st.fixed_dictionaries(each), max_size=4)


@pytest.mark.thorough
@pytest.mark.parametrize("named", TABLES)
@given(data=st.data())
@settings(max_examples=4, deadline=None)
def test_a_table_is_read_as_it_was_written(named, data, tmp_path_factory):
    table, columns = named.split()[0], TABLES[named]
    batches = data.draw(st.lists(rows(table, columns), max_size=3))
    writer = RecordWriter(tmp_path_factory.mktemp("record") / "run", a_manifest(), {table: columns})
    for batch in batches:
        writer.append(table, batch)
    written = [row for batch in batches for row in batch]
    for _ in range(2):
        record = Record(writer.folder)
        assert record.table(table).to_pylist() == written
        assert [row for batch in record.batches(table, columns.names) for row in batch.to_pylist()] == written
        if record.manifest.status == "running":
            writer.close()
    described = [(field.name, field.metadata) for field in Record(writer.folder).schema(table)]
    assert described == [(field.name, field.metadata) for field in columns]


def test_numbers_of_a_closed_table_are_encoded_by_how_they_repeat(tmp_path):
    """Differences of neighbouring rows are small where a sample is one row. Elsewhere their first bytes repeat."""
    tables = {name: TABLES[f"{name} postgresql"] for name in ("server_io", "wal")}
    writer = RecordWriter(tmp_path / "run", a_manifest(), tables)
    for name, columns in tables.items():
        row = {column.name: "a" if kinds.is_string(column.type) else 1 for column in columns}
        writer.append(name, [row | {"t": float(second)} for second in range(9)])
    writer.close()
    encodings = {}
    for name in tables:
        group = pq.ParquetFile(writer.folder / f"{name}.parquet").metadata.row_group(0)
        columns = map(group.column, range(group.num_columns))
        encodings[name] = {column.path_in_schema: set(column.encodings) - {"RLE"} for column in columns}
    assert encodings["server_io"]["t"] == encodings["server_io"]["reads"] == {"BYTE_STREAM_SPLIT"}
    assert encodings["server_io"]["entity"] == {"PLAIN", "RLE_DICTIONARY"}
    assert encodings["wal"]["t"] == {"BYTE_STREAM_SPLIT"}
    assert encodings["wal"]["bytes"] == {"DELTA_BINARY_PACKED"}
