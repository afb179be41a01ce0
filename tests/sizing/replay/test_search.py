"""The search for the highest multiple that storage carries, against simulated disks."""

import sys

import pytest
from support.replays import READS_20, Disks, a_piece, a_window, mean_of_a_disk

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import DirectIo
from stallmark.sizing.manifest import Replay
from stallmark.sizing.replay import replay
from stallmark.sizing.replay_io import Player
from stallmark.stats.ceiling_search import SearchSpec
from stallmark.storage.direct_io import refuse_cached
from stallmark.storage.probe_file import LEAST_BYTES
from stallmark.storage.programs import Tool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="There is no replay on Windows.")
WINDOW = a_window(a_piece(8, 80, 20, 50), a_piece(8, 100, 25, 60), a_piece(8, 120, 30, 70))


@pytest.fixture
def on(tmp_path, monkeypatch):
    """Return a function that replays a window on simulated disks."""
    monkeypatch.setattr("stallmark.sizing.replay.find_tool", lambda *_, **__: Tool("fio", "fio-3.99", "psync"))
    monkeypatch.setattr("stallmark.sizing.replay.refuse_memory", lambda folder: None)
    monkeypatch.setattr("stallmark.sizing.replay.least_direct_bytes", lambda file: 512)

    def on(disks: Disks, window=WINDOW, asked: SearchSpec | None = None, **more) -> Replay:
        monkeypatch.setattr(Player, "play", lambda self, *asked: disks.play(*asked))
        folders = {"data": tmp_path / "data", "log": tmp_path / "log"}
        sizes = {"data_bytes": LEAST_BYTES, "log_bytes": LEAST_BYTES}
        return replay([window], asked or SearchSpec(0.25, 16, 0.05, False), READS_20, **folders, **sizes, **more)

    return on


def ceiling_of(disks: Disks, limit_ms: float = 20.0) -> float:
    """The multiple at which the busiest third of the window takes the mean of all of it to the limit, by halving."""
    low, high = 0.01, disks.disks / disks.service_ms * 1000 / 150
    while high - low > 0.001:
        middle = (low + high) / 2
        busy = [rate * middle * disks.service_ms / 1000 / disks.disks for rate in (100, 125, 150)]
        means = [
            mean_of_a_disk(disks.service_ms, one) * weight for one, weight in zip(busy, (80, 100, 120), strict=True)
        ]
        low, high = (low, middle) if sum(means) / 300 > limit_ms else (middle, high)
    return low


@pytest.mark.parametrize("disks", [Disks(4, 8), Disks(2, 10), Disks(4, 8, threads=16)], ids=str)
def test_the_ceiling_of_simulated_disks_is_found(on, disks):
    found = on(disks)
    assert found.outcome == "found" and found.holds < found.breaks
    assert found.holds == pytest.approx(ceiling_of(disks), rel=0.15)
    assert {one.level for one in found.levels} >= {found.holds, found.breaks}


def test_what_was_seen_is_kept_level_by_level_and_no_file_stays(on, tmp_path):
    kept: list[Replay] = []
    found = on(Disks(4, 8), keep=kept.append)
    assert [len(one.levels) for one in kept] == [*range(1, len(found.levels) + 1), len(found.levels)]
    assert kept[0].outcome is None and kept[-1] == found
    assert not (tmp_path / "data").exists() and not (tmp_path / "log").exists()


def test_a_log_that_takes_few_flushes_gets_larger_ones(on):
    found = on(Disks(64, 1, flush_ms=25), asked=SearchSpec(1, 2, 0.05, False))
    assert found.outcome == "at_least", "a server groups its commits, and goes on"
    for level in found.levels:
        log = next(one for one in level.streams if one.name == "log")
        assert not level.backlog and log.wanted / level.seconds < 40
        assert log.wanted * log.grouped == pytest.approx(60 * level.level * 24, rel=0.02)
        assert log.bytes / log.wanted >= 4096 * log.grouped


def test_an_undecided_level_is_played_again(on):
    disks = Disks(4, 8)
    found = on(disks, window=a_window(a_piece(4, reads=100)))
    twice = [one for one in found.levels if one.seconds == 8]
    assert twice and disks.plays == len(found.levels) + len(twice)
    assert all(one.verdict != "undecided" for one in found.levels)


def test_the_level_under_way_is_told(on, monkeypatch):
    told = []
    disks = Disks(64, 1)
    play = disks.play
    monkeypatch.setattr(disks, "play", lambda *asked: (asked[-1](3.0), play(*asked))[1])
    on(disks, asked=SearchSpec(1, 1, 0.05, False), progress=lambda level, seconds: told.append((level.level, seconds)))
    assert told == [(1, 3.0), (1, 3.0)]


def test_without_io_there_is_nothing_to_replay(on):
    with pytest.raises(StallmarkError, match="no I/O"):
        on(Disks(1, 1), window=a_window(a_piece(15)))


def test_a_folder_must_be_one_that_can_be_written_to(on, tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StallmarkError, match=r"written to .*data \(.* is not a folder\)"):
        on(Disks(1, 1))


def test_the_outcome_of_direct_io_is_recorded_of_data_and_log(on, monkeypatch):
    monkeypatch.setattr("stallmark.sizing.replay.direct_io", lambda folder: DirectIo("unknown", folder.name))
    found = on(Disks(4, 8))
    assert found.direct_io == {"data": DirectIo("unknown", "data"), "log": DirectIo("unknown", "log")}
    monkeypatch.setattr("stallmark.sizing.replay.direct_io", lambda folder: None)
    assert on(Disks(4, 8)).direct_io == {}


def test_a_folder_in_the_page_cache_is_refused(on, monkeypatch):
    monkeypatch.setattr("stallmark.sizing.replay.refuse_memory", refuse_cached)
    monkeypatch.setattr(
        "stallmark.storage.direct_io.direct_io", lambda folder: DirectIo("through", "ext4, data=journal")
    )
    with pytest.raises(StallmarkError, match=r"goes through the system's page cache \(ext4, data=journal\)"):
        on(Disks(4, 8))


def test_both_files_must_have_room(on, monkeypatch):
    from types import SimpleNamespace

    space = SimpleNamespace(total=2**30, used=0, free=LEAST_BYTES + 2**29 // 10)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: space)
    with pytest.raises(StallmarkError, match="too little"):
        on(Disks(1, 1))


def test_without_fio_it_says_how_to_come_by_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StallmarkError, match="needs fio"):
        replay(
            [WINDOW], SearchSpec(1, 2, 0.05, False), READS_20, data=tmp_path, log=tmp_path, data_bytes=LEAST_BYTES,
            log_bytes=LEAST_BYTES,
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_on_windows_it_says_that_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(StallmarkError, match="Windows"):
        replay(
            [WINDOW], SearchSpec(1, 2, 0.05, False), READS_20, data=tmp_path, log=tmp_path, data_bytes=LEAST_BYTES,
            log_bytes=LEAST_BYTES,
        )  # fmt: skip
