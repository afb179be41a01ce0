"""The documented format of a record: every column has a meaning and a unit, in Parquet as on the page."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.manifests import a_manifest

from stallmark.collectors import data_format
from stallmark.record import profile
from stallmark.record.histogram import VALUES_US
from stallmark.record.profile_tables import RAW_TABLES
from stallmark.record.schema import MEANING, TABLES, UNIT, added_tables
from stallmark.record.writer import RecordWriter

PAGE = Path(__file__).parents[2] / "docs" / "data-format.md"
NUMBERS = {  # names, numbers of something, and a value whose unit is in another column
    "machine", "executor", "cell", "stream", "position", "pid", "type", "record", "file", "number", "value",
    "op", "segment", "repeat", "sample", "session", "server",
}  # fmt: skip


def test_the_page_is_current():
    """`stallmark schema --record --markdown > docs/data-format.md`"""
    assert PAGE.read_text(encoding="utf-8") == data_format.markdown()


def test_the_manifests_of_capabilities_are_beside_that_of_runs():
    schemas = data_format.in_json()
    of_runs, of_probes = schemas["manifest"]["properties"], schemas["capability_manifests"]["probe"]["properties"]
    assert {"scenario", "steps"} < set(of_runs) and "probe" not in of_runs and set(of_runs) < set(of_probes)
    assert of_probes["kind"]["const"] == "probe"


def test_every_column_has_a_meaning_and_every_quantity_a_unit():
    found = [*data_format.tables(), data_format.STEPS_IN_SQL, *data_format.profile_tables()]
    assert {one.name for one in found} >= {*TABLES, *added_tables(), "server_io", "volumes", "maintenance"}
    assert {one.name for one in found} >= {*RAW_TABLES, *profile.TABLES}
    for table in found:
        assert table.meaning and len(table.columns) == len(set(table.columns.names)), table.name
        for column in table.facts()["columns"]:
            assert column["meaning"], (table.name, column)
            is_quantity = column["type"] not in ("string", "bool") and column["name"] not in NUMBERS
            assert bool(column["unit"]) or not is_quantity, (table.name, column)


def test_a_name_that_ends_with_a_unit_has_that_unit():
    units = {"_us": "µs", "_ms": "ms", "_bytes": "bytes", "_kib": "KiB", "_percent": "%"}
    tables = [*data_format.tables(), *data_format.profile_tables()]
    columns = [column for table in tables for column in table.facts()["columns"]]
    for ending, unit in units.items():
        some = {column["unit"] for column in columns if column["name"].endswith(ending)}
        assert some and all(one.startswith(unit) for one in some), ending


def test_no_table_of_a_profile_has_the_name_of_one_of_a_run():
    assert not {one.name for one in data_format.tables()} & {one.name for one in data_format.profile_tables()}


def test_tables_of_counters_alone_leave_out_rows_that_did_not_change():
    told = {one.name for one in data_format.profile_tables() if "a missing row means no change" in one.meaning}
    assert told == {"file_counters", "server_counters", "wait_counters"}


def test_parquet_carries_them(tmp_path: Path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("users", [dict.fromkeys(TABLES["users"].names, 1) | {"load": "bank"}])
    assert pa.ipc.open_stream(tmp_path / "run" / "users.arrows").schema.field("lag_us").metadata[UNIT] == "µs".encode()
    writer.close()
    field = pq.read_schema(tmp_path / "run" / "users.parquet").field("lag_us")
    assert field.metadata[UNIT].decode() == "µs" and field.metadata[MEANING]


def test_the_page_s_formula_of_a_bucket_is_the_histogram_s():
    for number in (0, 2047, 2048, 3071, 3072, 20_000):
        n = number - 2048
        assert VALUES_US[number] == (number if number < 2048 else (1024 + n % 1024) << (1 + n // 1024))
