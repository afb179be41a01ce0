"""The run record: what was written is read, whole or cut, and a cut loses at most the last batch."""

import os
import shutil
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest

from stallmark.errors import StallmarkError
from stallmark.record import files, writer
from stallmark.record.files import replacing
from stallmark.record.plausible import LONGEST_S
from stallmark.record.reader import Record, find_records
from stallmark.record.schema import ERRORS, TABLES
from stallmark.record.table_file import sums_of
from stallmark.record.writer import RecordWriter

INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(codec="utf-8"))
ERROR_ROWS = st.fixed_dictionaries(
    {"second": st.integers(0, LONGEST_S - 1), "attempts": INT32, "given_up": INT32, "message": st.none() | TEXT}
    | dict.fromkeys(("load", "transaction", "error_class", "code"), TEXT)
)  # fmt: skip


def error_row(second: int) -> dict:
    return dict.fromkeys(("load", "transaction", "error_class", "code", "message"), f"at {second}") | {
        "second": second, "attempts": 1, "given_up": 0,
    }  # fmt: skip


def read_back(record: Record, name: str) -> list[dict]:
    columns = TABLES[name].names
    rows = [row for batch in record.batches(name, columns) for row in batch.to_pylist()]
    assert record.table(name).to_pylist() == rows
    return rows


@given(batches=st.lists(st.lists(ERROR_ROWS, max_size=5), max_size=5), closed=st.booleans())
@pytest.mark.thorough
def test_rows_written_in_batches_are_read_in_order(batches, closed, tmp_path_factory):
    writer = RecordWriter(tmp_path_factory.mktemp("record") / "run", a_manifest())
    for batch in batches:
        writer.append("errors", batch)
    if closed:
        writer.close()
    record = Record(writer.folder)
    assert read_back(record, "errors") == [row for batch in batches for row in batch]
    assert record.table("errors").schema == ERRORS
    assert record.tables() == sorted(TABLES)


def growing(folder: Path) -> tuple[Path, list[list[str | None]], list[int]]:
    """A stream of three batches, what they hold and where they end."""
    writer = RecordWriter(folder, a_manifest())
    writer.add_table("host", pa.schema([("event", pa.string())]))
    stream = writer.folder / "host.arrows"
    events, ends = [], []
    for batch in (["a"], ["b", None], ["c"]):
        writer.append("host", [{"event": event} for event in batch])
        events.append(batch)
        ends.append(stream.stat().st_size)
    return stream, events, ends


def events_of(folder: Path) -> list[str | None]:
    record = Record(folder)
    found = [event for piece in record.batches("host", ["event"]) for event in piece["event"].to_pylist()]
    assert record.table("host").num_rows == len(found)
    return found


@pytest.mark.thorough
def test_a_stream_of_an_older_version_cut_at_any_byte_loses_at_most_the_batch_that_was_cut(tmp_path):
    stream, events, ends = growing(tmp_path / "run")
    sums_of(stream).unlink()
    for size in range(ends[-1], -1, -1):
        os.truncate(stream, size)
        kept = [event for batch, end in zip(events, ends, strict=True) if end <= size for event in batch]
        assert events_of(stream.parent) == kept, f"cut after {size} of {ends[-1]} bytes"


