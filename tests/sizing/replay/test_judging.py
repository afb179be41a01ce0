"""A level of a replay against the service level."""

import numpy as np
import pytest
from support.replays import READS_20, a_piece, a_window, issued

from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.sizing.manifest import ReplayLevel
from stallmark.sizing.replay import decide_by_values, judge_level
from stallmark.sizing.replay_io import WARM_UP_S, Due, Issued, spans_of
from stallmark.stats.ceiling_search import Next, Why

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
