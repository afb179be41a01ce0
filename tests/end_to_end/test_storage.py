"""Storage of the embedded engine: arrays that an operator changes, emulated ones, raw loads beside users, traces."""

import json
import os
import pty
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from support.tool import Tool
from support.waiting import eventually

from stallmark.analysis.cause import explain
from stallmark.analysis.cause_evidence import ChangeKind, ComparedFigure, Storage
from stallmark.analysis.experiment import summarise
from stallmark.analysis.step_summary import Source
from stallmark.record.reader import Record, find_records

needs_fio = pytest.mark.skipif(not shutil.which("fio"), reason="There is no fio here.")


@needs_fio
def test_the_array_is_made_what_each_variant_says_until_the_operator_says_no(shared):
    """Measurements until then are kept; what was typed before he was asked is no answer."""
    array = shared.folder / "array"
    reconfigure = f"open({str(array)!r}, 'a').write('disks'); print('pool 0: no flash')"
    path = shared.scenario(
        array={"raid": "RAID 10"},
        precondition={"size": "32MiB", "round": "1s", "rounds": 1},
        variants=[
            {"name": "disks", "before": {"command": [sys.executable, "-c", reconfigure]}},
            {"name": "cache", "before": {"ask": "Add the flash as a cache."}},
        ],
    )
    operator, terminal = pty.openpty()
    command = shared.start("run", path, stdin=terminal)
    os.close(terminal)
    try:
        os.write(operator, b"\n")
        command.wait_for("cache: Add the flash as a cache.")
        os.write(operator, b"nearly\nno\n")
        code = command.wait()
    finally:
        os.close(operator)
    said = " ".join(command.text.split())
    assert code == 4 and "Traceback" not in said
    assert "The operator answered 'no' to 'Add the flash as a cache.' (cache)" in said
    [disks] = shared.manifests()
    assert array.read_text() == "disks" and disks.hook.output == "pool 0: no flash"
    assert disks.status == "complete" and len(disks.precondition.rounds_ms) == 1
    page = (shared.newest() / "report.html").read_text()
    assert disks.ended.before == "cache"
    assert "The experiment ended before “cache”: The operator answered" in page
    assert "pool 0: no flash" in page and "was filled and overwritten at random" in page
    shared.nothing_left()


# A cause that is known because it was put there: a device's delay, which a probe of the storage meets as well


SLOW_MS, FAST_MS = 30, 4


def variant(read_ms: float) -> dict[str, object]:
    """Many spindles, so that hardly any I/O queues and a read takes what it is served; half of the accounts in the
    pool."""
    data = {"spindles": 64, "read_ms": read_ms, "write_ms": 0, "sync_ms": 0, "mb_per_s": 1000}
    return {"name": f"{read_ms} ms", "buffer_pool": "8MiB", "emulated_array": {"data": data}}


@needs_fio
def test_an_injected_delay_is_probed_found_blamed_on_reads_and_measured(shared: Tool):
    probe = {"size": "32MiB", "seconds": "1s", "patterns": ["8k-random-read"], "outstanding": [1]}
    measured = {"start_cache": "prefilled", "users": 2, "think_time": None, "warm_up": "1s", "measure": "3s"}
    variants = [variant(SLOW_MS), variant(FAST_MS)]
    code, said = shared.run("run", shared.scenario(variants=variants, probe=probe, **measured))
    assert code in (0, 4), said
    slow, fast = summarise(records := find_records([shared.newest()])).steps
    cause = explain([slow], [fast])
    assert cause.storage in (Storage.CAUSE, Storage.ONE_OF_SEVERAL), cause.finding  # beside a busy CPU one of several
    assert cause.finding.facts["io_reason"].kind == ChangeKind.READ_TIME
    [found] = [one for one in cause.evidence if (one.figure, one.source) == (ComparedFigure.READ_TIME, Source.DEVICE)]
    # benchmarks/causes.py measures how exactly; a busy machine wakes late who waits for 12 ms.
    assert found.change == pytest.approx(FAST_MS - SLOW_MS, rel=0.3)
    assert max(cause.parts[1:], key=lambda part: part.share or 0.0).part == "read"
    assert all(step.cause and step.cause.predictions for step in (slow, fast)), "faster reads can be asked about"
    for record, read_ms in zip(records, (SLOW_MS, FAST_MS), strict=True):
        for probed in (record.manifest.probes.before, record.manifest.probes.after):
            [alone] = probed.steps
            assert probed.emulated and alone.mean_ms >= read_ms
    page = (shared.newest() / "report.html").read_text()
    assert "EMULATED" in page and "8 KiB random read" in page


