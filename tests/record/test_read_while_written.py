"""A record that is read while its run goes on, and while it is closed: each look is of one state, and none fails."""

import threading
import time
from pathlib import Path

import pytest
from support.synthetic import Truth, make_run

from stallmark.analysis.experiment import summarise
from stallmark.record.reader import Record, find_records
from stallmark.record.writer import RecordWriter

SECONDS = 30


def write_again(whole: Record, folder: Path, started: threading.Event) -> None:
    """Write a record once more, a second of every table at a time, and close it."""
    tables = {name: whole.table(name) for name in whole.tables()}
    manifest = whole.manifest.changed(status="running", tables={})
    writer = RecordWriter(folder, manifest, {name: table.schema for name, table in tables.items()})
    for second in range(SECONDS):
        for name, table in tables.items():
            share = table.num_rows / SECONDS
            begin = round(second * share)
            writer.append(name, table.slice(begin, round((second + 1) * share) - begin).to_pylist())
            time.sleep(0.001)  # the reader has its turn between tables
        started.set()
    writer.close()


@pytest.mark.thorough
def test_a_run_is_read_at_any_moment(tmp_path):
    whole = Record(make_run(tmp_path / "whole" / "run", Truth(warm_up_s=3, measured_s=SECONDS - 3)))
    started = threading.Event()
    folder = tmp_path / "again" / "run"
    writing = threading.Thread(target=write_again, args=(whole, folder, started))
    writing.start()
    started.wait()
    looks = 0
    while writing.is_alive():
        [run] = summarise(find_records([folder])).runs
        assert {len(run.series.tps), len(run.series.read_ms), len(run.series.users)} == {len(run.series.second)}
        looks += 1
    writing.join()
    assert looks and whole.manifest.status == "complete"
    first, last = (summarise([Record(place)]).runs[0] for place in (whole.folder, folder))
    assert last.steps == first.steps
