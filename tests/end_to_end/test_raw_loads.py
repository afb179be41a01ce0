"""Raw loads beside users on an emulated array: told apart from the server, and gone with the run that had them."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.tool import Tool
from support.waiting import eventually

from stallmark.record.reader import Record

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not shutil.which("fio"), reason="There is no fio here."),
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"),
]

BLOCK = 262_144
LOADS: dict[str, Any] = {
    "workload": None, "users": None, "think_time": None,
    "loads": {
        "bank": {"workload": "bank", "scale": {"branches": 1}, "users": 2, "think_time": {"mean": "20ms"}},
        "scan": {"raw": "scan", "rate": "10 MB/s", "size": "32MiB"},
    },
    "emulated_array": {"data": {"spindles": 4, "read_ms": 2, "write_ms": 2, "sync_ms": 1, "mb_per_s": 200}},
}  # fmt: skip


def files(tool: Tool) -> list[Path]:
    return list(tool.home.rglob("stallmark-probe-*"))


def test_their_io_is_in_the_record_and_none_of_the_servers(shared: Tool) -> None:
    code, said = shared.run("run", shared.scenario(**LOADS, measure="4s"))
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


def test_nothing_is_left_of_them_after_a_kill(shared: Tool) -> None:
    command = shared.start("run", shared.scenario(**LOADS, measure="60s"))

    def at_work() -> bool:
        folders = [path.parent for path in shared.runs.rglob("raw_io.arrows")]
        return any(Record(folder).table("raw_io").num_rows for folder in folders)

    eventually(at_work, "raw reads in the record")
    assert len(files(shared)) == 1
    command.process.kill()
    shared.nothing_left()
    code, said = shared.run("run", shared.scenario(measure="1s"))
    assert code == 0, said
    assert not files(shared), "the next run removes the file, whatever it does"
