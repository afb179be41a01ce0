"""A level of a replay against the service level, from each of its I/Os."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stallmark.record.manifest.search import LimitSeen
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.probe import coarser
from stallmark.record.sizing.manifest import Decides, ReplayLevel, Stream, StreamName, WindowSeen
from stallmark.stats.ceiling_search import Next, Verdict, enough, judge
from stallmark.storage.replay.course import WARM_UP_S, Span
from stallmark.storage.replay.play import Issued

LATE_S = 1.0
"""An I/O that is issued so much later than it was due is late: until then all threads were busy with others."""
BACKLOG = 0.05
"""The share of a stream's I/Os that are late from which on they are a backlog. Where all that is due can be done, few
wait for a second."""

Played = Mapping[StreamName, Issued]
"""A level as it was played, once."""


def has_backlog(played: Sequence[Issued]) -> bool:
    """Tell whether ever more of a stream's I/Os waited to be issued."""
    return sum(len(one.late_s) for one in played) * BACKLOG < sum(_late(one) for one in played)


def judged(
    tried: Next,
    played: Sequence[Played],
    spans: Sequence[Span],
    asked: ServiceLevelObjective,
    decides: Decides,
    grouped: float,
) -> ReplayLevel:
    """Return the level with its verdict. `spans`: of the windows in one play; `grouped`: writes of the log in one.

    Each window must hold: a mean over all would hide a backup behind the many small reads of the day. A backlog of any
    stream in any window breaks the level. Else the reads of the window that does worst decide: their mean, or the
    percentile. Where too little was seen of them, or none is due, it is undecided, or holds.
    """
    of = {name: [without_warm_up(play[name]) for play in played] for name in played[0]}
    windows = [_window(span, of, asked) for span in spans]
    limits = _worst([one.limits for one in windows])
    backlog = any(one.behind for one in windows)
    [verdict] = [Verdict(one.verdict) for one in limits if (one.percentile is None) == (decides == "mean")] or [
        Verdict.HELD
    ]
    return ReplayLevel(
        level=tried.level,
        tried=tried.why.value,
        verdict=(Verdict.BROKE if backlog else verdict).value,
        backlog=backlog,
        limits=limits,
        seconds=sum(span.seconds for span in spans) * len(played),
        streams=tuple(_stream(name, parts, grouped if name == "log" else 1.0) for name, parts in of.items()),
        windows=tuple(windows),
    )


def within(span: Span, one: Issued) -> Issued:
    """Return what is due in a window, as if it were the first."""
    begin = WARM_UP_S + span.start
    part = one.part((one.due.at >= begin) & (one.due.at < begin + span.seconds))
    return replace(part, due=replace(part.due, at=part.due.at - span.start), stop_s=part.stop_s - span.start)


def _window(span: Span, streams: Mapping[StreamName, Sequence[Issued]], asked: ServiceLevelObjective) -> WindowSeen:
    of = {name: [within(span, part) for part in parts] for name, parts in streams.items()}
    limits = () if asked.read_ms is None or not _count(of["reads"]) else _limits(of["reads"], asked)
    behind = {name: sum(map(_late, parts)) / _count(parts) for name, parts in of.items() if has_backlog(parts)}
    return WindowSeen(begin=span.window.begin, because=span.window.because, limits=limits, behind=behind)


def _worst(windows: Sequence[tuple[LimitSeen, ...]]) -> tuple[LimitSeen, ...]:
    """Return each limit as it was in the window in which it is nearest to break, or broke most."""
    order = (Verdict.HELD.value, Verdict.UNDECIDED.value, Verdict.BROKE.value)
    return tuple(
        max(same, key=lambda one: (one.value is not None, order.index(one.verdict), one.value or 0.0))
        for same in zip(*filter(None, windows), strict=True)
    )


def nearest(level: ReplayLevel, decides: Decides) -> ReplayLevel:
    """Return an undecided level with the verdict of its values, where there are any."""
    for one in level.limits:
        if (one.percentile is None) == (decides == "mean") and one.value is not None:
            return level.changed(verdict=(Verdict.HELD if one.value <= one.limit else Verdict.BROKE).value)
    return level


def without_warm_up(one: Issued) -> Issued:
    return one.part(one.due.at >= WARM_UP_S)


def _count(parts: Sequence[Issued]) -> int:
    return sum(len(one.ms) for one in parts)


def _late(one: Issued) -> int:
    return int((one.late_s > LATE_S).sum())


def _limits(reads: Sequence[Issued], asked: ServiceLevelObjective) -> tuple[LimitSeen, ...]:
    """Return the limit on reads, on their mean and on their percentile, second by second."""
    assert asked.read_ms is not None
    allowed = 1 - float(asked.percentile.removeprefix("p")) / 100
    done, spent, slow = (
        np.concatenate(series) for series in zip(*(_seconds(one, asked.read_ms) for one in reads), strict=True)
    )
    mean = judge(spent.tolist(), done.tolist(), asked.read_ms)
    share = judge(slow.tolist(), done.tolist(), allowed, enough(allowed))
    return (
        LimitSeen(of="reads", limit_ms=asked.read_ms, **mean.figures()),
        LimitSeen(of="reads", percentile=asked.percentile, limit_ms=asked.read_ms, **share.figures()),
    )


def _seconds(one: Issued, limit_ms: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many I/Os were due in each second, the ms until they had ended, and how many took longer than
    allowed."""
    second, ms = one.due.at.astype(np.int64) - int(WARM_UP_S), one.since_due_ms
    length = int(second.max(initial=-1)) + 1
    return (
        np.bincount(second, minlength=length),
        np.bincount(second, ms, minlength=length),
        np.bincount(second, (ms > limit_ms) | ~one.ended, minlength=length),
    )


def _stream(name: StreamName, parts: Sequence[Issued], grouped: float) -> Stream:
    ms = np.concatenate([one.since_due_ms for one in parts])
    behind = np.concatenate([one.late_s[one.ended] for one in parts])
    return Stream(
        name=name,
        wanted=_count(parts),
        ios=sum(int(one.ended.sum()) for one in parts),
        bytes=sum(int(one.due.bytes[one.ended].sum()) for one in parts),
        late=sum(_late(one) for one in parts),
        mean_ms=float(ms.mean()) if len(ms) else None,
        histogram=_histogram(ms),
        grouped=grouped,
        behind_ms=float(np.median(behind)) * 1000 if len(behind) else None,
    )


def _histogram(ms: np.ndarray) -> tuple[tuple[float, int], ...]:
    values, counts = np.unique(np.round(ms, 3), return_counts=True)
    return coarser(list(zip(values.tolist(), counts.tolist(), strict=True)))
