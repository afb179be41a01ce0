"""Transactions that waited or did not end when a run did: the record tells of which load they are."""

from types import SimpleNamespace

from support.manifests import a_manifest

from stallmark.experiment.user_run import _finish
from stallmark.record.manifest.course import LeftWaiting, Unheard
from stallmark.record.writer import RecordWriter

ARRIVALS, UNFINISHED = {"bank": 7, "mail": 0, None: 7}, {"bank": 0, "mail": 2}


def test_each_load_has_what_was_left_of_it(tmp_path):
    loads = [{"name": name, "kind": "users", "counts": []} for name in ("bank", "mail")]
    loads += [{"name": "scan", "kind": "raw", "counts": []}, {"name": "reports", "kind": "streams", "counts": []}]
    writer = RecordWriter(tmp_path / "run", a_manifest(loads=loads))
    drive = SimpleNamespace(
        finish=lambda: None,
        ended={},
        left_waiting=lambda load=None: LeftWaiting(arrivals=ARRIVALS[load]),
        unfinished=UNFINISHED.__getitem__,
        unheard=lambda: Unheard(unfinished=2),
        load_machines=[],
    )
    left = {"reports": {"left_waiting": LeftWaiting(arrivals=4), "given_up": 2}}
    beside = SimpleNamespace(ended={"scan": (3, "its disk is full")}, left=lambda name: left.get(name, {}))
    _finish(drive, beside, writer)  # type: ignore[arg-type]
    writer.close()
    bank, mail, scan, reports = writer.manifest.loads
    assert (bank.left_waiting.arrivals, bank.unfinished) == (7, 0)
    assert (mail.left_waiting.arrivals, mail.unfinished) == (0, 2)
    assert (scan.left_waiting.arrivals, scan.ended_s) == (0, 3)
    assert (reports.left_waiting.arrivals, reports.given_up) == (4, 2)
    assert writer.manifest.left_waiting.arrivals == 7
