"""The reach of a candidate: the highest multiple of a profile's load that a replay or a stand-in showed it to carry.

It is what the search found. Under another service level it is judged anew, by the levels that were tried.
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
"""The share of a stream's I/Os that are late where it is behind, as the replay judges it."""
WIDE = 2.0
"""So many times the tolerance of their search apart, two levels say little of what lies between them."""


@dataclass(frozen=True)
class Point:
    """A level that was tried, with the mean time of its reads."""

    level: float
    read_ms: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Reach:
    """How far a candidate came by one method, in multiples of the busiest windows. It lies between `low`, which was
    carried (0 where nothing was), and `high`, which was not (None where nothing broke); `middle` is None unless both
    were found. `runs` that were searched, and of these `unconfirmed` ones that count for nothing. `apart`: two levels
    that leave much between them, where they are judged anew."""

    method: Method
    low: float
    high: float | None
    middle: float | None
    runs: int
    unconfirmed: int
    points: tuple[Point, ...]
    ends: Finding | None = None
    apart: tuple[float, float] | None = None

    @property
    def known(self) -> bool:
        return self.low > 0 or self.high is not None


def replay_reach(replay: Replay, read_ms: float | None = None) -> Reach:
    """Return how far the replay came; under another limit on reads, where `read_ms` is given."""
    tried = [level.changed(limits=_deciding(level, replay.decides)) for level in replay.levels]
    if read_ms:
        tried = [level.changed(**_judged(level, read_ms, slower_than(level, read_ms))) for level in tried]
    answer = _bracket(tried) if read_ms else (replay.outcome, replay.holds, replay.breaks)
    outcome, holds, breaks = _seen_to_break(answer, tried)
    points = [Point(one.level, _reads(one), one.verdict) for one in tried]
    ends = next((_ends(one) for one in reversed(tried) if one.level == breaks and one.verdict != "held"), None)
    apart = _apart(holds, breaks, replay.tolerance, points) if read_ms else None
    return _reach("replay", [(outcome, holds, breaks)], points, ends, apart)


def stand_in_reach(folder: Path, demand: Demand, read_ms: float | None = None) -> Reach:
    """Return how far the stand-in came, from the folder of its experiment: all of its runs together.

    Its levels are the I/Os of data that were measured, as multiples of those in the busiest window of the `demand`: at
    level 1 a stand-in comes near the profile, and no nearer.
    """
    found = ceilings([summarise_run(record, "run") for record in find_records([folder])])
    if read_ms:
        found = [_anew(one, read_ms) for one in found]
    found = [_measured(_without_unseen(one), demand) for one in found]
    points = [
        Point(
            level.seen.level,
            _read_ms(level.seen) or (level.step.storage.data.read_ms if level.step.storage.data else None),
            level.seen.verdict,
        )
        for one in found
        for level in one.levels
    ]
    gaps = [_apart(one.holds, one.breaks, one.tolerance, points) for one in found] if read_ms else []
    apart = next(filter(None, gaps), None)
    ends = next((end for one in found if (end := _stand_in_ends(one))), None)
    return _reach("stand_in", [(one.outcome, one.holds, one.breaks) for one in found], points, ends, apart)


_Answer = tuple[Outcome | None, float | None, float | None]


def _reach(
    method: Method,
    answers: Sequence[_Answer],
    points: Sequence[Point],
    ends: Finding | None,
    apart: tuple[float, float] | None,
) -> Reach:
    told = [(holds or 0.0, breaks) for outcome, holds, breaks in answers if outcome in ("found", "at_least", "none")]
    between = [(holds, breaks) for holds, breaks in told if holds and breaks]
    middle, low, high = None, 0.0, None
    if told and len(between) == len(told):
        middle, low, high = mean_ceiling(between)
    elif told:
        low = min(holds for holds, _ in told)
        highs = [breaks for _, breaks in told if breaks is not None]
        high = max(highs) if len(highs) == len(told) else None
    return Reach(method, low, high, middle, len(answers), len(answers) - len(told), tuple(points), ends, apart)


