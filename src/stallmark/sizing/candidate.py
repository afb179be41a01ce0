"""The answer for one candidate: how much of the need it carries, against today's hardware, and what was not tested."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.probe.saturation import page_cache_cautions
from stallmark.analysis.profile.rates import MORE
from stallmark.analysis.profile.summary import PERCENTILES, ProfileSummary, percentile_of
from stallmark.analysis.read.query_figures import QUERIES
from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.sizing.demand import TOGETHER, ios_of_minutes
from stallmark.sizing.manifest import Demand, Peak, Sizing
from stallmark.sizing.reach import Method, Reach, SizingKind, replay_reach, stand_in_reach
from stallmark.stats.thresholds import MATCHED_WITHIN

# The need: the multiple of a profile's busiest windows that new hardware is to carry.


@dataclass(frozen=True)
class Need:
    """The need: `multiple` times the I/Os of the busiest window, `window_per_s`; growth is part of it. `percentile` is
    the one that was asked for, None if the busiest window counts; `minutes_per_s`: its I/Os per second, None if there
    are too few `minutes` for it, and the busiest window counts in its place."""

    multiple: float
    window_per_s: float
    growth: float = 1.0
    percentile: str | None = None
    minutes: int = 0
    minutes_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The need in I/Os per second, growth included."""
        return self.multiple * self.window_per_s


def need_of(found: ProfileSummary, demand: Demand, percentile: str | None, growth: float) -> Need:
    """Return `growth` × the I/Os per second of a percentile of the minutes, as a multiple of the busiest window.

    Raise StallmarkError if the percentile has no I/O."""
    window_per_s = busiest_per_s(demand)
    if percentile is None or not window_per_s:
        return Need(growth, window_per_s, growth)
    minutes = np.sort(ios_of_minutes(found.intervals, found.rates))
    minutes_per_s = percentile_of(minutes, PERCENTILES[percentile])
    if minutes_per_s == 0:
        raise StallmarkError(f"The {percentile} of the profile has no I/O: give a higher --percentile, or none.")
    multiple = growth * (1.0 if minutes_per_s is None else minutes_per_s / window_per_s)
    return Need(multiple, window_per_s, growth, percentile, len(minutes), minutes_per_s)


def busiest_per_s(demand: Demand) -> float:
    """Return the I/Os per second of the busiest window, writes of the log included."""
    return sum(demand.windows[0].mean(name) for name in ("reads", "writes", "log_writes"))


# The answer for one candidate: how much of the need it carries, by the replay, by the stand-in, and by both.

Standing = Literal["carries", "carries_not", "open", "unknown"]


@dataclass(frozen=True)
class CandidateAnswer:
    """A candidate under a need. Headroom is what it reaches ÷ the need: `low` and `high` are its ends by all methods
    together, `middle` is the lowest ceiling of a method."""

    name: str
    folder: Path
    sizing: Sizing
    need: Need
    service_level: ServiceLevelObjective
    replay: Reach | None
    stand_in: Reach | None

    @property
    def reaches(self) -> list[Reach]:
        return [one for one in (self.replay, self.stand_in) if one is not None and one.known]

    @property
    def without_answer(self) -> list[Method]:
        """Return the methods that were tried and came to no answer."""
        return [one.method for one in (self.replay, self.stand_in) if one is not None and not one.known]

    @property
    def deciding(self) -> Reach | None:
        """Return the lower reach."""
        return min(self.reaches, key=lambda one: (one.low, one.high or float("inf")), default=None)

    @property
    def low(self) -> float | None:
        return self.deciding.low / self.need.multiple if self.deciding else None

    @property
    def high(self) -> float | None:
        return min((one.high / self.need.multiple for one in self.reaches if one.high is not None), default=None)

    @property
    def middle(self) -> float | None:
        if self.deciding is None or self.deciding.middle is None:
            return None
        # Where levels of one method lie wide apart, its own middle may be above the level that broke by the other.
        return min(one.middle for one in self.reaches if one.middle is not None) / self.need.multiple

    @property
    def ends(self) -> Finding | None:
        """Return what ends first: at the lowest level that broke by any method."""
        broke = [one for one in self.reaches if one.high is not None]
        return min(broke, key=lambda one: (one.high, one is not self.deciding)).ends if broke else None

    @property
    def untried(self) -> bool:
        """Return whether no load was tried above the highest that was carried."""
        levels = [point.level for one in (self.replay, self.stand_in) if one is not None for point in one.points]
        return self.deciding is not None and max(levels, default=0.0) <= self.deciding.low

    @property
    def standing(self) -> Standing:
        if self.low is None:
            return "unknown"
        if self.high is not None and self.high <= 1:
            return "carries_not"
        whole = self.sizing.status == "complete" and not self.without_answer
        played = self.sizing.demand.peaks is not None and not unplayed(self.sizing.demand)
        return "carries" if self.low >= 1 and whole and played else "open"

    @property
    def emulated(self) -> bool:
        """Tell whether any of its storage was emulated, that of the data or that of the log."""
        replay, devices = self.sizing.replay, self.sizing.devices
        emulated = devices.of("data").emulated_array or devices.of("wal").emulated_array
        return bool(replay and replay.emulated) or emulated is not None

    @property
    def memory_bytes(self) -> float | None:
        """Return the buffer pool that it is to have: where nobody said so, as large as today's."""
        return self.sizing.candidate.memory_bytes or self.sizing.demand.pool_bytes

    @property
    def per_s(self) -> float | None:
        """Return the transactions per second of the profile that it was seen to carry; None where that is not known."""
        transactions = self.sizing.demand.transactions
        return self.deciding.low * transactions if self.deciding and self.deciding.low and transactions else None

    def per_s_of(self, unit: float | None) -> float | None:
        """Return these transactions per unit of cost, watts or height."""
        return self.per_s / unit if self.per_s is not None and unit else None


