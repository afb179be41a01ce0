"""Raw tables of a profile: parts of several sessions are one table, and what no collector wrote is a sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stallmark.errors import StallmarkError
from stallmark.record.profile import ProfileManifest, write_profile
from stallmark.record.profile_counters import RAW_TABLES, SESSIONS_SEEN, raw_batches, read_raw

MET = [{"sample": number, "wait_type": "IO", "wait_class": "io", "users": 1} for number in range(4)]
FILE = {"sample": 1, "entity": "5/1", "file_class": "data", "epoch": "1"}
SAMPLE = {"sample": 1, "session": 1, "clock": 1e9, "monotonic_s": 1.0, "server_clock": 1e9, "start": "", "server": 1}
Write = Callable[[str, pa.Table], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a part of a table into a profile."""
    write_profile(tmp_path, ProfileManifest(source="server", started="2026-03-02T09:00:00+00:00", interval_s=15))
    return lambda name, rows: pq.write_table(rows, tmp_path / f"{name}.parquet", write_page_checksum=True)


def table(rows: list[dict[str, Any]], name: str = "sessions_seen") -> pa.Table:
    return pa.Table.from_pylist(rows, RAW_TABLES[name])


def test_parts_of_several_sessions_are_one_table(write, tmp_path):
    write("sessions_seen-001", table(MET[:3]))
    write("sessions_seen-002", table(MET[3:]))
    assert read_raw(tmp_path, "sessions_seen") == table(MET)
    assert [batch.num_rows for batch in raw_batches(tmp_path, "sessions_seen")] == [3, 1]
    assert read_raw(tmp_path, "wait_counters").num_rows == 0


def bad_text() -> pa.Table:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    return table(MET[:1]).set_column(1, SESSIONS_SEEN.field("wait_type"), broken)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("sessions_seen", table(MET).drop_columns("users")),
        ("sessions_seen", table([]).drop_columns("users")),
        ("sessions_seen", pa.table({})),
        ("sessions_seen", table(MET).set_column(3, "users", [["many"] * len(MET)])),
        ("sessions_seen", table(MET[::-1])),
        ("sessions_seen", table([MET[0] | {"wait_type": None}])),
        ("sessions_seen", bad_text()),
        ("file_counters", table([FILE | {"file_class": "odd"}], "file_counters")),
        ("file_counters", table([FILE | {"read_stall_ms": float("inf")}], "file_counters")),
        ("file_counters", table([FILE, FILE | {"read_stall_ms": float("nan")}], "file_counters")),
        ("samples", table([SAMPLE | {"monotonic_s": None}], "samples")),
        ("samples", table([SAMPLE], "samples").set_column(3, "monotonic_s", pa.nulls(1))),
    ],
    ids=[
        "no column",
        "no rows nor column",
        "nothing",
        "text",
        "order",
        "null",
        "no text",
        "class",
        "infinite",
        "no number",
        "no time",
        "times of no type",
    ],
)
def test_what_no_collector_wrote_is_a_sentence(write, tmp_path, name, rows):
    write(f"{name}-001", rows)
    with pytest.raises(StallmarkError, match=rf"{name}.* is damaged"):
        list(raw_batches(tmp_path, name))
