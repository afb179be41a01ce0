"""The reach of a candidate: the highest multiple of a profile's load that it carried, by a replay or a stand-in.

It is the result of the search. Under another service level the tried levels are judged again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stallmark.analysis.ceiling import Ceiling, ceilings, mean_ceiling, missed_limits
from stallmark.analysis.finding import Finding, Kind, info
from stallmark.analysis.run import summarise_run
from stallmark.errors import StallmarkError
from stallmark.record.manifest.workload import LevelSeen, LimitSeen, Verdict
from stallmark.record.reader import find_records
from stallmark.sizing.manifest import Decides, Demand, Outcome, Replay, ReplayLevel, Stream, StreamName
from stallmark.stats import ceiling_search as search


# The kinds of what is found where candidates are sized for a profile.
class SizingKind(Kind):
    CARRIES = "candidate_carries"
    CARRIES_NOT = "candidate_does_not_carry"
    OPEN = "candidate_open"
    UNKNOWN = "candidate_not_known"
    NEED = "sizing_need"
    NEED_BY_WINDOW = "sizing_need_by_window"
    NEED_BELOW_BUSIEST = "sizing_need_below_busiest"
    METHODS = "sizing_methods"
    ENDS = "candidate_ends"
    REPLAY_ENDS = "replay_ends"
    STAND_IN_ENDS = "stand_in_ends"
    MEMORY = "sizing_memory"
    CHEAPEST = "cheapest_candidate"
    TODAY = "ceiling_against_today"
    TODAY_OPEN = "no_ceiling_against_today"
    TODAY_BELOW = "today_below_its_own_load"
    SLOW_TODAY = "reads_slow_today"
    UNFINISHED = "sizing_unfinished"
    UNCONFIRMED = "sizing_unconfirmed"
    GAP = "sizing_levels_apart"
    NO_REPLAY = "sizing_without_replay"
    NO_STAND_IN = "sizing_without_stand_in"
    UNMATCHED = "stand_in_unmatched"
    NOT_COMPARED = "stand_in_not_compared"
    LOG_AMONG_DATA = "sizing_log_among_data"
    SLOW_PERCENTILE = "sizing_percentile_slow"
    GROUPED = "sizing_log_grouped"
    COMPRESSED = "sizing_bursts_compressed"
    BEHIND = "replay_issued_late"
    SMALLER = "sizing_on_less_data"
    POOLS_DIFFER = "stand_in_pool_differs"
    OTHER_HOURS = "sizing_other_hours"
    NOT_PLAYED = "sizing_peak_not_played"
    PEAKS_NOT_KNOWN = "sizing_peaks_not_known"
    BEYOND_PLAYED = "sizing_window_beyond_played"
    STAND_IN_WINDOW = "stand_in_of_one_window"
    DATA_GROWTH = "sizing_data_does_not_grow"
    CACHES = "sizing_caches_of_arrays"
    IO_SIZES = "sizing_sizes_are_means"
    OTHER_QUERIES = "sizing_other_queries"
    FEW_QUERIES = "sizing_by_few_queries"
    QUERIES_WAITED = "stand_in_queries_waited"
    MEAN_READS = "sizing_reads_by_mean"


Method = Literal["replay", "stand_in"]
BEHIND = 0.05
"""A stream is behind if more than this share of its I/Os is late, as the replay judges it."""
WIDE = 2.0
"""A gap between two levels is wide above this multiple of the search's tolerance: the ceiling may be anywhere within
it."""


@dataclass(frozen=True)
class Point:
    """A level that was tried, with the mean time of its reads."""

    level: float
    read_ms: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Reach:
    """The highest load that a candidate carried by one method, in multiples of the busiest windows."""

    method: Method
    low: float
    """The highest level that was carried, 0 if none was."""
    high: float | None
    """The lowest level that broke, None if none did."""
    middle: float | None
    """The estimate of the ceiling; None unless both `low` and `high` are known."""
    runs: int
    """The number of runs that were searched."""
    unconfirmed: int
    """The number of runs without a result, which are ignored."""
    points: tuple[Point, ...]
    ends: Finding | None = None
    apart: tuple[float, float] | None = None
    """Two adjacent levels with a wide gap between them, under another service level."""

    @property
    def is_known(self) -> bool:
        return self.low > 0 or self.high is not None


def replay_reach(replay: Replay, read_ms: float | None = None) -> Reach:
    """Return the reach of the replay; under another limit on reads, if `read_ms` is given."""
    tried = [level.changed(limits=_deciding_limits(level, replay.decides)) for level in replay.levels]
    if read_ms:
        tried = [level.changed(**_judge_again(level, read_ms, share_slower_than(level, read_ms))) for level in tried]
    answer = _bracket(tried) if read_ms else (replay.outcome, replay.holds, replay.breaks)
    outcome, holds, breaks = _confirm_break(answer, tried)
    points = [Point(level.level, _mean_read_ms(level), level.verdict) for level in tried]
    ends = next(
        (_end_of_replay(level) for level in reversed(tried) if level.level == breaks and level.verdict != "held"), None
    )
    apart = _wide_gap(holds, breaks, replay.tolerance, points) if read_ms else None
    return _reach("replay", [(outcome, holds, breaks)], points, ends, apart)


def stand_in_reach(folder: Path, demand: Demand, read_ms: float | None = None) -> Reach:
    """Return the reach of the stand-in over all runs of its experiment's folder.

    Its levels are the measured I/Os of data, as multiples of those in the busiest window of the `demand`, because at
    level 1 a stand-in only approximates the profile.
    """
    results = ceilings([summarise_run(record, "run") for record in find_records([folder])])
    if read_ms:
        results = [_judge_ceiling_again(ceiling, read_ms) for ceiling in results]
    results = [_scale_to_measured(_confirm_ceiling(ceiling), demand) for ceiling in results]
    points = [
        Point(
            level.seen.level,
            _value_of_reads(level.seen) or (level.step.storage.data.read_ms if level.step.storage.data else None),
            level.seen.verdict,
        )
        for ceiling in results
        for level in ceiling.levels
    ]
    gaps = (
        [_wide_gap(ceiling.holds, ceiling.breaks, ceiling.tolerance, points) for ceiling in results] if read_ms else []
    )
    apart = next(filter(None, gaps), None)
    ends = next((end for ceiling in results if (end := _end_of_stand_in(ceiling))), None)
    return _reach(
        "stand_in", [(ceiling.outcome, ceiling.holds, ceiling.breaks) for ceiling in results], points, ends, apart
    )


_Answer = tuple[Outcome | None, float | None, float | None]


def _reach(
    method: Method,
    answers: Sequence[_Answer],
    points: Sequence[Point],
    ends: Finding | None,
    apart: tuple[float, float] | None,
) -> Reach:
    confirmed = [
        (holds or 0.0, breaks) for outcome, holds, breaks in answers if outcome in ("found", "at_least", "none")
    ]
    between = [(holds, breaks) for holds, breaks in confirmed if holds and breaks]
    # A mean of ceilings needs both ends of every run. Without them only the outermost ends are certain.
    middle, low, high = None, 0.0, None
    if confirmed and len(between) == len(confirmed):
        middle, low, high = mean_ceiling(between)
    elif confirmed:
        low = min(holds for holds, _ in confirmed)
        highs = [breaks for _, breaks in confirmed if breaks is not None]
        high = max(highs) if len(highs) == len(confirmed) else None
    return Reach(method, low, high, middle, len(answers), len(answers) - len(confirmed), tuple(points), ends, apart)


def _deciding_limits(level: ReplayLevel, decides: Decides) -> tuple[LimitSeen, ...]:
    """Return the limits that decided the verdict of the level: the other limit was only noted."""
    return tuple(limit for limit in level.limits if (limit.percentile is None) == (decides == "mean"))


def share_slower_than(level: ReplayLevel, read_ms: float) -> float | None:
    """Return the share of a level's reads that took longer, or None if it is not known of each window."""
    if len(level.windows) > 1:
        return None
    counts = [counted for stream in level.streams if stream.name == "reads" for counted in stream.histogram]
    total = sum(count for _, count in counts)
    return sum(count for ms, count in counts if ms > read_ms) / total if total else None


