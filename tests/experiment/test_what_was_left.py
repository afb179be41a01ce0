"""Transactions that waited or did not end when a run did: the record tells of which load they are."""

from types import SimpleNamespace

from support.manifests import a_manifest

from stallmark.experiment.user_run import _finish
from stallmark.record.manifest.course import LeftWaiting, Unheard
from stallmark.record.writer import RecordWriter

ARRIVALS, UNFINISHED = {"bank": 7, "mail": 0, None: 7}, {"bank": 0, "mail": 2}


def test_each_load_has_what_was_left_of_it(tmp_path):
    loads = [{"name": name, "kind": "users", "counts": []} for name in ("bank", "mail")]
    writer = RecordWriter(tmp_path / "run", a_manifest(loads=[*loads, {"name": "scan", "kind": "raw", "counts": []}]))
    drive = SimpleNamespace(
        finish=lambda: None,
        ended={},
        left_waiting=lambda load=None: LeftWaiting(arrivals=ARRIVALS[load]),
        unfinished=UNFINISHED.__getitem__,
        unheard=lambda: Unheard(unfinished=2),
        load_machines=[],
    )
    _finish(drive, SimpleNamespace(ended={"scan": (3, "its disk is full")}), writer)  # type: ignore[arg-type]
    writer.close()
    bank, mail, scan = writer.manifest.loads
    assert (bank.left_waiting.arrivals, bank.unfinished) == (7, 0)
    assert (mail.left_waiting.arrivals, mail.unfinished) == (0, 2)
    assert (scan.left_waiting.arrivals, scan.ended_s) == (0, 3)
    assert writer.manifest.left_waiting.arrivals == 7
