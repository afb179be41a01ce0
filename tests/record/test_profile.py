"""The folder of a profile: what was written is read, and what is no profile, or damaged, is said in a sentence."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.record_kinds import collected, collecting

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.errors import StallmarkError
from stallmark.record.profile import (
    FILE,
    FILE_IO,
    SERVER,
    FileClass,
    ProfiledServer,
    ProfileManifest,
    Session,
    is_profile,
    read_profile,
    write_imported,
    write_profile,
)
from stallmark.record.profile_tables import RAW_TABLES, SESSIONS_SEEN, Profile, close_streams

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
MADE = ProfileManifest(
    source="perfmon",
    started=AT.isoformat(),
    interval_s=15,
    servers=(ProfiledServer(product="SQL Server", cores=8),),
    sessions=(Session(started=AT.isoformat(), end="imported"),),
)


def _tables() -> dict[str, pa.Table]:
    times = {"start": AT, "end": AT + timedelta(seconds=15)}
    return {
        "file_io": pa.Table.from_pylist([times | {"file_class": FileClass.LOG, "writes": 30.5}], FILE_IO),
        "server": pa.Table.from_pylist([times | {"batches": 12.0}], SERVER),
    }


def test_what_was_imported_is_read_as_it_was(tmp_path):
    folder = tmp_path / "profile"
    write_imported(folder, MADE, _tables())
    assert is_profile(folder) and read_profile(folder).changed(tables={}) == MADE
    found = intervals_of(folder)
    assert found.tables() == _tables()
    assert np.isnan(found.column("log.reads")).all()  # what is not known is not 0


def test_a_folder_without_a_manifest_is_no_profile(tmp_path):
    assert not is_profile(tmp_path)
    with pytest.raises(StallmarkError, match="is not a profile"):
        read_profile(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged"),
        ('{"format": 2}', "update Stallmark"),
        ('{"source": "server"}', "no format number"),
        ('{"format": 1, "source": "guess", "started": "2026-03-02", "interval_s": 15}', "source"),
    ],
)
def test_a_damaged_manifest_is_a_sentence(tmp_path, text, said):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StallmarkError, match=said):
        read_profile(tmp_path)


def test_a_damaged_table_is_a_sentence(tmp_path):
    folder = tmp_path / "profile"
    write_imported(folder, MADE, _tables())
    (folder / "server.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(StallmarkError, match=r"server\.parquet is damaged"):
        intervals_of(folder)


@pytest.mark.parametrize(
    ("strange", "said"),
    [
        ({"end": None}, "column end"),
        ({"end": AT + timedelta(days=5000)}, "ten years"),
        ({"start": datetime(2150, 1, 1, tzinfo=UTC), "end": datetime(2150, 1, 2, tzinfo=UTC)}, "2100"),
        ({"start": datetime(1950, 1, 1, tzinfo=UTC)}, "1970"),
        ({"file_class": None}, "column file_class"),
        ({"writes": float("inf")}, "column writes"),
        ({"reads": float("nan")}, "column reads"),
    ],
)
def test_rows_that_no_profile_has_are_a_sentence(tmp_path, strange, said):
    folder = tmp_path / "profile"
    rows = [row | strange for row in _tables()["file_io"].to_pylist()]
    write_imported(folder, MADE, _tables() | {"file_io": pa.Table.from_pylist(rows, FILE_IO)})
    with pytest.raises(StallmarkError, match=said):
        intervals_of(folder)


MET = [{"sample": number, "wait_type": "IO", "wait_class": "io", "users": 1} for number in range(4)]
FILE_ROW = {"sample": 1, "entity": "5/1", "file_class": "data", "epoch": "1"}
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
    assert Profile(tmp_path).table("sessions_seen") == table(MET)
    assert [batch.num_rows for batch in Profile(tmp_path).batches("sessions_seen", SESSIONS_SEEN.names)] == [3, 1]
    assert Profile(tmp_path).table("wait_counters").num_rows == 0


def test_a_session_that_ends_while_it_is_read_is_read_as_it_was(tmp_path):
    collecting(tmp_path)
    folder = tmp_path / "profile"
    before = {name: Profile(folder).table(name) for name in RAW_TABLES}
    opened = Profile(folder)
    assert all(opened.schema(name) == schema for name, schema in RAW_TABLES.items())
    assert "samples-002" in close_streams(folder) and not list(folder.glob("*.arrows"))
    for profile in (opened, Profile(folder)):
        assert {name: profile.table(name) for name in RAW_TABLES} == before
    assert before["samples"].num_rows == 40


def test_a_part_that_was_there_is_missed(tmp_path):
    collecting(tmp_path)
    folder = tmp_path / "profile"
    (folder / "samples-002.arrows").unlink()
    with pytest.raises(StallmarkError, match=r"samples-002\.arrows is missing, and was there"):
        Profile(folder).table("samples")
    (tmp_path / "other").mkdir()
    collected(tmp_path / "other")
    (tmp_path / "other" / "profile" / "samples-001.parquet").unlink()
    with pytest.raises(StallmarkError, match=r"samples-001\.parquet is missing: .* collect the profile anew"):
        Profile(tmp_path / "other" / "profile").table("samples")


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
        ("file_counters", table([FILE_ROW | {"file_class": "odd"}], "file_counters")),
        ("file_counters", table([FILE_ROW | {"read_stall_ms": float("inf")}], "file_counters")),
        ("file_counters", table([FILE_ROW, FILE_ROW | {"read_stall_ms": float("nan")}], "file_counters")),
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
        list(Profile(tmp_path).batches(name, RAW_TABLES[name].names))