def _judge_again(level: LevelSeen, read_ms: float, slower: float | None = None) -> dict[str, object]:
    """Return the limits and the verdict of a level under another limit on its reads; `slower` is the share of reads
    above it."""
    if not any(limit.of == "reads" for limit in level.limits) and not level.backlog:
        raise StallmarkError(
            "A level was measured without a limit on reads, so it cannot be judged by another: omit --slo."
        )
    limits = tuple(_judge_limit(limit, read_ms, slower) if limit.of == "reads" else limit for limit in level.limits)
    verdicts = {_likelier_verdict(limit) for limit in limits}
    verdict = next((possible for possible in ("broke", "undecided") if possible in verdicts), "held")
    return {"limits": limits, "verdict": "broke" if level.backlog else verdict}


def _judge_limit(seen: LimitSeen, read_ms: float, slower: float | None) -> LimitSeen:
    if seen.percentile is not None:
        verdict: Verdict = "undecided" if slower is None else "broke" if slower > seen.limit else "held"
        return seen.changed(limit_ms=read_ms, value=slower, low=None, high=None, verdict=verdict)
    if seen.value is None or seen.low is None or seen.high is None:
        return seen.changed(limit_ms=read_ms, limit=read_ms)
    verdict = "broke" if seen.low > read_ms else "held" if seen.high < read_ms else "undecided"
    return seen.changed(limit_ms=read_ms, limit=read_ms, verdict=verdict)


