"""A record whose disk fills, or whose folder can no longer be written: it says so itself, as far as that can be."""

import errno
import os
import resource
import shutil

import pytest
from support.manifests import a_manifest
from support.small_disks import disk_that_fails, fail, fill, small_disk

from stallmark.record.files import RESERVED_BYTES
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

ROW = dict.fromkeys(("load", "transaction", "error_class", "code", "message"), "x" * 2000) | {
    "second": 1, "attempts": 1, "given_up": 0,
}  # fmt: skip


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 16) as place:
        yield place


def until_full(writer: RecordWriter) -> OSError:
    with pytest.raises(OSError) as caught:
        for _ in range(1000):
            writer.append("errors", [ROW] * 50)
    return caught.value


def test_a_disk_that_fills_is_said_with_the_file_and_the_record_closes_in_what_was_kept(disk):
    writer = RecordWriter(disk / "run", a_manifest(notes=["n" * 100_000]))
    full = until_full(writer)
    assert (full.errno, full.filename) == (errno.ENOSPC, str(disk / "run" / "errors.arrows"))
    fill(disk)
    assert writer.failed and "No space left on device" in writer.failed
    why = f"{full.filename}: No space left on device"
    assert writer.close(why) == why
    record = Record(disk / "run")
    assert (record.manifest.status, record.incomplete_because) == ("incomplete", why)
    assert record.table("errors").num_rows > 0


def test_a_table_that_failed_is_the_reason_where_nobody_gives_another(disk):
    writer = RecordWriter(disk / "run", a_manifest())
    until_full(writer)
    because = writer.close()
    assert because and "errors" in because and because == Record(disk / "run").incomplete_because


def test_a_record_that_ends_well_gives_its_reserve_back(disk):
    free = shutil.disk_usage(disk).free
    writer = RecordWriter(disk / "run", a_manifest())
    assert free - shutil.disk_usage(disk).free >= RESERVED_BYTES
    assert not [path for path in writer.folder.iterdir() if path.suffix not in (".arrows", ".sums", ".json")]
    assert writer.close() is None
    assert free - shutil.disk_usage(disk).free < RESERVED_BYTES / 4


def test_no_record_is_begun_on_a_disk_that_could_not_close_it(disk):
    fill(disk)
    (disk / "filler").write_bytes(b"")
    os.truncate(disk / "filler", 0)
    with (disk / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - RESERVED_BYTES // 2)
    with pytest.raises(OSError, match="No space left on device") as caught:
        RecordWriter(disk / "run", a_manifest())
    assert caught.value.filename == str(disk / "run")


def test_a_disk_that_fails_is_the_reason_that_is_returned_and_the_record_is_called_cut(tmp_path):
    with disk_that_fails(tmp_path / "disk", 24) as disk:
        writer = RecordWriter(disk / "run", a_manifest())
        fail(disk)
        failed = until_full(writer)
        assert failed.errno == errno.EROFS
        because = writer.close(f"{failed}")
        assert because and because.startswith(f"{failed}; its record could not be closed ({disk / 'run'}")
        said = str(Record(disk / "run").incomplete_because)
        assert "was cut" in said and "could not write it" in said  # which of the two nobody can know


def test_a_folder_that_is_gone_is_the_reason_that_is_returned(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    shutil.rmtree(writer.folder)
    because = writer.close("it is enough")
    assert because and because.startswith("it is enough; ") and str(tmp_path / "run" / "manifest.json") in because
    assert not writer.folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can become somebody whom permissions keep out.")
def test_a_folder_that_takes_no_new_file_has_the_reason_in_its_manifest(tmp_path):
    nobody = 65534
    for folder in (tmp_path, *tmp_path.parents[:3]):  # down to where all tests have theirs, also of one of many workers
        folder.chmod(0o711)
    (tmp_path / "out").mkdir()
    os.chown(tmp_path / "out", nobody, nobody)
    os.seteuid(nobody)
    try:
        writer = RecordWriter(tmp_path / "out" / "run", a_manifest(notes=["n" * 10_000]))
        writer.append("errors", [ROW])
        writer.folder.chmod(0o555)
        assert writer.close("it is enough") == "it is enough"
    finally:
        os.seteuid(0)
    record = Record(writer.folder)
    assert (record.manifest.status, record.incomplete_because) == ("incomplete", "it is enough")
    assert record.table("errors").num_rows == 1


def test_without_a_mount_a_limit_stands_for_the_full_disk(tmp_path):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        failed = until_full(writer)
        assert failed.errno == errno.EFBIG
        assert writer.close(f"{failed}") == f"{failed}"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert Record(writer.folder).manifest.status == "incomplete"


@pytest.mark.parametrize("how", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("elsewhere"))])
def test_a_folder_that_is_taken_away_takes_no_more_rows(tmp_path, how):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    writer.append("errors", [ROW])
    how(writer.folder)
    with pytest.raises(FileNotFoundError) as caught:
        writer.append("errors", [ROW])
    assert caught.value.filename == str(tmp_path / "run" / "errors.arrows")
    because = writer.close(f"{caught.value}")
    assert because and "could not be closed" in because
    assert not writer.folder.exists()