def test_a_kill_loses_at_most_the_batch_that_was_being_written(tmp_path):
    stream, events, ends = growing(tmp_path / "run")
    sums = sums_of(stream)
    os.truncate(sums, sums.stat().st_size * 3 // 4)  # its checksum comes after a batch
    for size in range(ends[-1], ends[-2] - 1, -1):
        os.truncate(stream, size)
        whole = 3 if size == ends[-1] else 2
        assert events_of(stream.parent) == [event for batch in events[:whole] for event in batch]


@pytest.mark.parametrize("suffix", [".arrows", ".sums"])
def test_a_bit_that_flips_in_a_stream_is_found_and_so_is_a_part_that_is_missing(tmp_path, suffix):
    stream, events, _ = growing(tmp_path / "run")
    whole = [event for batch in events for event in batch]
    path = stream.with_suffix(suffix)
    content = path.read_bytes()
    assert events_of(stream.parent) == whole
    for place in range(0, len(content), 7 if suffix == ".arrows" else 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(StallmarkError, match=r"host\.arrows is damaged"):
            events_of(stream.parent)
        path.write_bytes(content[:place])
        try:
            assert events_of(stream.parent) == whole  # no more than the last checksum is missing
        except StallmarkError as refused:
            assert "host.arrows is damaged" in str(refused)


def test_a_stream_that_is_missing_is_said(tmp_path):
    stream, *_ = growing(tmp_path / "run")
    stream.unlink()
    with pytest.raises(StallmarkError, match=r"host\.arrows is missing"):
        events_of(stream.parent)


def test_a_table_that_is_closed_while_it_is_read_keeps_its_length(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [error_row(1)])
    record = Record(writer.folder)
    assert record.table("errors").num_rows == 1
    writer.append("errors", [error_row(2)])
    writer.close()
    assert read_back(record, "errors") == [error_row(1)]
    assert read_back(Record(writer.folder), "errors") == [error_row(1), error_row(2)]


def test_the_columns_of_a_run_that_goes_on_are_of_one_length(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [error_row(1)])
    record = Record(writer.folder)
    for column in ("second", "code"):
        assert [batch.num_rows for batch in record.batches("errors", [column])] == [1]
        writer.append("errors", [error_row(2)])
    assert record.table("errors").num_rows == 1 and Record(writer.folder).table("errors").num_rows == 3


def test_a_record_that_was_never_closed_says_that_it_was_cut(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    assert "was cut" in str(Record(writer.folder).incomplete_because)
    writer.close("the server ended")
    assert Record(writer.folder).incomplete_because == "the server ended"
    assert Record(writer.folder).manifest.status == "incomplete"


def test_a_closed_record_is_complete_and_holds_only_parquet(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.add_table("host", pa.schema([("t", pa.float64())]))
    writer.append("host", [{"t": 0.5}])
    writer.close()
    assert {path.suffix for path in writer.folder.iterdir()} == {".parquet", ".json"}
    assert set(Record(writer.folder).manifest.tables) == {*TABLES, "host"}
    record = Record(writer.folder)
    assert record.manifest.status == "complete"
    assert record.incomplete_because is None
    assert record.table("host").to_pylist() == [{"t": 0.5}]


def test_a_kill_between_parquet_and_the_end_of_its_stream_doubles_nothing(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [error_row(1)])
    stream = (writer.folder / "errors.arrows").read_bytes()
    writer.close()
    (writer.folder / "errors.arrows").write_bytes(stream)
    (writer.folder / "users.parquet.new").write_bytes(b"half")
    assert read_back(Record(writer.folder), "errors") == [error_row(1)]
    assert Record(writer.folder).tables() == sorted(TABLES)


def test_a_table_that_no_run_has_is_empty(tmp_path):
    record = Record(RecordWriter(tmp_path / "run", a_manifest()).folder)
    assert record.table("device").num_rows == 0
    assert list(record.batches("device", ["t"])) == []


def test_columns_that_a_table_does_not_have_are_left_out(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [error_row(1)])
    for _ in range(2):
        [batch] = Record(writer.folder).batches("errors", ["second", "no such"])
        assert batch.schema.names == ["second"]
        writer.close()


@contextmanager
def full_disk(path: Path):
    with replacing(path) as file:
        file.write(b"{")
        raise OSError(28, "No space left on device")
        yield


def test_a_manifest_that_cannot_be_saved_leaves_the_one_before(tmp_path, monkeypatch):
    writer = RecordWriter(tmp_path / "run", a_manifest(notes=["before"]))
    writer.note("after")
    monkeypatch.setattr(files, "replacing", full_disk)
    with pytest.raises(OSError, match="No space"):
        writer.save_manifest()
    assert Record(writer.folder).manifest.notes == ("before",) and not list(writer.folder.glob("*.new"))


def test_a_record_never_overwrites_another(tmp_path):
    RecordWriter(tmp_path / "run", a_manifest())
    with pytest.raises(FileExistsError):
        RecordWriter(tmp_path / "run", a_manifest())


def test_records_are_found_one_level_down_once_and_in_the_order_they_were_run(tmp_path):
    for name, started in [("b", "2026-01-01T00:00:01"), ("a", "2026-01-01T00:00:02"), ("c", "2026-01-01T00:00:01")]:
        RecordWriter(tmp_path / name, a_manifest(started=started))
    assert [r.folder.name for r in find_records([tmp_path, tmp_path / "a"])] == ["b", "c", "a"]


def test_a_run_named_twice_is_one_run(tmp_path, monkeypatch):
    for number in (1, 2):
        place = a_manifest(experiment="e", sequence=number, started=f"2026-01-01T00:00:0{number}")
        RecordWriter(tmp_path / "e" / str(number), place).close()
    (tmp_path / "latest").symlink_to(tmp_path / "e")
    shutil.copytree(tmp_path / "e" / "1", tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    named = [Path("e/1"), tmp_path / "e", Path("e/../e/2"), Path("latest"), Path("copy")]
    assert [record.folder for record in find_records(named)] == [Path("e/1"), tmp_path / "e" / "2"]


def write(folder: Path, manifest: bytes) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_bytes(manifest)
    return folder


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: path / "nowhere", "does not exist"),
        (lambda path: path, "holds no run record"),
        (lambda path: write(path / "x", b'{"format": 2, "sta'), "damaged"),
        (lambda path: write(path / "x", b"\xff\xfe\x00"), "damaged"),
    ],
)
def test_what_is_no_record_is_said_in_a_sentence(make, sentence, tmp_path):
    with pytest.raises(StallmarkError, match=sentence):
        find_records([make(tmp_path)])


def test_a_folder_of_experiments_is_refused_with_the_name_of_one(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "01-run", b"{}")
    with pytest.raises(StallmarkError, match=f"name one, such as {tmp_path / 'second'}"):
        find_records([tmp_path])


def test_runs_beside_experiments_are_not_shown_alone(tmp_path):
    probe, run = (RecordWriter(tmp_path / name, a_manifest()).folder for name in ("1-probe", "2-demo/01-run"))
    with pytest.raises(StallmarkError, match=rf"both runs and experiments: .*, such as {probe} or {run.parent}\.$"):
        find_records([tmp_path])
    for file in {*run.iterdir()} - {run / "manifest.json"}:  # as an export leaves its manifest
        file.unlink()
    assert [record.folder for record in find_records([tmp_path])] == [probe]


def test_a_folder_of_other_records_is_refused_with_the_name_of_one(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "profile.json").write_text("{}")
    with pytest.raises(StallmarkError, match=r"holds no run: name one of its other records, such as .*/shop\.$"):
        find_records([tmp_path])


@pytest.mark.thorough
def test_a_day_is_read_in_pieces(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    for first in range(0, 150_000, 50_000):
        writer.append("errors", [error_row(1) | {"second": first + i} for i in range(50_000)])
    for _ in range(2):
        pieces = list(Record(writer.folder).batches("errors", ["second"]))
        assert len(pieces) > 1
        assert [s for piece in pieces for s in piece["second"].to_pylist()] == list(range(150_000))
        writer.close()
    assert not os.path.exists(writer.folder / "errors.arrows")


@pytest.mark.parametrize(("length", "kept"), [(3, True), (200, False)])
def test_a_table_stays_in_memory_when_all_values_of_its_lists_are_few(tmp_path, length, kept):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    lists = {f"{time}_{part}": [1] * length for time in ("latency", "service") for part in ("gaps", "counts")}
    row = dict.fromkeys(("committed", "rolled_back", "failed", "retries", "latency_us", "service_us"), 0)
    row |= {"load": "bank", "transaction": "transfer"} | lists
    writer.append("transactions", [row | {"second": second} for second in range(1000)])
    writer.close()
    record = Record(writer.folder)
    assert sum(batch.num_rows for batch in record.batches("transactions", ["second"])) == 1000
    assert bool(record._small) is kept


class FullDisk:
    """A file that takes so many bytes, and then no more."""

    def __init__(self, file, room: int):
        self.file, self.room = file, room

    def write(self, data) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        written = self.file.write(bytes(data[: self.room]))
        self.room -= written
        return written

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize(("file", "room"), [("_file", 0), ("_file", 7), ("_file", 100), ("_sums", 7)])
def test_a_disk_that_fills_in_the_middle_of_a_batch_loses_that_batch_and_says_so(tmp_path, file, room):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [error_row(1)])
    stream = writer._streams["errors"]
    setattr(stream, file, FullDisk(getattr(stream, file), room))
    with pytest.raises(OSError, match="No space left"):
        writer.append("errors", [error_row(2)])
    writer.append("errors", [error_row(3)])  # behind the torn batch nobody would find it
    writer.append("users", [dict.fromkeys(TABLES["users"].names, 1) | {"load": "bank"}])
    writer.close()
    record = Record(writer.folder)
    assert "table errors could not be written whole" in str(record.incomplete_because)
    assert read_back(record, "errors") == [error_row(1), error_row(2)][: 1 if file == "_file" else 2]
    assert record.table("users").num_rows == 1


def test_a_stream_that_cannot_be_read_whole_is_kept(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    stream = writer.folder / "errors.arrows"
    writer.append("errors", [error_row(1)])
    whole = stream.stat().st_size
    writer.append("errors", [error_row(2)])
    os.truncate(stream, whole)
    writer.close()
    record = Record(writer.folder)
    assert "errors.arrows is damaged" in str(record.incomplete_because)
    with pytest.raises(StallmarkError, match=r"errors\.arrows is damaged"):
        record.table("errors")
    sums_of(stream).unlink()  # as it says: what is left, unchecked
    assert read_back(Record(writer.folder), "errors") == [error_row(1)]


def test_an_experiment_never_takes_the_folder_of_another(tmp_path):
    """In one second, or after the clock was set back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "datetime", SimpleNamespace(now=lambda zone: datetime(2026, 11, 23, 12, tzinfo=zone)))
        made = []
        for _ in range(3):
            made.append(writer.experiment_folder(tmp_path, "mini"))
            made[-1].mkdir()
    assert [folder.name for folder in made] == [f"20261123-120000-mini{nth}" for nth in ("", "-2", "-3")]