def _likelier_verdict(seen: LimitSeen) -> Verdict:
    """Return the verdict of a limit; an inconclusive limit counts by its measured value."""
    if seen.verdict != "undecided" or seen.value is None:
        return seen.verdict
    return "broke" if seen.value > seen.limit else "held"


def _bracket(levels: Sequence[LevelSeen]) -> _Answer:
    """Return the answer that the levels give."""
    seen = [search.LevelResult(level.level, search.Verdict(level.verdict)) for level in levels]
    holds, breaks = search.bracket(seen)
    outcome: Outcome | None = "found" if holds and breaks else "at_least" if holds else "none" if breaks else None
    return outcome, holds, breaks


def _confirm_break(answer: _Answer, levels: Sequence[LevelSeen]) -> _Answer:
    """Return an answer whose `breaks` level really broke: a level with too few measurements ends a search as well."""
    outcome, holds, breaks = answer
    if breaks is None or any(level.verdict != "undecided" for level in levels if level.level == breaks):
        return answer
    *_, above = _bracket([level for level in levels if level.verdict != "undecided"])
    return outcome if holds or above else None, holds, above


def _confirm_ceiling(ceiling: Ceiling) -> Ceiling:
    answer = (ceiling.outcome, ceiling.holds, ceiling.breaks)
    outcome, holds, breaks = _confirm_break(answer, [level.seen for level in ceiling.levels])
    return replace(ceiling, outcome=outcome, holds=holds, breaks=breaks)


def _judge_ceiling_again(ceiling: Ceiling, read_ms: float) -> Ceiling:
    levels = [replace(level, seen=level.seen.changed(**_judge_again(level.seen, read_ms))) for level in ceiling.levels]
    outcome, holds, breaks = _bracket([level.seen for level in levels])
    return replace(ceiling, levels=levels, outcome=outcome, holds=holds, breaks=breaks)