# Raw loads beside users: told apart from the server, and gone with the run that had them


BLOCK = 262_144
LOADS: dict[str, Any] = {
    "workload": None, "users": None, "think_time": None,
    "loads": {
        "bank": {"workload": "bank", "scale": {"branches": 1}, "users": 1, "think_time": {"mean": "50ms"}},
        "scan": {"raw": "scan", "rate": "10 MB/s", "size": "32MiB"},
    },
    "emulated_array": {"data": {"spindles": 4, "read_ms": 2, "write_ms": 2, "sync_ms": 1, "mb_per_s": 200}},
}  # fmt: skip


def files(tool: Tool) -> list[Path]:
    return list(tool.home.rglob("stallmark-probe-*"))


@needs_fio
def test_their_io_is_in_the_record_and_nothing_is_left_of_them_also_after_a_kill(shared: Tool) -> None:
    command = shared.start("run", shared.scenario(**LOADS, measure="60s"))

    def at_work() -> bool:
        folders = [path.parent for path in shared.runs.rglob("raw_io.arrows")]
        return any(Record(folder).table("raw_io").num_rows for folder in folders)

    eventually(at_work, "raw reads in the record")
    assert len(files(shared)) == 1
    command.process.kill()
    shared.nothing_left()
    code, said = shared.run("run", shared.scenario(**LOADS, measure="3s"))
    assert code == 0, said
    record = Record(shared.newest() / "01-only")
    [scan] = [load for load in record.manifest.loads if load.kind == "raw"]
    assert scan.raw and scan.raw.emulated and scan.ended_because is None and not files(shared)
    rows = record.table("raw_io").to_pylist()
    reads = sum(row["reads"] for row in rows)
    assert reads > 0 and {(row["load"], row["cell"]) for row in rows} == {("scan", 1)}
    assert sum(row["read_bytes"] for row in rows) == reads * BLOCK
    device = [row for row in record.table("device").to_pylist() if row["entity"] == "data"]
    of_scan = device[-1]["raw_read_bytes"] - device[0]["raw_read_bytes"]
    assert 0 < of_scan <= reads * BLOCK, "the last sample is before the end"
    assert device[-1]["raw_reads"] * BLOCK == device[-1]["raw_read_bytes"], "reads of the server are not among them"


# A load is traced, and `characterise` tells of its records alone


def test_runs_are_traced_on_an_emulated_array_too_and_their_records_tell_the_same_again(tool: Tool):
    if why := tool.cannot("tracing"):
        code, said = tool.run("run", tool.scenario(observe=["io_trace"]))
        assert code == 3 and why in " ".join(said.split())
        return
    slow = {"data": {"spindles": 8, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 150}}
    variants = [{"name": "8", "buffer_pool": "8MiB"}, {"name": "9", "buffer_pool": "9MiB", "emulated_array": slow}]
    code, said = tool.run("run", tool.scenario(observe=["io_trace"], reset="restore", measure="5s", variants=variants))
    assert code == 0, said
    small, emulated = (Record(run).table("io_trace") for run in sorted(tool.newest().glob("0*")))
    reads = emulated.filter(pc.equal(emulated["op"], 0))["took_us"]
    assert pc.approximate_median(reads).as_py() >= 1000  # the trace sees what a caller waits for
    found, again = (characterised(tool, str(tool.newest())) for _ in range(2))
    assert len(found["runs"]) == 2 and again == found
    found = characterised(tool, str(next(tool.newest().glob("01-*"))))
    trace = found["trace"]
    assert found["workload"] == "bank" and found["published"] == [] and trace["lost"] == 0
    assert trace["reads"] > 30 and trace["writes"] > 0
    assert pc.sum(pc.equal(small["op"], 0)).as_py() >= trace["reads"]
    tables = {one["table"]: one for one in trace["tables"]}
    assert max(tables, key=lambda name: tables[name]["reads"]) == "bank.accounts" and None not in tables
    assert 0 < tables["bank.accounts"]["index_share"] < 1
    assert sum(one["share"] for one in trace["tables"]) == 1 or len(tables) > 1
    shares = [one["least"] for one in trace["flash"]]
    assert shares == sorted(shares) and all(one["least"] <= one["most"] for one in trace["flash"])


def characterised(tool: Tool, folder: str) -> dict:
    code, said = tool.run("characterise", folder, "--json")
    assert code == 0, said
    return json.loads(said.splitlines()[-1])
