"""fio's jobs, and what is understood of its answer."""

import json
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import Asked
from stallmark.storage import fio
from stallmark.storage.fio import PATTERNS

READ, WRITE = PATTERNS["8k-random-read"], PATTERNS["256k-sequential-write"]


def options(asked: Asked, how: str, size: int = 2**28) -> dict[str, str]:
    order = fio.command("fio", Path("/mnt/a:b/file"), size, asked, 2.5, how, Path("/tmp/scratch"), 7)
    return dict(option.removeprefix("--").split("=", 1) for option in order[1:])


def answer(ios: int = 2000, error: int = 0, **more) -> str:
    """Return what fio 3.33 wrote, without what is not read."""
    done = {
        "io_bytes": ios * 8192,
        "runtime": 1001,
        "total_ios": ios,
        "lat_ns": {"mean": 4_000_000.0, "bins": {"3981312": ios // 2, "4014080": ios - ios // 2}},
        "clat_ns": {"mean": 3_990_000.0},
    } | more
    return "fio: a warning\n" + json.dumps({"fio version": "fio-3.33", "jobs": [{"error": error, "read": done}]})


def test_asynchronous_io_is_outstanding_in_one_thread():
    asked = options(Asked(READ, 8), "libaio")
    assert (asked["ioengine"], asked["iodepth"], asked["numjobs"]) == ("libaio", "8", "1")
    assert (asked["rw"], asked["bs"], asked["direct"], asked["runtime"]) == ("randread", "8192", "1", "2500ms")
    assert asked["filename"] == "/mnt/a\\:b/file"


def test_plain_calls_are_a_thread_for_each():
    asked = options(Asked(READ, 8), "psync")
    assert (asked["iodepth"], asked["numjobs"]) == ("1", "8")


@pytest.mark.parametrize("how", ["psync", "libaio"])
def test_in_order_is_a_stream_for_each_whatever_issues_them(how):
    asked = options(Asked(WRITE, 8), how)
    assert (asked["iodepth"], asked["numjobs"]) == ("1", "8") and int(asked["offset_increment"]) > 0


@given(st.integers(1, 64), st.integers(2**26, 2**30), st.sampled_from(["psync", "libaio"]))
def test_streams_stay_behind_the_mark_within_the_file_and_apart(outstanding, size, how):
    asked = options(Asked(WRITE, outstanding), how, size)
    begin, length, threads = int(asked["offset"]), int(asked["size"]), int(asked["numjobs"])
    apart = int(asked.get("offset_increment", 0))
    assert begin == fio.SKIP_BYTES and length % WRITE.block_bytes == 0 and length > 0
    assert begin + (threads - 1) * apart + length <= size
    assert threads == 1 or apart >= length


def test_what_is_written_is_half_compressible_and_what_is_read_has_no_such_option():
    assert options(Asked(WRITE, 1), "libaio")["buffer_compress_percentage"] == "50"
    assert "refill_buffers" not in options(Asked(READ, 1), "libaio")


def issued(folder: Path, pattern: str, *more: str) -> Path:
    """Return a file of 9 MiB after half a second of a pattern by fio itself, from the page cache."""
    file = folder / "file"
    file.write_bytes(bytes(fio.SKIP_BYTES + 2**23))
    program = shutil.which("fio") or pytest.skip("fio is not installed")
    order = fio.command(program, file, file.stat().st_size, Asked(PATTERNS[pattern], 1), 0.5, "psync", folder, 7)
    subprocess.run([*order, "--direct=0", "--rate_iops=8000", *more], check=True, capture_output=True)
    return file


def test_random_reads_come_back_to_a_block_before_the_file_is_read_whole(tmp_path):
    """By default fio 3.33 reads each block once first, which no cache is made for (HOWTO, norandommap)."""
    file = issued(tmp_path, "8k-random-read", f"--write_iolog={tmp_path / 'ios'}")
    blocks = [line.split()[-2] for line in (tmp_path / "ios").read_text().splitlines() if " read " in line]
    pass_ios = (file.stat().st_size - fio.SKIP_BYTES) // 8192
    assert len(blocks) > pass_ios and len({*blocks[:pass_ios]}) < 0.75 * pass_ios


def test_what_fio_writes_compresses_by_half_however_large_the_unit(tmp_path):
    """By default fio 3.33 writes one buffer again and again: seven neighbours shrink to one (HOWTO, refill_buffers)."""
    data = issued(tmp_path, "8k-random-write").read_bytes()[fio.SKIP_BYTES :]
    written = b"".join(filter(any, (data[begin : begin + 8192] for begin in range(0, len(data), 8192))))
    assert len(written) > len(data) / 10
    for unit in (8192, 2**17):
        packed = sum(len(zlib.compress(written[begin : begin + unit])) for begin in range(0, len(written), unit))
        assert 0.4 < packed / len(written) < 0.6


def test_the_file_is_never_made_grown_or_removed_by_fio():
    asked = options(Asked(WRITE, 1), "libaio")
    assert (asked["allow_file_create"], asked["overwrite"], asked["fallocate"]) == ("0", "1", "none")
    assert "unlink" not in asked


def test_its_answer_is_read():
    log = "250, 2010, 0, 0, 0\n500, 1990, 0, 0, 0\n250, 10, 0, 0, 0\n1, 5, 0, 0, 0\n"
    found = fio.parse(Asked(READ, 8), 1, answer(), log)
    assert (found.ios, found.seconds, found.mean_ms) == (2000, 1.001, 4.0)
    assert found.iops == pytest.approx(1998, rel=1e-3)
    assert found.histogram == ((4.0, 2000),)
    assert found.latency_ms == {"p50": 4.0, "p95": 4.0, "p99": 4.0, "p99.9": None, "max": 4.0}
    assert found.windows == ((0.25, 2020.0), (0.5, 1990.0))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs fio 3.0 or later"),
        ("{", "needs fio 3.0 or later"),
        ('{"jobs": []}', "needs fio 3.0 or later"),
        (answer(0), "no I/O ended in time"),
        (answer(error=5), "error 5"),
    ],
)
def test_no_answer_is_a_sentence(text, sentence):
    with pytest.raises(StallmarkError, match=sentence) as refused:
        fio.parse(Asked(READ, 8), 1, text, "")
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


def test_a_window_in_which_nothing_ended_is_one():
    assert fio.windows("250, 100, 0, 0, 0\n751, 100, 0, 0, 0\n", 5) == ((0.25, 100), (0.5, 0), (0.75, 100))


def test_a_window_at_whose_end_some_threads_have_ended_is_none():
    assert fio.windows("250, 100\n250, 100\n500, 90\n", 0.5) == ((0.25, 200),)


@given(st.text(max_size=80))
def test_a_log_of_anything_breaks_nothing(text):
    assert all(t > 0 for t, _ in fio.windows(text, 5))
