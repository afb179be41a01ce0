"""A replay: the search for the highest multiple that storage carries, a level against the service level, its I/Os."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.replays import READS_20, Disks, a_piece, a_window, issued, mean_of_a_disk

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import DirectIo, ServiceLevelObjective
from stallmark.sizing.manifest import Replay, ReplayLevel
from stallmark.sizing.replay import decide_by_values, judge_level, replay
from stallmark.sizing.replay_io import (
    LEAST_PIECE_S,
    STREAMS,
    USUAL_BYTES,
    WARM_UP_S,
    Due,
    Issued,
    Player,
    _issued_ios,
    data_sizes,
    deal,
    due_ios,
    length_s,
    log_sizes,
    pieces_of,
    spans_of,
)
from stallmark.stats.ceiling_search import Next, SearchSpec, Why
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


TRIED = Next(1.25, Why.FIRST)
SPANS = spans_of([a_window(a_piece(20))], 1.0)
NONE = issued(Due(np.empty(0), np.empty(0, dtype=np.int64)), np.empty(0))


def stream(ms: np.ndarray, late_s: float | np.ndarray = 0.0) -> Issued:
    """A hundred a second, of 8 KiB."""
    at = WARM_UP_S + np.arange(len(ms)) / 100
    return issued(Due(at, np.full(len(ms), 8192)), ms, late_s)


def level(*reads: Issued, log: Issued = NONE, asked: ServiceLevelObjective = READS_20) -> ReplayLevel:
    played = [{"reads": one, "writes": NONE, "log": log} for one in reads]
    return judge_level(TRIED, played, SPANS, asked, 1.0)  # type: ignore[arg-type]


def around(mean: float, scatter: float = 2.0) -> np.ndarray:
    return np.random.default_rng(1).normal(mean, scatter, 2000)


@pytest.mark.parametrize(("mean", "verdict"), [(10, "held"), (30, "broke"), (20, "undecided")])
def test_the_mean_of_reads_decides(mean, verdict):
    found = level(stream(around(mean)))
    assert (found.verdict, found.backlog, found.level, found.tried) == (verdict, False, 1.25, "first")
    of_mean, of_share = found.limits
    assert of_mean.value == pytest.approx(mean, abs=0.2) and of_mean.percentile is None and of_mean.seen == 2000
    assert of_share.percentile == "p95" and of_share.limit == pytest.approx(0.05)


def test_their_percentile_is_noted():
    mostly_fast = level(stream(np.where(np.arange(2000) % 10, 5.0, 50.0)))
    assert mostly_fast.verdict == "held"
    assert mostly_fast.limits[1].verdict == "broke" and mostly_fast.limits[1].value == pytest.approx(0.1)


def test_an_undecided_level_goes_by_its_values():
    close = level(stream(around(20.05)))
    assert close.verdict == "undecided" and decide_by_values(close).verdict == "broke"
    assert decide_by_values(level(stream(around(19.9)))).verdict == "held"


def test_two_plays_count_together():
    both = level(stream(around(10)), stream(around(14)))
    assert both.limits[0].value == pytest.approx(12, abs=0.2) and both.seconds == 40
    assert both.streams[0].ios == 4000 and sum(count for _, count in both.streams[0].histogram) == 4000


def test_a_backlog_of_any_stream_breaks_a_level():
    slow = np.where(np.arange(2000) < 1800, 1.0, np.nan)
    found = level(stream(around(5)), log=stream(slow))
    assert found.verdict == "broke" and found.backlog
    log = next(one for one in found.streams if one.name == "log")
    assert (log.wanted, log.ios, log.late, log.bytes) == (2000, 1800, 200, 1800 * 8192)
    few = np.where(np.arange(2000) < 1960, 1.0, np.nan)
    assert level(stream(around(5)), log=stream(few)).verdict == "held"


def test_what_was_issued_late_is_a_backlog_though_it_ended():
    found = level(stream(around(5), np.where(np.arange(2000) < 200, 1.5, 0.0)))
    assert found.backlog and found.streams[0].ios == 2000 and found.streams[0].late == 200


def test_how_far_behind_the_machine_was_is_in_the_record():
    reads, writes, _ = level(stream(around(5), np.where(np.arange(2000) < 500, 0.5, 0.003))).streams
    assert reads.behind_ms == pytest.approx(3) and writes.behind_ms is None


def test_without_reads_or_a_limit_on_them_only_a_backlog_breaks_it():
    assert level(NONE, log=stream(around(5))).verdict == "held"
    unlimited = ServiceLevelObjective(name="read", read_ms=None, percentile="p95")
    found = level(stream(around(500)), asked=unlimited)
    assert found.verdict == "held" and found.limits == () and found.streams[0].mean_ms == pytest.approx(500, abs=1)


def test_the_warm_up_does_not_count():
    at = np.arange(2200) / 100
    reads = issued(Due(at, np.full(2200, 8192)), np.where(at < WARM_UP_S, 900.0, 5.0))
    found = level(reads)
    assert found.streams[0].mean_ms == pytest.approx(5) and found.streams[0].wanted == 2000


def of_two_windows(reads: Issued, log: Issued = NONE) -> ReplayLevel:
    """The level of a window of 15 s and one of 5 s."""
    night = a_window(a_piece(5)).changed(begin=900, because="read_bytes_per_s")
    spans = spans_of([a_window(a_piece(15)), night], 1.0)
    return judge_level(TRIED, [{"reads": reads, "writes": NONE, "log": log}], spans, READS_20, 1.0)


def test_a_window_that_breaks_is_not_hidden_by_another():
    ms = np.where(np.arange(2000) < 1500, 5.0, 40.0)
    found = of_two_windows(stream(ms))
    day, night = found.windows
    assert found.streams[0].mean_ms < 20 and found.verdict == "broke" and not found.backlog
    assert (day.limits[0].verdict, night.limits[0].verdict) == ("held", "broke")
    assert found.limits[0].value == night.limits[0].value == pytest.approx(40)
    assert (night.begin, night.because, night.limits[0].seen) == (900, "read_bytes_per_s", 500)


def test_a_stream_that_falls_behind_in_one_window_breaks_the_level():
    late_s = np.where((np.arange(2000) >= 1500) & (np.arange(2000) % 6 == 0), 1.5, 0.0)
    found = of_two_windows(stream(around(5)), log=stream(np.full(2000, 1.0), late_s))
    assert found.streams[2].late < 0.05 * 2000, "over all of it there is no backlog"
    assert found.backlog and found.verdict == "broke"
    assert [one.behind for one in found.windows] == [{}, {"log": pytest.approx(1 / 6, rel=0.02)}]


def test_a_window_of_too_few_reads_to_judge_leaves_the_others_to_decide():
    found = of_two_windows(stream(around(5)[:1501]))
    assert found.verdict == "held" and found.windows[1].limits[0].value is None


def test_a_window_without_reads_has_no_limit_on_them():
    found = of_two_windows(stream(around(5)[:1500]))
    assert found.verdict == "held" and [len(one.limits) for one in found.windows] == [2, 0]


RATES = st.floats(0, 40)
PIECES = st.lists(
    st.builds(a_piece, seconds=st.floats(1, 20), reads=RATES, writes=RATES, log_writes=RATES), min_size=1, max_size=8
)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@given(PIECES, st.floats(0.05, 1))
def test_pieces_are_long_enough_and_lose_nothing(pieces, played):
    window = a_window(*pieces)
    found = pieces_of([window], played)
    assert sum(one.seconds for one in found) == pytest.approx(window.seconds * played)
    assert all(one.seconds >= LEAST_PIECE_S * 0.999 for one in found) or len(found) == 1
    for name in ("reads", "write_bytes", "log_writes"):
        assert sum(one.seconds * getattr(one, name) for one in found) == pytest.approx(
            played * sum(one.seconds * getattr(one, name) for one in pieces)
        )


@given(PIECES, st.sampled_from(STREAMS), st.floats(0.25, 4))
def test_all_ios_of_the_profile_are_due_in_the_time_that_had_them(pieces, stream, multiple):
    ios = {"reads": "reads", "writes": "writes", "log": "log_writes"}[stream]
    found = due_ios(pieces, stream, multiple, 512, rng())
    assert np.all(np.diff(found.moments_s) >= 0) and len(found.moments_s) == len(found.bytes)
    begin = WARM_UP_S
    for piece in pieces:
        here = ((found.moments_s >= begin) & (found.moments_s < begin + piece.seconds)).sum()
        assert here == pytest.approx(piece.seconds * getattr(piece, ios) * multiple, abs=1.01)
        begin += piece.seconds
    assert begin == pytest.approx(length_s(pieces)) and found.moments_s.max(initial=0) < begin


@given(st.integers(1, 5000), st.floats(USUAL_BYTES[0], USUAL_BYTES[-1]))
def test_two_sizes_are_mixed_so_that_their_mean_is_the_profiles(count, mean):
    sizes = data_sizes(count, mean, 4096)
    assert len(sizes) == count and set(sizes.tolist()) <= set(USUAL_BYTES)
    step = USUAL_BYTES[1] - USUAL_BYTES[0] if mean <= USUAL_BYTES[1] else USUAL_BYTES[2] - USUAL_BYTES[1]
    assert abs(sizes.sum() - count * mean) <= step / 2 + 1


@given(st.floats(1, 8191) | st.floats(USUAL_BYTES[-1] + 1, 2**22), st.sampled_from([512, 4096]))
def test_other_sizes_are_the_mean_in_whole_sectors(mean, sector):
    [size] = set(data_sizes(7, mean, sector).tolist())
    assert size % sector == 0 and size > 0 and abs(size - mean) <= max(sector / 2, sector - mean)


@given(st.floats(1, 2**20), st.sampled_from([512, 4096, 8192]))
def test_writes_of_the_log_are_whole_pages_and_none_too_small(mean, sector):
    [size] = set(log_sizes(3, mean, sector).tolist())
    assert size % max(sector, 4096) == 0 and mean <= size < mean + max(sector, 4096)


def test_fewer_flushes_write_the_same_bytes():
    pieces = [a_piece(10, log_writes=400, log=8192)]
    all_of_it, grouped = (due_ios(pieces, "log", 1.5, 512, rng(), most) for most in (np.inf, 150))
    assert len(all_of_it) == 7200 and len(grouped) == 1800
    assert grouped.bytes.sum() == pytest.approx(all_of_it.bytes.sum(), rel=0.01)


def test_moments_are_random_and_those_of_another_seed_are_others():
    pieces = [a_piece(100, reads=100)]
    found = due_ios(pieces, "reads", 1, 512, rng())
    counts = np.bincount(found.moments_s.astype(int))
    assert 0.6 < counts.var() / counts.mean() < 1.5, "Poisson"
    assert not np.array_equal(found.moments_s, due_ios(pieces, "reads", 1, 512, np.random.default_rng(2)).moments_s)


# An I/O of a replay takes from when it was due until it ended: what waits for a thread waits for the storage


SECONDS = 300


def reads_at(per_s: int) -> Due:
    """Reads of 8 KiB, evenly spaced, warm-up included."""
    moments = np.arange((WARM_UP_S + SECONDS) * per_s) / per_s
    return Due(moments, np.full(len(moments), 8192))


def played(due: Due, threads: int, stands_still, read_ms: float = 0.1) -> Issued:
    """Reads as fio notes them on storage that ends no I/O while `stands_still`; a thread issues one at a time."""
    parts = []
    for part in deal(due, threads):
        ended, took, free = [], [], 0.0
        for moment in due.moments_s[part]:
            issued = max(moment, free)
            free = stands_still(issued) + read_ms / 1000
            ended.append(free * 1000)
            took.append((free - issued) * 1000)
        parts.append((part, (np.array(ended), np.array(took))))
    return _issued_ios(due, parts, due.moments_s[-1] + 0.5)


def half_a_second_in_five(moment: float) -> float:
    """When storage that stands still in the first half second of every five goes on."""
    return moment - moment % 5 + 0.5 if moment % 5 < 0.5 else moment


def judge_reads(reads: Issued):
    streams = {"reads": reads, "writes": NONE, "log": NONE}
    spans = spans_of([a_window(a_piece(SECONDS))], 1.0)
    return judge_level(Next(1.0, Why.FIRST), [streams], spans, READS_20, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [2, 20, 256])
def test_storage_that_stands_still_is_judged_the_same_however_many_threads_wait(threads):
    reads = played(reads_at(300), threads, half_a_second_in_five)
    seen = judge_reads(reads)
    mean, slow = seen.limits
    assert mean.value == pytest.approx(25.1, rel=0.04) and slow.value == pytest.approx(0.097, abs=0.002)
    assert seen.verdict == "broke" and not seen.backlog and seen.streams[0].mean_ms == pytest.approx(mean.value)
    from_issue = reads.ms[reads.due.moments_s >= WARM_UP_S].mean()
    assert from_issue < mean.value if threads < 150 else from_issue == pytest.approx(mean.value)


def test_what_has_not_ended_took_longer_than_any_limit():
    due = reads_at(100)
    reads = played(due, 10, lambda moment: moment)
    unended = due.moments_s >= due.moments_s[-1] - 4
    ms = np.where(unended, np.nan, reads.ms)
    late = np.where(unended, np.inf, reads.late_s)
    seen = judge_reads(Issued(due, ms, late, reads.stop_s))
    assert seen.limits[1].value == pytest.approx(unended.sum() / (SECONDS * 100))
    assert seen.limits[0].value == pytest.approx(0.1 + seen.limits[1].value * 2500, rel=0.01)
    assert seen.streams[0].ios == SECONDS * 100 - unended.sum() and seen.streams[0].wanted == SECONDS * 100


def as_fio_notes(due: Due, threads: int, read_ms: float, late_ms: float = 0.0) -> Issued:
    """Reads on storage that is never busy, with moments in the whole ms of fio's lists and logs."""
    parts = []
    for part in deal(due, threads):
        issued_ms = np.round(due.moments_s[part] * 1000) + late_ms * (np.arange(len(due.moments_s[part])) % 2)
        parts.append((part, (np.floor(issued_ms + read_ms + 0.37), np.full(len(issued_ms), read_ms))))
    return _issued_ios(due, parts, due.moments_s[-1] + 0.5)


@pytest.mark.parametrize("threads", [2, 20])
def test_the_whole_ms_of_fios_clock_are_not_time_of_the_storage(threads):
    rng = np.random.default_rng(3)
    moments = np.sort(rng.uniform(0, WARM_UP_S + SECONDS, 30_000))
    reads = as_fio_notes(Due(moments, np.full(len(moments), 8192)), threads, 0.09)
    assert reads.since_due_ms.mean() == pytest.approx(0.09, abs=0.02)


def test_what_fio_itself_issued_late_counts_beyond_its_clock():
    reads = as_fio_notes(reads_at(10), 2, 0.09, late_ms=50.0)
    assert reads.since_due_ms.max() == pytest.approx(50.0, abs=1.1)
