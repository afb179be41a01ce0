"""The folder of a profile: what was written is read, and what is no profile, or damaged, is said in a sentence."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

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
    read_imported,
    read_profile,
    write_imported,
)

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
    found = read_imported(folder)
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
        ('{"source": "guess", "started": "2026-03-02", "interval_s": 15}', "source"),
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
        read_imported(folder)


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
        read_imported(folder)