def unplayed(demand: Demand) -> list[Peak]:
    """Return the peaks of the profile that no window which was played comes near to."""
    return [one for one in demand.peaks or () if one.per_s > MORE * one.played]


def answer_of(
    folder: Path, sizing: Sizing, name: str, need: Need, other: ServiceLevelObjective | None
) -> CandidateAnswer:
    """Return the answer for a candidate; under another service level than it was measured with, where one is given."""
    read_ms = other.read_ms if other else None
    ceiling = sizing.stand_in.ceiling if sizing.stand_in else None
    return CandidateAnswer(
        name,
        folder,
        sizing,
        need,
        other or sizing.service_level,
        replay_reach(sizing.replay, read_ms) if sizing.replay and sizing.replay.levels else None,
        stand_in_reach(folder / ceiling, sizing.demand, read_ms) if ceiling else None,
    )


def finding_of(found: CandidateAnswer) -> Finding:
    """Return the answer as a finding."""
    span = {"headroom": found.middle, "low": found.low, "high": found.high}
    facts: dict[str, Any] = {"candidate": found.name, **span, "ends": found.ends}
    match found.standing:
        case "carries":
            return info(SizingKind.CARRIES, **facts, untried=found.untried)
        case "carries_not":
            return caution(SizingKind.CARRIES_NOT, **facts)
        case "open":
            demand = found.sizing.demand
            facts |= {"whole": found.sizing.status == "complete", "without": found.without_answer}
            facts |= {"unplayed": [one.measure for one in unplayed(demand)], "peaks_known": demand.peaks is not None}
            return caution(SizingKind.OPEN, **facts, untried=found.untried)
        case "unknown":
            return caution(SizingKind.UNKNOWN, candidate=found.name)


# Candidates against the hardware of today, where that was measured by the same method.


def against_today(today: CandidateAnswer, candidates: Sequence[CandidateAnswer]) -> Iterator[Finding]:
    """Yield the ratio of the ceilings of each candidate and today's hardware, method by method."""
    if today.deciding and today.deciding.high is not None and today.deciding.high <= 1:
        yield caution(SizingKind.TODAY_BELOW, today=today.name, high=today.deciding.high, method=today.deciding.method)
    for one in candidates:
        for ours, theirs in ((one.replay, today.replay), (one.stand_in, today.stand_in)):
            if ours is not None and theirs is not None:
                yield _ratio(one.name, today.name, ours, theirs)


