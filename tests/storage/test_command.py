"""fio's jobs for raw loads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.record.manifest.workload import RawPlan
from stallmark.storage.fio import SKIP_BYTES, WEB, find_pattern, with_least_block
from stallmark.storage.programs import command

SIZE = 2**28


def plan(pattern: str, outstanding: int = 1, **rate) -> RawPlan:
    kind = find_pattern(pattern)
    return RawPlan(
        pattern=kind.name,
        operation=kind.operation,
        order=kind.order,
        blocks=dict(kind.blocks),
        outstanding=outstanding,
        size_bytes=SIZE,
        **rate,
    )


def jobs(asked: RawPlan, how: str, blocks: dict[int, float] | None = None) -> tuple[dict[str, str], list[dict]]:
    """Return the common options, and those of each job."""
    order = command("fio", how, Path("/mnt/a:b/file"), asked, blocks or asked.blocks, 7)
    common: dict[str, str] = {}
    found: list[dict[str, str]] = []
    for option in order[1:]:
        name, _, value = option.removeprefix("--").partition("=")
        if name == "name":
            found.append({})
        (found[-1] if found else common)[name] = value
    return common, found


def test_a_scan_is_one_thread_in_order():
    common, [job] = jobs(plan("scan"), "libaio")
    assert (common["rw"], common["bs"], common["direct"], common["iodepth"]) == ("read", "262144", "1", "1")
    assert (job["numjobs"], common["filename"]) == ("1", "/mnt/a\\:b/file")
    assert "rate" not in job and "offset_increment" not in common


def test_it_goes_on_until_it_is_stopped_and_reports_meanwhile():
    common, _ = jobs(plan("scan"), "libaio")
    assert common["status-interval"] == "1" and common["output-format"] == "json+" and common["time_based"] == "1"
    assert int(common["runtime"].removesuffix("s")) >= 30 * 86400


def test_outstanding_ios_are_one_threads_or_a_thread_each():
    common, [job] = jobs(plan("web", 16), "libaio")
    assert (common["iodepth"], job["numjobs"]) == ("16", "1")
    common, [job] = jobs(plan("web", 16), "psync")
    assert (common["iodepth"], job["numjobs"]) == ("1", "16")


def test_mixed_sizes_are_whole_per_cents():
    common, _ = jobs(plan("web"), "libaio")
    split = [part.split("/") for part in common["bssplit"].split(":")]
    assert {int(size): int(share) for size, share in split} == {s: round(100 * part) for s, part in WEB.blocks.items()}
    common, _ = jobs(plan("web"), "libaio", with_least_block(WEB.blocks, 4096))
    assert common["bssplit"].startswith("4096/68:8192/15:")


@pytest.mark.parametrize(("pattern", "outstanding", "threads"), [("scan", 4, 4), ("web", 16, 1)])
def test_bytes_per_second_are_of_all_threads_together(pattern, outstanding, threads):
    _, [job] = jobs(plan(pattern, outstanding, rate_bytes=100_000_000), "libaio")
    assert (job["numjobs"], job["rate"]) == (str(threads), str(100_000_000 // threads))


@given(st.integers(1, 64), st.sampled_from(["scan", "1m-sequential-write", "web", "8k-random-write"]))
def test_all_stay_behind_the_mark_and_within_the_file(outstanding, pattern):
    common, [job] = jobs(plan(pattern, outstanding), "psync")
    length, apart = int(common["size"]), int(common.get("offset_increment", 0))
    assert int(common["offset"]) == SKIP_BYTES and (apart in (0, length)) and length > 0
    threads = int(job["numjobs"]) if apart else 1
    assert SKIP_BYTES + (threads - 1) * apart + length <= SIZE


def test_written_data_compress_as_databases_do():
    common, _ = jobs(plan("8k-random-write"), "psync")
    assert common["buffer_compress_percentage"] == "50"
    assert "buffer_compress_percentage" not in jobs(plan("web"), "psync")[0]
