"""The trace of a process's I/Os: each of them, in order, and how many were lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.emulated_bench import build_dir

from stallmark.storage.emulator import EmulatedArrayError
from stallmark.storage.io_trace import READ, SYNC, WRITE, IoTrace

__all__ = ["build_dir"]

PAGE = 8192
WRITER = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
page = mmap.mmap(-1, 8192)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | (os.O_DIRECT if len(sys.argv) < 3 else 0))
def write(number): assert os.pwrite(fd, page, number * 8192) == 8192
libc.pread64.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
def read(number): assert libc.pread64(fd, address, 8192, number * 8192) == 8192
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    try:
        os.close(os.open(tmp_path / "base" / "1", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("no direct I/O in the folder for temporary files")
    return tmp_path / "base" / "1"


@pytest.fixture
def trace(tmp_path: Path, build_dir: Path):
    made = IoTrace.create(tmp_path / "ring", build_dir=build_dir, slots=8)
    yield made
    made.close()
    assert not (tmp_path / "ring").exists()


def run(trace: IoTrace, code: str, *arguments: object) -> int:
    command = [sys.executable, "-c", WRITER + code, *map(str, arguments)]
    process = subprocess.Popen(command, env=os.environ | trace.environment({}))
    assert process.wait(60) == 0
    return process.pid


def test_every_io_is_traced_in_order(trace, file):
    trace.begin()
    pid = run(trace, "write(2); write(0); read(2); os.fsync(fd)", file)
    events, lost = trace.read()
    assert lost == 0
    assert events["operation"].tolist() == [WRITE, WRITE, READ, SYNC]
    assert events["offset"].tolist() == [2 * PAGE, 0, 2 * PAGE, 0]
    assert events["bytes"].tolist() == [PAGE, PAGE, PAGE, 0]
    assert set(events["process"].tolist()) == {pid} and set(events["file"].tolist()) == {file.stat().st_ino}
    assert (events["begun_us"][1:] >= events["begun_us"][:-1] + events["took_us"][:-1]).all()
    assert len(trace.read()[0]) == 0


def test_those_that_find_no_room_are_counted_and_later_ones_are_traced(trace, file):
    trace.begin()
    run(trace, "for number in range(11): write(number)", file)
    events, lost = trace.read()
    assert (events["offset"] // PAGE).tolist() == list(range(8)) and lost == 3
    run(trace, "write(7)", file)
    events, lost = trace.read()
    assert events["offset"].tolist() == [7 * PAGE] and lost == 0


def test_nothing_is_traced_before_the_begin_and_after_the_end(trace, file):
    run(trace, "write(1)", file)
    trace.begin()
    assert len(trace.read()[0]) == 0
    trace.end()
    run(trace, "write(1)", file)
    events, lost = trace.read()
    assert len(events) == lost == 0


def test_buffered_io_and_files_elsewhere_are_not_traced(trace, file, tmp_path):
    trace.begin()
    run(trace, "write(1)", file, "buffered")
    (tmp_path / "pg_wal").mkdir()
    run(trace, "write(1)", tmp_path / "pg_wal" / "1")
    assert len(trace.read()[0]) == 0


def test_one_that_a_killed_process_left_incomplete_is_lost_at_the_second_call(trace, file):
    trace.begin()
    run(trace, "for number in range(3): write(number)", file)
    trace._slots["number"][1] = 0
    events, lost = trace.read()
    assert (events["offset"].tolist(), lost) == ([0], 0)
    events, lost = trace.read()
    assert (events["offset"].tolist(), lost) == ([2 * PAGE], 1)


def test_a_process_with_a_file_that_is_no_trace_ends(trace, file, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_bytes(bytes(4096))
    environment = os.environ | trace.environment({}) | {"STALLMARK_IO_TRACE": str(wrong)}
    ended = subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 78 and str(wrong) in ended.stderr


def test_its_library_stands_before_others(trace, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    found = trace.environment({"LD_PRELOAD": "/other.so", "OTHER": "1"})
    assert found["LD_PRELOAD"].endswith(":/other.so") and found["OTHER"] == "1"


def test_a_folder_that_cannot_be_preloaded_from_is_refused(tmp_path):
    (tmp_path / "a b").mkdir()
    with pytest.raises(EmulatedArrayError, match="space or a colon"):
        IoTrace.create(tmp_path / "ring", build_dir=tmp_path / "a b")
