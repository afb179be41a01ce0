"""Refusals of an emulated array, and the files that it leaves: none."""

from __future__ import annotations

import errno
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from support.emulated_bench import FAST, SLOW, Bench

from stallmark.processes import leftovers_of_dead_processes
from stallmark.storage.emulator import ArrayModel, EmulatedArrayError, NoCompiler, arrays
from stallmark.storage.emulator.arrays import EmulatedArrays

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulated array exists on Linux only")


@pytest.mark.parametrize(
    "wrong",
    [
        {"spindles": 0},
        {"spindles": 65},
        {"spindles": 1.5},
        {"spindles": True},
        {"read_ms": -1},
        {"write_ms": math.nan},
        {"sync_ms": math.inf},
        {"read_ms": "8"},
        {"mb_per_s": 0},
    ],
    ids=str,
)
def test_impossible_models_are_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        ArrayModel(**{**vars(SLOW), **wrong})


def test_wrong_devices_are_refused(tmp_path: Path, build_dir: Path, bench: Bench) -> None:
    def create(directories: dict[str, Path], models: dict[str, ArrayModel | None]) -> None:
        EmulatedArrays.create(tmp_path / "other", directories, models, build_dir=build_dir)

    with pytest.raises(ValueError, match="needs a directory and a model"):
        create({"data": tmp_path}, {"wal": FAST})
    with pytest.raises(ValueError, match="does not exist"):
        create({"data": tmp_path / "nowhere"}, {"data": FAST})
    with pytest.raises(ValueError, match="From 1 to 8 devices"):
        create({}, {})
    with pytest.raises(ValueError, match="Unknown emulated array 'tape'"):
        bench.devices.set_model("tape", FAST)


def test_a_missing_compiler_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoCompiler, match="need a C compiler"):
        arrays.interposer(tmp_path / "build")


def test_a_failing_compiler_shows_its_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'In file x:' >&2\necho 'x.c:1: error: no headers' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"x\.c:1: error: no headers"):
        arrays.interposer(tmp_path / "build")
    assert list((tmp_path / "build").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_compiler_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    temporary, compiler = tmp_path / "temporary", tmp_path / "cc"
    temporary.mkdir()
    # As gcc does: it writes for its next part, and is interrupted.
    compiler.write_text(
        f"#!/bin/sh\n[ $1 = --version ] || {{ echo >$TMPDIR/cc.s; kill -{int(number)} $PPID; sleep 1; }}\n"
    )
    compiler.chmod(0o755)
    program = "import pathlib, sys\nfrom stallmark.storage.emulator.arrays import interposer\n"
    program += "interposer(pathlib.Path(sys.argv[1]))"
    environment = os.environ | {"TMPDIR": str(temporary), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "build"], env=environment, stderr=subprocess.DEVNULL
    )
    assert done.returncode == -number
    assert not list((tmp_path / "build").iterdir())
    assert (number == signal.SIGINT) == (not list(temporary.iterdir()))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for one in leftovers_of_dead_processes():
        if one.place.parent == temporary:
            one.remove()
    assert not list(temporary.iterdir())


def test_a_disk_that_fills_leaves_no_half_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fills(_: BinaryIO, draft: BinaryIO) -> None:
        draft.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(arrays.shutil, "copyfileobj", fills)
    with pytest.raises(OSError, match="No space left"):
        arrays.interposer(tmp_path / "build")
    assert not list((tmp_path / "build").iterdir())


def test_it_is_compiled_once(build_dir: Path) -> None:
    library = arrays.interposer(build_dir)
    built = library.stat()
    assert arrays.interposer(build_dir).stat() == built


def test_a_build_directory_that_cannot_be_preloaded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmulatedArrayError, match="space or a colon"):
        arrays.interposer(tmp_path / "my cache")


def _truncate(file: Path) -> None:
    os.truncate(file, 100)


def _scribble(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"NOT OURS")


@pytest.mark.parametrize(
    ("damage", "message"), [(_truncate, "wrong size"), (_scribble, "not a state file"), (Path.unlink, "No such file")]
)
def test_a_process_with_a_wrong_state_file_does_not_start(
    bench: Bench, damage: Callable[[Path], None], message: str
) -> None:
    # A copy takes the blow: the devices have the original mapped.
    copy = bench.state_file.with_name("copy")
    subprocess.run(["cp", "--sparse=always", bench.state_file, copy], check=True)
    damage(copy)
    environment = bench.devices.environment() | {"STALLMARK_EMULATED_ARRAYS": str(copy)}
    done = subprocess.run(["true"], env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert message in done.stderr


def test_without_a_state_file_in_the_environment_nothing_happens(bench: Bench) -> None:
    library = {"LD_PRELOAD": bench.devices.environment()["LD_PRELOAD"]}
    subprocess.run(["true"], env=os.environ | library, check=True)


def test_closing_removes_the_state_file(bench: Bench) -> None:
    assert bench.state_file.exists()
    bench.devices.close()
    bench.devices.close()
    assert not bench.state_file.exists()
    with pytest.raises(EmulatedArrayError, match="closed"):
        bench.devices.counters()


def test_creating_again_leaves_a_running_server_its_own_state(bench: Bench, build_dir: Path) -> None:
    running = bench.start("sys.stdin.readline(); os.preadv(os.open(sys.argv[1], DIRECT), [block], 0)")
    assert running.poll() is None
    again = EmulatedArrays.create(
        bench.state_file, {"data": bench.data.parent.parent}, {"data": None}, build_dir=build_dir
    )
    with again:
        assert list(bench.state_file.parent.glob("state.*")) == []
        running.communicate("\n", timeout=60)
        assert running.returncode == 0