def _ratio(candidate: str, today: str, ours: Reach, theirs: Reach) -> Finding:
    facts = {"candidate": candidate, "today": today, "method": ours.method}
    if ours.middle is None or theirs.middle is None or ours.high is None or theirs.high is None:
        return info(SizingKind.TODAY_OPEN, **facts)
    ratio, low, high = ours.middle / theirs.middle, ours.low / theirs.high, ours.high / theirs.low
    return info(SizingKind.TODAY, **facts, ratio=ratio, low=low, high=high)


# The limits of a sizing: what was not tested, or not as it will be.

POOL_WITHIN = 0.1
BEHIND_MS = 3.0
"""I/Os of a replay that are issued so late at the median, without a backlog, waited for a CPU of this machine. On an
idle one they are not late; earlier records have 1.2 to 1.8 ms there, as fio has their moments in whole ms."""
SMALLER = 0.9
WAITED = 0.1
"""The share of the queries that may wait for a stream: chance makes as many due at once."""


def untested_of_candidate(found: CandidateAnswer) -> Iterator[Finding]:
    """Yield what was not tested of a candidate."""
    sizing, name = found.sizing, found.name
    if sizing.status != "complete":
        yield caution(SizingKind.UNFINISHED, candidate=name, running=sizing.status == "running", said=sizing.because)
    if found.replay is None:
        yield caution(SizingKind.NO_REPLAY, candidate=name)
    if found.stand_in is None:
        yield caution(SizingKind.NO_STAND_IN, candidate=name, replayed=found.replay is not None)
    for reach in (found.replay, found.stand_in):
        if reach and reach.unconfirmed:
            facts = {"method": reach.method, "runs": reach.unconfirmed, "of": reach.runs}
            yield caution(SizingKind.UNCONFIRMED, candidate=name, **facts, running=sizing.status == "running")
        if reach and reach.apart:
            other = found.service_level.read_ms != sizing.service_level.read_ms
            yield caution(
                SizingKind.GAP, candidate=name, method=reach.method, levels=list(reach.apart), other_level=other
            )
    yield from _of_replay(found)
    yield from _of_stand_in(found)


def _of_replay(found: CandidateAnswer) -> Iterator[Finding]:
    if (replay := found.sizing.replay) is None:
        return
    yield from page_cache_cautions((found.name, outcome) for outcome in replay.direct_io.values())
    if replay.played < 1:
        yield caution(SizingKind.COMPRESSED, candidate=found.name, played=replay.played)
    kept_up = [one for level in replay.levels if not level.backlog for one in level.streams]
    late = max((one for one in kept_up if one.behind_ms), key=lambda one: one.behind_ms or 0.0, default=None)
    if late and late.behind_ms and late.behind_ms > BEHIND_MS:
        yield caution(SizingKind.BEHIND, candidate=found.name, stream=late.name, behind_ms=late.behind_ms)
    yield from _smaller(found, "replay", replay.file_bytes)
    held = [one for one in replay.levels if one.level == replay.holds]
    answered = replay.outcome in ("found", "at_least")
    slow = [limit for level in held for limit in level.limits if limit.percentile and limit.verdict == "broke"]
    if slow and answered and replay.decides == "mean" and found.service_level == found.sizing.service_level:
        facts = {"percentile": slow[-1].percentile, "limit_ms": slow[-1].limit_ms, "slower": slow[-1].value}
        yield caution(SizingKind.SLOW_PERCENTILE, candidate=found.name, **facts)
    grouped = [(one.level, stream.grouped) for one in replay.levels for stream in one.streams if stream.grouped > 1]
    if grouped:
        yield caution(
            SizingKind.GROUPED, candidate=found.name, level=min(grouped)[0], grouped=max(n for _, n in grouped)
        )


