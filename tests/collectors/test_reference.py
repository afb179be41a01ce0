"""The page on the record's format is made from the schemas that write it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.manifests import a_manifest

from stallmark.collectors.reference import reference
from stallmark.record.schema import MAINTENANCE, PROBE_TABLES, SAMPLED, TABLES
from stallmark.record.writer import RecordWriter

PAGE = Path(__file__).parents[2] / "docs/data-format.md"


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == reference(), "make docs"


def test_every_column_of_our_own_tables_has_a_meaning():
    tables = {**TABLES, **PROBE_TABLES, "maintenance": MAINTENANCE, "sampled": pa.schema(SAMPLED)}
    empty = [(name, field.name) for name, table in tables.items() for field in table if not field.metadata[b"meaning"]]
    assert not empty


def test_a_records_files_name_the_units_of_their_columns(tmp_path: Path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.add_table("host", pa.schema([*SAMPLED, ("user_s", pa.float64()), ("name_s", pa.string())]))
    writer.append("host", [{"t": 1.0, "took_s": 0.1, "user_s": 2.0, "name_s": "x"}])
    writer.close()
    schema = pq.read_schema(tmp_path / "run/host.parquet")
    assert schema.field("user_s").metadata[b"unit"] == b"seconds"
    assert schema.field("took_s").metadata[b"meaning"] == b"length of that call"
    assert b"unit" not in (schema.field("name_s").metadata or {})
    latency = pq.read_schema(tmp_path / "run/transactions.parquet").field("latency_us")
    assert latency.metadata[b"unit"] == b"microseconds"