def _scale_to_measured(ceiling: Ceiling, demand: Demand) -> Ceiling:
    """Return a ceiling whose levels are the measured I/Os, as multiples of the demand.

    The I/Os of level 1 are taken from the highest levels that held. At far lower levels a transaction may read more,
    from cold caches; at higher levels a server does less than requested.
    """
    counted = ("reads", "writes") if demand.log_known else ("reads",)
    held = [(level.seen.level, level.step.storage.data) for level in ceiling.levels if level.seen.verdict == "held"]
    top = max((level for level, _ in held), default=0.0)
    held = [(level, data) for level, data in held if level > top / 2]
    asked_s = sum(level * data.seconds for level, data in held if data)
    ios = sum(getattr(data, name) for _, data in held if data for name in counted)
    wanted = sum(demand.windows[0].mean(name) for name in counted)
    # Without measured I/Os or a demand the requested levels are the best known.
    if not asked_s or not ios or not wanted:
        return ceiling
    scale = ios / asked_s / wanted
    levels = [replace(level, seen=level.seen.changed(level=level.seen.level * scale)) for level in ceiling.levels]
    holds, breaks = (None if level is None else level * scale for level in (ceiling.holds, ceiling.breaks))
    return replace(ceiling, levels=levels, holds=holds, breaks=breaks)


def _wide_gap(
    holds: float | None, breaks: float | None, tolerance: float, points: Sequence[Point]
) -> tuple[float, float] | None:
    """Return two levels with a wide gap and no tried level between them, or None."""
    if not holds or not breaks or breaks <= holds * (1 + WIDE * tolerance):
        return None
    return None if any(holds < point.level < breaks for point in points) else (holds, breaks)


def _mean_read_ms(level: ReplayLevel) -> float | None:
    """Return the mean time of reads; with several windows, that of the worst window, which decides."""
    if len(level.windows) > 1:
        return next((limit.value for limit in level.limits if limit.percentile is None), None)
    return next((stream.mean_ms for stream in level.streams if stream.name == "reads"), None)


def _value_of_reads(seen: LevelSeen) -> float | None:
    return next((limit.value for limit in seen.limits if limit.of == "reads"), None)


def _end_of_replay(level: ReplayLevel) -> Finding:
    """Return the limit of a level that broke: slow reads, or streams that fell behind. With several windows, name those
    concerned."""
    slow = [limit for limit in level.limits if limit.value is not None and limit.value > limit.limit]
    behind = _streams_behind(level) if level.backlog else {}
    slow_in = [window for window in level.windows for limit in window.limits if slow and _is_same(limit, slow[0])]
    behind_in = [window for window in level.windows if behind.keys() & window.behind.keys()]
    several = len(level.windows) > 1
    return info(
        SizingKind.REPLAY_ENDS,
        level=level.level,
        read_ms=(_mean_read_ms(level) if slow[0].percentile else slow[0].value) if slow else None,
        slower=slow[0].value if slow and slow[0].percentile else None,
        limit_ms=slow[0].limit_ms if slow else None,
        slow_in=[slow_in[0].because, slow_in[0].begin] if slow_in and several else None,
        behind=sorted(behind, key=lambda name: behind[name], reverse=True),
        behind_in=[[window.because, window.begin] for window in behind_in] if several else [],
        late=max(behind.values(), default=None),
    )


def _streams_behind(level: ReplayLevel) -> dict[StreamName, float]:
    """Return the streams that fell behind, each with the largest share of late I/Os in any window."""
    if level.windows:
        shares = [item for window in level.windows for item in window.behind.items()]
        return {name: max(share for stream, share in shares if stream == name) for name, _ in shares}
    return {
        stream.name: _late_share(stream) for stream in level.streams if stream.wanted and _late_share(stream) > BEHIND
    }


def _is_same(limit: LimitSeen, other: LimitSeen) -> bool:
    return (limit.percentile, limit.value) == (other.percentile, other.value)


def _late_share(stream: Stream) -> float:
    return max(stream.late, stream.wanted - stream.ios) / stream.wanted


def _end_of_stand_in(ceiling: Ceiling) -> Finding | None:
    if not (step := ceiling.limit_step):
        return None
    busy = {"busy_share": step.storage.busy_share, "cpu_share": step.server.cpu_busy_share}
    facts = {"missed": missed_limits(ceiling), "verdict": ceiling.limit, **busy}
    return info(SizingKind.STAND_IN_ENDS, level=ceiling.breaks, **facts)
