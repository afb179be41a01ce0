"""From nothing to a report, and again from the records alone."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.tool import Tool

from stallmark.record.devices import is_emulated
from stallmark.record.manifest.workload import Counted
from stallmark.record.reader import Record, find_records
from stallmark.transactions.bank import WORKLOAD as BANK

from .conftest import ENGINES, SHARED

DATABASE = ("bank", "--scale", "branches=1")
DEMO = {"users": 4, "measure": "2s", "start_cache": "prefilled", "reset": "restore"}
ON = {
    "embedded": {
        "emulated_array": {
            "data": {
                **{"spindles": 8, "read_ms": 2, "write_ms": 2, "sync_ms": 1, "mb_per_s": 150},
                "cache": {"size": "64MiB"},
            }
        },
        "variants": [
            {"name": "small", "buffer_pool": "8MiB"},
            {"name": "large", "buffer_pool": "50 %", "emulated_array": "bare"},
        ],
    },
    "sqlserver": {"variants": [{"name": "small", "buffer_pool": "2GiB"}, {"name": "large", "buffer_pool": "2500MiB"}]},
}
SMALL_BYTES = {"embedded": 8 << 20, "sqlserver": 2 << 30}


@dataclass
class Demo:
    engine: str
    tool: Tool
    code: int
    said: str
    folder: Path

    @property
    def records(self) -> list[Record]:
        return [Record(path) for path in sorted(self.folder.iterdir()) if path.is_dir()]

    @property
    def is_emulated(self) -> bool:
        return self.engine == "embedded"


@pytest.fixture(scope="module", params=ENGINES)
def demo(request) -> Demo:
    """The demo in small, once."""
    tool = request.getfixturevalue(SHARED[request.param])
    if why := tool.cannot("backup", "memory"):
        pytest.skip(f"On this server {why}.")
    code, said = tool.run("run", tool.scenario(**DEMO, **ON[request.param]), "--json")
    return Demo(request.param, tool, code, said, tool.newest())


def test_the_demo_in_small_is_complete(demo):
    assert demo.code == 0, demo.said
    assert [record.manifest.variant.name for record in demo.records] == ["small", "large"]
    for record in demo.records:
        manifest = record.manifest
        assert manifest.status == "complete" and record.incomplete_because is None
        assert manifest.conditions and all(condition.holds for condition in manifest.conditions)
        assert sum(record.table("transactions")["committed"].to_pylist()) > 0
        assert record.table("server_io").num_rows > 0
        assert not list(record.folder.glob("*.arrows")), "closed records are Parquet"
    if demo.is_emulated:
        assert [is_emulated(record.manifest) for record in demo.records] == [True, False]
    assert demo.records[0].manifest.memory.reached_bytes <= SMALL_BYTES[demo.engine]


def test_json_is_all_there_is_on_standard_output(demo):
    [line] = [line for line in demo.said.splitlines() if line.startswith("{")]
    summary = json.loads(line)
    assert summary["emulated"] is demo.is_emulated
    assert summary["report"] == str(demo.folder / "report.html")
    assert len(summary["runs"]) == 2


def test_the_report_says_what_was_emulated(demo):
    page = (demo.folder / "report.html").read_text()
    assert ("EMULATED" in page) is demo.is_emulated
    assert ("Use of flash" in page) is ("Active set over time" in page) is demo.is_emulated
    assert "<script src=" not in page and '<link rel="stylesheet"' not in page, "one self-contained file"


def test_the_records_alone_make_the_same_report(demo, fresh):
    kept = fresh.folder / "kept"
    shutil.copytree(demo.folder, kept)
    (kept / "report.html").unlink()
    code, said = fresh.run("report", str(kept))
    assert code == 0, said
    assert not fresh.home.exists(), "no engine is needed"
    assert "small" in said and "large" in said
    assert ("EMULATED" in said) is ("EMULATED" in (kept / "report.html").read_text()) is demo.is_emulated


def test_restore_starts_every_variant_from_the_same_database(demo):
    first, second = (record.manifest.database for record in demo.records)
    assert first.bytes_before == second.bytes_before < first.bytes_after


def test_a_database_is_built_recognised_driven_and_whole(new_tool):
    assert "created" in new_tool.run("build", *DATABASE)[1]
    code, said = new_tool.run("build", *DATABASE)
    assert code == 0 and "reused" in said
    warm_up_s = 5 if new_tool.server else 1  # each new session has its first calls compiled
    path = new_tool.scenario(
        arrivals={"kind": "poisson", "rate": 200},
        users=4,
        warm_up=f"{warm_up_s}s",
        measure="2s",
        variants=[{"name": "first"}, {"name": "second"}],
    )
    code, said = new_tool.run("run", path)
    assert code in (0, 4) and "Report:" in said, said
    first, second = (manifest.database for manifest in new_tool.manifests())
    if first.bytes_before:  # 0 where the server does not tell
        assert first.bytes_before < first.bytes_after <= second.bytes_before, "the second continues"
    before = 0
    for record in find_records([new_tool.newest()]):
        manifest = record.manifest
        assert manifest.status == "complete", manifest.incomplete_because
        assert manifest.conditions and all(condition.holds for condition in manifest.conditions)
        for name, collector in manifest.collectors.items():
            assert collector.unavailable or record.table(name).num_rows >= 0
        rows = record.table("transactions").to_pylist()
        # Over the whole time, cool-down included, nothing is lost by arrivals that a busy machine is late with.
        lasted_s = max(row["second"] for row in rows if row["committed"]) + 1
        committed = sum(row["committed"] for row in rows)
        assert lasted_s >= warm_up_s + 2
        assert 0.7 < committed / (200 * lasted_s) < 1.25  # ± 1 in 20, and a last second that is not whole
        told = manifest.workload
        assert (told.name, told.scale, told.seed, told.version) == ("bank", {"branches": 1}, 1, BANK.version)
        assert [(one.name, one.cards, one.source) for one in told.transactions] == [("transfer", 1, "users")]
        assert told.counted == {"transfer": Counted(before=before, after=before + committed)}
        assert told.primary is told.nominal_rate is told.opening is None and told.background_sessions == 0
        before += committed
    code, said = new_tool.run("check", *DATABASE)
    assert code == 0 and "BROKEN" not in said