def _deciding(level: ReplayLevel, decides: Decides) -> tuple[LimitSeen, ...]:
    """Return the limit by which the level was judged: the other was only noted."""
    return tuple(one for one in level.limits if (one.percentile is None) == (decides == "mean"))


def slower_than(level: ReplayLevel, read_ms: float) -> float | None:
    """Return the share of the reads of a level that took longer; None where that is not known of each window."""
    if len(level.windows) > 1:
        return None
    counts = [counted for stream in level.streams if stream.name == "reads" for counted in stream.histogram]
    total = sum(count for _, count in counts)
    return sum(count for ms, count in counts if ms > read_ms) / total if total else None


def _judged(level: LevelSeen, read_ms: float, slower: float | None = None) -> dict[str, object]:
    """Return the limits and the verdict of a level under another limit on its reads, of which a share was `slower`."""
    if not any(one.of == "reads" for one in level.limits) and not level.backlog:
        raise StallmarkError(
            "A level was measured without a limit on reads: it cannot be judged by one, leave out --slo."
        )
    limits = tuple(_against(one, read_ms, slower) if one.of == "reads" else one for one in level.limits)
    verdicts = {_nearest(one) for one in limits}
    verdict = next((one for one in ("broke", "undecided") if one in verdicts), "held")
    return {"limits": limits, "verdict": "broke" if level.backlog else verdict}


def _against(seen: LimitSeen, read_ms: float, slower: float | None) -> LimitSeen:
    if seen.percentile is not None:
        verdict: Verdict = "undecided" if slower is None else "broke" if slower > seen.limit else "held"
        return seen.changed(limit_ms=read_ms, value=slower, low=None, high=None, verdict=verdict)
    if seen.value is None or seen.low is None or seen.high is None:
        return seen.changed(limit_ms=read_ms, limit=read_ms)
    verdict = "broke" if seen.low > read_ms else "held" if seen.high < read_ms else "undecided"
    return seen.changed(limit_ms=read_ms, limit=read_ms, verdict=verdict)


def _nearest(seen: LimitSeen) -> Verdict:
    """Return the verdict of a limit; one in the balance counts by what was seen."""
    if seen.verdict != "undecided" or seen.value is None:
        return seen.verdict
    return "broke" if seen.value > seen.limit else "held"


def _bracket(levels: Sequence[LevelSeen]) -> _Answer:
    """Return the answer that these levels give."""
    seen = [search.LevelResult(one.level, search.Verdict(one.verdict)) for one in levels]
    holds, breaks = search.bracket(seen)
    outcome: Outcome | None = "found" if holds and breaks else "at_least" if holds else "none" if breaks else None
    return outcome, holds, breaks


def _seen_to_break(answer: _Answer, levels: Sequence[LevelSeen]) -> _Answer:
    """Return an answer whose `breaks` was seen to break: a level of which too little was seen ends a search as well."""
    outcome, holds, breaks = answer
    if breaks is None or any(one.verdict != "undecided" for one in levels if one.level == breaks):
        return answer
    *_, above = _bracket([one for one in levels if one.verdict != "undecided"])
    return outcome if holds or above else None, holds, above


def _without_unseen(one: Ceiling) -> Ceiling:
    answer = (one.outcome, one.holds, one.breaks)
    outcome, holds, breaks = _seen_to_break(answer, [level.seen for level in one.levels])
    return replace(one, outcome=outcome, holds=holds, breaks=breaks)


def _anew(one: Ceiling, read_ms: float) -> Ceiling:
    levels = [replace(level, seen=level.seen.changed(**_judged(level.seen, read_ms))) for level in one.levels]
    outcome, holds, breaks = _bracket([level.seen for level in levels])
    return replace(one, levels=levels, outcome=outcome, holds=holds, breaks=breaks)


