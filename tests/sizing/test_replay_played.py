"""A level is played with the real fio, on emulated arrays."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from support.emulated_bench import build_dir
from support.replays import READS_20, a_piece, a_window
from support.waiting import eventually

from stallmark.errors import StallmarkError
from stallmark.sizing import replay_io as playing
from stallmark.sizing.manifest import Replay, StreamName
from stallmark.sizing.replay import has_backlog, replay
from stallmark.sizing.replay_io import Due, Player
from stallmark.stats.ceiling_search import SearchSpec
from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.probe_file import LEAST_BYTES, make_probe_file, remove_leftovers
from stallmark.storage.programs import can_probe

__all__ = ["build_dir"]
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
    pytest.mark.skipif(can_probe() is not None, reason=can_probe() or ""),
]
DATA, LOG = ArrayModel(4, 5, 5, 1, 100), ArrayModel(1, 40, 40, 5, 100)
SECONDS = 1.5


def at_rate(rate: int, size: int) -> Due:
    return Due(np.arange(round(rate * SECONDS)) / rate, np.full(round(rate * SECONDS), size))


STREAMS: dict[StreamName, Due] = {"reads": at_rate(100, 8192), "writes": at_rate(40, 65536), "log": at_rate(100, 4096)}


@pytest.fixture
def arrays(tmp_path: Path, build_dir: Path) -> Iterator[EmulatedArrays]:
    folders = {"raw": tmp_path / "raw", "wal": tmp_path / "the wal"}
    for folder in folders.values():
        folder.mkdir()
        (folder / "tried").touch()
        try:
            os.close(os.open(folder / "tried", os.O_RDONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("the file system of the temporary directory has no direct I/O")
        (folder / "tried").unlink()
    with EmulatedArrays.create(tmp_path / "state", folders, {"raw": DATA, "wal": LOG}, build_dir=build_dir) as found:
        yield found


@pytest.fixture
def player(tmp_path: Path, arrays: EmulatedArrays) -> Iterator[Player]:
    with ExitStack() as files:
        data, log = (files.enter_context(make_probe_file(tmp_path / name, LEAST_BYTES)) for name in ("raw", "the wal"))
        yield Player("fio", data, log, arrays.environment(of_raw_load=True), False, 20)


def play(player: Player, tell=lambda seconds: None):
    return player.play(STREAMS, SECONDS, np.random.default_rng(1), tell)


def programs_on(folder: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "fio" and any(str(folder) in part for part in process.info["cmdline"] or ())
    ]


def test_what_is_due_reaches_the_arrays_and_takes_as_long_as_they_do(player, arrays, tmp_path):
    found = play(player)
    data, log = arrays.counters()["raw"], arrays.counters()["wal"]
    for name in ("reads", "writes"):
        assert not has_backlog([found[name]]) and found[name].has_ended.mean() > 0.95
        assert np.nanmedian(found[name].ms) >= 5, "the model's time"
    reads, writes = (int(found[name].has_ended.sum()) for name in ("reads", "writes"))
    assert (data.raw_reads, data.raw_read_bytes) == (reads, reads * 8192)
    assert (data.raw_writes, data.raw_write_bytes) == (writes, writes * 65536)
    flushed = found["log"]
    assert log.raw_writes == flushed.has_ended.sum() < len(STREAMS["log"]), "one flush after the other takes longer"
    assert np.nanmin(flushed.ms) >= 45, "each pays for its position, and for being flushed"
    assert np.isinf(flushed.late_s[~flushed.has_ended]).all()
    assert not programs_on(tmp_path) and not list(Path(playing.gettempdir()).glob(f"*replay-{os.getpid()}"))


def test_a_fio_that_is_killed_is_told(player, tmp_path):
    def kill(seconds: float) -> None:
        for process in programs_on(tmp_path):
            process.kill()

    with pytest.raises(StallmarkError, match="was killed"):
        play(player, kill)


def test_a_program_that_is_done_too_early_is_refused(player):
    with pytest.raises(StallmarkError, match="before they were due"):
        play(replace(player, program="true"))


def test_nothing_is_left_when_it_is_interrupted(player, tmp_path):
    def interrupt(seconds: float) -> None:
        if programs_on(tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(player, interrupt)
    assert not programs_on(tmp_path) and not list(Path(playing.gettempdir()).glob(f"*replay-{os.getpid()}"))


@pytest.mark.thorough
def test_a_file_that_is_not_on_the_array_is_refused(arrays, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(StallmarkError, match="must not be mixed up"):
        replay(
            [a_window(a_piece(1, reads=50))], SearchSpec(1, 1, 0.05, False), READS_20, data=tmp_path / "elsewhere",
            log=tmp_path / "the wal", data_bytes=LEAST_BYTES, log_bytes=LEAST_BYTES, devices=arrays,
        )  # fmt: skip


@pytest.mark.thorough
def test_nothing_is_left_when_stallmark_is_killed(tmp_path, arrays, monkeypatch):
    # Where no command of another test finds the links to what is left, and removes it.
    monkeypatch.setattr(playing, "gettempdir", lambda: str(tmp_path))
    code = f"""
        from pathlib import Path
        from support.replays import *
        from stallmark.stats.ceiling_search import SearchSpec
        from stallmark.sizing import replay
        replay.refuse_memory = lambda folder: None
        replay.replay([a_window(a_piece(600, reads=50))], SearchSpec(1, 1, 0.05, False), READS_20,
                      data=Path({str(tmp_path / "raw")!r}), log=Path({str(tmp_path / "the wal")!r}),
                      data_bytes={LEAST_BYTES}, log_bytes={LEAST_BYTES})
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "TMPDIR": str(tmp_path)},
    )
    eventually(lambda: programs_on(tmp_path), "fio at work")
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: not programs_on(tmp_path), "fio gone")
    scratch = Path(playing.gettempdir()) / f"stallmark-replay-{process.pid}"
    assert scratch.exists() and len(remove_leftovers(tmp_path / "raw")) == 1
    playing.remove_stale_scratch()
    assert not scratch.exists()


@pytest.mark.thorough
def test_an_array_that_does_half_of_what_is_due_carries_none_of_it(arrays, tmp_path):
    kept: list[Replay] = []
    found = replay(
        [a_window(a_piece(10, reads=1200, writes=400, log_writes=5))], SearchSpec(1, 1, 0.05, False), READS_20,
        data=tmp_path / "raw", log=tmp_path / "the wal", data_bytes=LEAST_BYTES, log_bytes=LEAST_BYTES,
        devices=arrays, played=0.2, keep=kept.append,
    )  # fmt: skip
    assert found.emulated and found.how == "psync" and found.devices["data"] != found.devices["log"]
    assert (found.outcome, found.holds, found.breaks) == ("none", None, 1) and len(kept) == len(found.levels) + 1
    for level in found.levels:
        done = sum(stream.ios for stream in level.streams if stream.name != "log")
        assert level.backlog and done / level.seconds < 1.6 * 800, "what was begun in time may end after it"
