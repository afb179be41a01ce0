"""The record of a probe: read as it was written, also if it was cut."""

import pytest
from support.probes import NOISE, STREAM, of_disks, probe, step, write_probe

from stallmark.errors import StallmarkError
from stallmark.probe.record import read_probe
from stallmark.probe.runner import ProbePlace, record_probe
from stallmark.probe.summary import SaturationKind, summarise_probes
from stallmark.record.manifest.course import Scenario, Variant
from stallmark.record.manifest.storage import Asked
from stallmark.record.reader import find_records, other_kind
from stallmark.storage.fio import PATTERNS
from stallmark.storage.probe_file import LEAST_BYTES, ProbeFile

READ = Asked(PATTERNS["8k-random-read"], 8)


def test_a_record_is_read_as_it_was_written(tmp_path):
    result = probe(*of_disks(4, 5), step(1, 90, pattern=STREAM, scatter=NOISE), emulated=True)
    write_probe(tmp_path, "disks", result)
    [found] = find_records([tmp_path])
    assert read_probe(found) == result


def test_a_file_of_its_name_makes_no_record_of_a_folder(tmp_path):
    """`stallmark report --json > runs/probe.json`"""
    write_probe(tmp_path, "disks", probe(*of_disks(4, 5)))
    (tmp_path / "probe.json").write_text("{}")
    assert other_kind(tmp_path) is None and len(find_records([tmp_path])) == 1


def test_a_record_that_was_cut_keeps_what_was_measured(fake, monkeypatch):
    def fail(number, step):
        monkeypatch.setenv("FAIL", "fio: the cable is out")

    file = ProbeFile(fake / "file", LEAST_BYTES, ours=True)
    place = ProbePlace("e", 1, Scenario(name="probe"), Variant(name="array"))
    with pytest.raises(StallmarkError, match="cable"):
        record_probe(fake / "runs" / "01", place, file, (READ, READ), 1, "2026-11-22T08:00:00", None, fail)
    [record] = find_records([fake / "runs"])
    assert record.kind == "probe" and "cable" in (record.incomplete_because or "")
    assert [step.iops for step in read_probe(record).steps] == [8000]
    [cut] = [one for one in summarise_probes([record]).cautions if one.kind is SaturationKind.INCOMPLETE]
    assert cut.facts["probe"] == "array" and "fio failed" in cut.facts["said"]
