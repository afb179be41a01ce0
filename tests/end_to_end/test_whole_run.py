"""From nothing to a report, and again from the records alone."""

import json
import shutil

import pytest

from stallmark.driver.record import Record

DEMO = {
    "users": 4,
    "measure": "2s",
    "start_cache": "prefilled",
    "reset": "restore",
    "device": {"data": {"spindles": 8, "read_ms": 2, "write_ms": 2, "sync_ms": 1, "mb_per_s": 150}},
    "variants": [
        {"name": "slow", "buffer_pool": "8MiB"},
        {"name": "own disk", "buffer_pool": "50 %", "device": "bare"},
    ],
}


@pytest.fixture(scope="module")
def demo(shared):
    """The demo in small, once: (exit code, what was said, its folder)."""
    code, said = shared.run("run", shared.scenario(**DEMO), "--json")
    return code, said, shared.newest()


def test_the_demo_in_small_is_complete(demo, shared):
    code, said, folder = demo
    assert code == 0, said
    records = [Record(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    assert [record.manifest["variant"]["name"] for record in records] == ["slow", "own disk"]
    for record in records:
        manifest = record.manifest
        assert manifest["status"] == "complete" and record.incomplete_because is None
        assert manifest["conditions"] and all(condition["holds"] for condition in manifest["conditions"])
        assert sum(record.table("transactions")["committed"].to_pylist()) > 0
        assert record.table("server_io").num_rows > 0
        assert not list(record.folder.glob("*.arrows")), "closed records are Parquet"
    assert [record.manifest["device"]["emulated"] for record in records] == [True, False]
    assert records[0].manifest["memory"]["reached_bytes"] == 8 * 2**20


def test_json_is_all_there_is_on_standard_output(demo):
    _, said, folder = demo
    [line] = [line for line in said.splitlines() if line.startswith("{")]
    summary = json.loads(line)
    assert summary["emulated"] is True
    assert summary["report"] == str(folder / "report.html")
    assert len(summary["runs"]) == 2


def test_the_report_says_what_was_emulated(demo):
    page = (demo[2] / "report.html").read_text()
    assert "EMULATED" in page
    assert "<script src=" not in page and '<link rel="stylesheet"' not in page, "one self-contained file"


def test_the_records_alone_make_the_same_report(demo, fresh):
    kept = fresh.folder / "kept"
    shutil.copytree(demo[2], kept)
    (kept / "report.html").unlink()
    code, said = fresh.run("report", str(kept))
    assert code == 0, said
    assert not fresh.home.exists(), "no engine is needed"
    assert "EMULATED" in said and "slow" in said and "own disk" in said
    assert "EMULATED" in (kept / "report.html").read_text()


def test_restore_starts_every_variant_from_the_same_database(demo):
    records = [Record(path) for path in sorted(demo[2].iterdir()) if path.is_dir()]
    first, second = (record.manifest["database"] for record in records)
    assert first["bytes_before"] == second["bytes_before"] < first["bytes_after"]


def test_poisson_arrivals_at_their_rate_and_a_variant_that_continues(shared):
    path = shared.scenario(
        arrivals={"kind": "poisson", "rate": 200},
        users=4,
        measure="2s",
        variants=[{"name": "first"}, {"name": "second"}],
    )
    code, said = shared.run("run", path)
    assert code == 0, said
    first, second = (manifest["database"] for manifest in shared.manifests())
    assert first["bytes_before"] < first["bytes_after"] <= second["bytes_before"]
    for folder in (path for path in shared.newest().iterdir() if path.is_dir()):
        rows = Record(folder).table("transactions").to_pylist()
        assert (
            300 < sum(row["committed"] for row in rows if row["second"] < 2) < 500
        )  # 400 ± 20, and a slow start
