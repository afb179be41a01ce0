"""The files of a record: damage is found by checksums, and no link leads out of its folder."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.manifests import a_manifest, changed
from support.synthetic import Truth, make_run
from support.tables import get, put

from stallmark.cli.main import main
from stallmark.errors import StallmarkError
from stallmark.record.files import CHECKSUM, replacing
from stallmark.record.manifest import read_manifest
from stallmark.record.reader import Record, find_records
from stallmark.record.schema import ERRORS
from stallmark.record.table_file import remove
from stallmark.record.writer import RecordWriter, experiment_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", Truth(measured_s=10))


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file outside of the record."""
    file = tmp_path / "private"
    file.write_text("as it was")
    return file


def invoke(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.output


def test_a_manifest_whose_values_changed_is_refused_and_one_laid_out_anew_is_not(run):
    path = run / "manifest.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found))
    assert read_manifest(run).workload.name == "bank"
    path.write_text(json.dumps(found | {"repeat": 2}))
    with pytest.raises(StallmarkError, match="not as it was written"):
        read_manifest(run)
    del found[CHECKSUM]
    path.write_text(json.dumps(found | {"repeat": 2}))  # as the sentence says
    assert read_manifest(run).repeat == 2


def test_the_pages_of_a_table_have_checksums_that_are_verified(tmp_path):
    """Where the manifest does not know the file: of a run that was killed while its record was closed."""
    writer = RecordWriter(tmp_path / "run", a_manifest())
    put(writer.folder, "errors", get(make_run(tmp_path / "other", Truth(failed_per_second=5)), "errors"))
    changed(writer.folder, tables={})
    remove(writer.folder / "errors.arrows")
    path = writer.folder / "errors.parquet"
    rows = Record(writer.folder).table("errors")
    start = pq.read_metadata(path).row_group(0).column(ERRORS.names.index("attempts")).data_page_offset
    content = bytearray(path.read_bytes())
    assert rows.num_rows and content[start]
    page = content.index(b"\x28\xb5\x2f\xfd", start)  # where zstd begins
    content[page + 12] ^= 4
    path.write_bytes(content)
    for read in (
        lambda: Record(writer.folder).table("errors"),
        lambda: list(Record(writer.folder).batches("errors", ["attempts"])),
    ):
        with pytest.raises(StallmarkError, match=r"errors\.parquet is damaged \(.*(?i:crc)"):
            read()


def test_a_table_that_is_not_of_the_record_is_not_read(run):
    users = (run / "users.parquet").read_bytes()
    (run / "raw_io.parquet").write_bytes(users)
    assert Record(run).table("raw_io").num_rows == 0 and "raw_io" not in Record(run).tables()
    (run / "users.parquet").unlink()
    with pytest.raises(StallmarkError, match=r"users\.parquet is missing"):
        Record(run).table("users")


@pytest.mark.parametrize("name", ["manifest.json", "transactions.parquet", "waits.arrows", "waits.sums"])
def test_a_link_in_a_record_is_not_followed(run, tmp_path, name):
    other = make_run(tmp_path / "other", Truth(measured_s=10, cut_at=8 if "waits" in name else None))
    if "waits" in name:
        run = make_run(tmp_path / "cut", Truth(measured_s=10, cut_at=8))
    (run / name).unlink()
    (run / name).symlink_to(other / name)
    code, said = invoke("report", run)
    assert code == 3 and "is a link" in said


def test_a_pipe_in_a_record_is_not_waited_for(run):
    (run / "transactions.parquet").unlink()
    os.mkfifo(run / "transactions.parquet")
    code, said = invoke("report", run)
    assert code == 3 and "is not a file" in said


def test_a_folder_of_runs_that_leads_elsewhere_is_refused(run, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "01-x").symlink_to(run)
    with pytest.raises(StallmarkError, match="leads out of"):
        find_records([tmp_path / "runs"])
    assert find_records([tmp_path / "runs" / "01-x"])[0].manifest.workload.name == "bank"


def test_a_report_is_written_through_no_link(run, private, tmp_path):
    names = ["run-report.html", "run-report.html.new", f"run-report.html.{os.getpid()}.new"]
    for name in names:
        (tmp_path / name).symlink_to(private)
    code, said = invoke("report", run)
    assert code == 0, said
    assert private.read_text() == "as it was"
    page = tmp_path / "run-report.html"
    assert not page.is_symlink() and page.stat().st_size > 10_000


def test_an_attachment_is_written_through_no_link(run, private, tmp_path):
    file = tmp_path / "array.csv"
    rows = [f"2025-11-21T10:01:{second:02d}Z,{second}" for second in range(15)]
    file.write_text("\n".join(["time,IOPS", *rows]))
    for name in ("external_array.parquet", "external_array.parquet.new", "manifest.json.new"):
        (run / name).symlink_to(private)
    code, said = invoke("attach", run, file)
    assert code == 0, said
    assert private.read_text() == "as it was" and not (run / "external_array.parquet").is_symlink()
    assert Record(run).table("external_array").num_rows == 15


@pytest.mark.parametrize("slug", ["../../private", "a/b", "", "..", "ä"])
def test_a_name_in_the_manifest_leads_nowhere(run, slug):
    found = json.loads((run / "manifest.json").read_text())
    entry = {
        "name": "array", "file": "a.csv", "format": "csv", "time_zone": "UTC", "offset_s": 0, "samples": 2,
        "span": [found["started"]] * 2, "interval_s": 1, "counters": 1,
    }  # fmt: skip
    del found[CHECKSUM]
    for damaged in (found | {"external": {slug: entry}}, found | {"tables": {slug: {"bytes": 1, "crc32": 1}}}):
        (run / "manifest.json").write_text(json.dumps(damaged))
        with pytest.raises(StallmarkError, match="is damaged"):
            Record(run)


def test_what_cannot_be_written_leaves_what_was_there_and_no_draft(private):
    with pytest.raises(OSError, match="full"), replacing(private) as file:
        file.write(b"half")
        raise OSError("full")
    assert private.read_text() == "as it was" and list(private.parent.iterdir()) == [private]


def test_a_draft_of_a_process_that_is_gone_goes_with_the_next_one_and_no_others(tmp_path):
    path = tmp_path / "report.html"
    with replacing(path) as file:
        [draft] = tmp_path.iterdir()
        file.write(b"first")
    here, machine = draft.name.removesuffix(".new").rpartition("-")[0], draft.name.split(".")[2].partition("-")[0]
    with subprocess.Popen(["true"]) as gone:
        pass
    left, others = tmp_path / f"{here}-{gone.pid}.new", [tmp_path / f"{here}-{os.getppid()}.new"]
    others += [tmp_path / left.name.replace(machine, "elsewhere"), tmp_path / "a.new"]
    left_too = tmp_path / f"other-{left.name}"
    for one in (left, left_too, *others):
        one.touch()
    with replacing(path) as file:
        file.write(b"second")
    assert path.read_bytes() == b"second" and all(one.exists() for one in others)
    assert not left.exists() and not left_too.exists()
    run, linked, elsewhere = tmp_path / "runs" / "1" / "01", tmp_path / "runs" / "1" / "02", tmp_path / "elsewhere"
    run.mkdir(parents=True)
    elsewhere.mkdir()
    linked.symlink_to(elsewhere)
    (run / left.name).touch()
    (elsewhere / left.name).touch()
    experiment_folder(tmp_path / "runs", "next")
    assert not (run / left.name).exists() and (elsewhere / left.name).exists()


def test_a_disk_that_fills_is_said_of_the_file(tmp_path):
    path = tmp_path / "report.html"
    with pytest.raises(OSError) as full, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert full.value.filename == str(path) and list(tmp_path.iterdir()) == []