def _of_stand_in(found: CandidateAnswer) -> Iterator[Finding]:
    if (stand_in := found.sizing.stand_in) is None:
        return
    compared = [(one, one.reached / one.wanted) for one in stand_in.matched if one.wanted and one.reached is not None]
    if off := [(one.name, ratio) for one, ratio in compared if abs(ratio - 1) > MATCHED_WITHIN]:
        facts = {"quantities": [name for name, _ in off], "ratios": [ratio for _, ratio in off]}
        yield caution(SizingKind.UNMATCHED, candidate=found.name, **facts, searched=found.stand_in is not None)
    if lacking := [one.name for one in stand_in.matched if one.wanted is None or one.reached is None]:
        yield caution(SizingKind.NOT_COMPARED, candidate=found.name, quantities=lacking)
    for load, ended in stand_in.queries.items():
        if stand_in.rates.get(load) and ended < QUERIES:
            yield caution(SizingKind.FEW_QUERIES, candidate=found.name, load=load, ended=ended, of=QUERIES)
    for load, share in stand_in.waited.items():
        if share > WAITED:
            yield caution(SizingKind.QUERIES_WAITED, candidate=found.name, load=load, share=share)
    yield from _smaller(found, "stand_in", stand_in.data_bytes)
    data_bytes, pool_bytes = found.sizing.demand.database_bytes, found.memory_bytes
    if data_bytes and pool_bytes and stand_in.pool_share is not None:
        share = min(1.0, pool_bytes / data_bytes)
        if abs(stand_in.pool_share / share - 1) > POOL_WITHIN:
            yield caution(SizingKind.POOLS_DIFFER, candidate=found.name, shares=[share, stand_in.pool_share])


def _smaller(found: CandidateAnswer, method: Method, own_bytes: int) -> Iterator[Finding]:
    database_bytes = found.sizing.demand.database_bytes
    if database_bytes and own_bytes < SMALLER * database_bytes:
        facts = {"method": method, "own_bytes": own_bytes, "database_bytes": database_bytes}
        yield caution(SizingKind.SMALLER, candidate=found.name, **facts)


def untested_of_profile(candidates: Sequence[CandidateAnswer], profile: ProfileSummary | None) -> Iterator[Finding]:
    """Yield what was played of the profile, and what was not."""
    demand = candidates[0].sizing.demand
    windows = [[one.because, one.begin] for one in demand.windows]
    replayed = any(one.replay for one in candidates)
    lacking = unplayed(demand)
    ratios = [one.per_s / one.played for one in demand.peaks or () if one.played]
    if replayed:
        yield info(
            SizingKind.OTHER_HOURS,
            windows=windows,
            seconds=sum(one.seconds for one in demand.windows),
            span_s=None if profile is None else profile.end - profile.begin,
            most=max([1.0, *ratios]) if demand.peaks is not None and not lacking else None,
            all=demand.peaks == (),  # of one window: there are no others to have a peak
        )
    if demand.peaks is None:
        yield caution(SizingKind.PEAKS_NOT_KNOWN)
    for one in lacking:
        yield caution(SizingKind.NOT_PLAYED, measure=one.measure, begin=one.begin, per_s=one.per_s, played=one.played)
    if demand.beyond and demand.beyond.share > TOGETHER and not lacking:
        beyond = {"measure": demand.beyond.measure, "begin": demand.beyond.begin, "share": demand.beyond.share}
        yield caution(SizingKind.BEYOND_PLAYED, **beyond)
    if (len(windows) > 1 or not replayed) and any(one.stand_in for one in candidates):
        yield info(SizingKind.STAND_IN_WINDOW, windows=len(windows), replayed=replayed)


def untested_of_all(
    candidates: Sequence[CandidateAnswer], growth: float, profile: ProfileSummary | None
) -> Iterator[Finding]:
    """Yield what was not tested of any candidate."""
    demand = candidates[0].sizing.demand
    replayed = any(one.replay for one in candidates)
    if not demand.log_known and replayed:
        yield caution(SizingKind.LOG_AMONG_DATA)
    if growth > 1:
        yield info(SizingKind.DATA_GROWTH, growth=growth)
    if replayed:
        yield info(SizingKind.IO_SIZES)
        yield info(SizingKind.CACHES)
    if stand_ins := {one.name: one.sizing.stand_in for one in candidates if one.stand_in and one.sizing.stand_in}:
        without = [name for name, one in stand_ins.items() if not one.waited]
        yield info(SizingKind.OTHER_QUERIES, without=without, ran=len(without) < len(stand_ins))
    limited = [one for one in candidates if one.service_level.read_ms is not None]
    replays = [one.sizing.replay for one in limited if one.replay and one.sizing.replay]
    by_mean = any(replay.decides == "mean" for replay in replays)
    if by_mean or any(one.stand_in for one in limited):
        yield info(SizingKind.MEAN_READS, stand_in_alone=bool(replays) and not by_mean)