def _measured(one: Ceiling, demand: Demand) -> Ceiling:
    """Return a ceiling whose levels are the I/Os that were done, as multiples of the demand. What belongs to a level of
    1 is taken from the highest levels that held. Far below them a transaction may read more, from caches that are cold
    yet; beyond them a server does less than it is asked to."""
    counted = ("reads", "writes") if demand.log_known else ("reads",)
    held = [(level.seen.level, level.step.storage.data) for level in one.levels if level.seen.verdict == "held"]
    top = max((level for level, _ in held), default=0.0)
    held = [(level, data) for level, data in held if level > top / 2]
    asked_s = sum(level * data.seconds for level, data in held if data)
    ios = sum(getattr(data, name) for _, data in held if data for name in counted)
    wanted = sum(demand.windows[0].mean(name) for name in counted)
    if not asked_s or not ios or not wanted:
        return one
    scale = ios / asked_s / wanted
    levels = [replace(level, seen=level.seen.changed(level=level.seen.level * scale)) for level in one.levels]
    holds, breaks = (None if level is None else level * scale for level in (one.holds, one.breaks))
    return replace(one, levels=levels, holds=holds, breaks=breaks)


def _apart(
    holds: float | None, breaks: float | None, tolerance: float, points: Sequence[Point]
) -> tuple[float, float] | None:
    """Return two levels that are far apart, with none between them that was tried."""
    if not holds or not breaks or breaks <= holds * (1 + WIDE * tolerance):
        return None
    return None if any(holds < point.level < breaks for point in points) else (holds, breaks)


def _reads(level: ReplayLevel) -> float | None:
    """Return the mean time of the reads; of several windows that of the one that does worst, which decides."""
    if len(level.windows) > 1:
        return next((one.value for one in level.limits if one.percentile is None), None)
    return next((one.mean_ms for one in level.streams if one.name == "reads"), None)


def _read_ms(seen: LevelSeen) -> float | None:
    return next((one.value for one in seen.limits if one.of == "reads"), None)


def _ends(level: ReplayLevel) -> Finding:
    """Return what ends at the level of a replay that broke: a limit that was missed, or streams that fell behind. Of
    several windows those are named in which it does."""
    slow = [one for one in level.limits if one.value is not None and one.value > one.limit]
    behind = _behind(level) if level.backlog else {}
    slow_in = [window for window in level.windows for one in window.limits if slow and _is_same(one, slow[0])]
    behind_in = [window for window in level.windows if behind.keys() & window.behind.keys()]
    several = len(level.windows) > 1
    return info(
        SizingKind.REPLAY_ENDS,
        level=level.level,
        read_ms=(_reads(level) if slow[0].percentile else slow[0].value) if slow else None,
        slower=slow[0].value if slow and slow[0].percentile else None,
        limit_ms=slow[0].limit_ms if slow else None,
        slow_in=[slow_in[0].because, slow_in[0].begin] if slow_in and several else None,
        behind=sorted(behind, key=lambda name: behind[name], reverse=True),
        behind_in=[[one.because, one.begin] for one in behind_in] if several else [],
        late=max(behind.values(), default=None),
    )


def _behind(level: ReplayLevel) -> dict[StreamName, float]:
    """Return the streams that fell behind, with the share of their I/Os that were late, in the window where most."""
    if level.windows:
        shares = [item for window in level.windows for item in window.behind.items()]
        return {name: max(share for of, share in shares if of == name) for name, _ in shares}
    return {one.name: _late(one) for one in level.streams if one.wanted and _late(one) > BEHIND}


def _is_same(one: LimitSeen, other: LimitSeen) -> bool:
    return (one.percentile, one.value) == (other.percentile, other.value)


def _late(stream: Stream) -> float:
    return max(stream.late, stream.wanted - stream.ios) / stream.wanted


def _stand_in_ends(one: Ceiling) -> Finding | None:
    if not (step := one.limit_step):
        return None
    busy = {"busy_share": step.storage.busy_share, "cpu_share": step.server.cpu_busy_share}
    facts = {"missed": missed_limits(one), "verdict": one.limit, **busy}
    return info(SizingKind.STAND_IN_ENDS, level=one.breaks, **facts)
