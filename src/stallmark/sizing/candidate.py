"""The answer for one candidate: the share of the need that it carries, its ratio to today's hardware, and its
limits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stallmark.analysis.cautions import page_cache_cautions
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.profile import PERCENTILES, ProfileSummary, percentile_of
from stallmark.analysis.profile_rates import MORE
from stallmark.analysis.read.queries import QUERY_COUNT
from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.sizing.demand import TOGETHER, ios_of_minutes
from stallmark.sizing.manifest import Demand, Peak, Sizing
from stallmark.sizing.reach import Method, Reach, SizingKind, replay_reach, stand_in_reach
from stallmark.stats.thresholds import MATCHED_WITHIN

# The need: the multiple of a profile's busiest windows that new hardware is to carry.


@dataclass(frozen=True)
class Need:
    """The need: a multiple of the I/Os of the busiest window, growth included."""

    multiple: float
    window_per_s: float
    """The I/Os per second of the busiest window."""
    growth: float = 1.0
    percentile: str | None = None
    """The requested percentile; None if the busiest window counts."""
    minutes: int = 0
    """The number of minutes that the percentile was computed from."""
    minutes_per_s: float | None = None
    """The I/Os per second of the percentile; None with too few minutes, when the busiest window counts instead."""
    interval_s: float = 0.0
    """The time between two samples of the profile: if it is longer than a minute, the percentile is of samples."""

    @property
    def per_s(self) -> float:
        """The need in I/Os per second, growth included."""
        return self.multiple * self.window_per_s


def need_of(profile: ProfileSummary, demand: Demand, percentile: str | None, growth: float) -> Need:
    """Return `growth` × the I/Os per second of a percentile of the minutes, as a multiple of the busiest window.

    Raise StallmarkError if the percentile has no I/O."""
    window_per_s = busiest_per_s(demand)
    if percentile is None or not window_per_s:
        return Need(growth, window_per_s, growth)
    minutes = np.sort(ios_of_minutes(profile.intervals, profile.rates))
    minutes_per_s = percentile_of(minutes, PERCENTILES[percentile])
    if minutes_per_s == 0:
        raise StallmarkError(f"The {percentile} of the profile has no I/O: give a higher --percentile, or none.")
    multiple = growth * (1.0 if minutes_per_s is None else minutes_per_s / window_per_s)
    return Need(multiple, window_per_s, growth, percentile, len(minutes), minutes_per_s, profile.manifest.interval_s)


def busiest_per_s(demand: Demand) -> float:
    """Return the I/Os per second of the busiest window, writes of the log included."""
    return sum(demand.windows[0].mean(name) for name in ("reads", "writes", "log_writes"))


# The answer for one candidate: how much of the need it carries, by the replay, by the stand-in, and by both.

Standing = Literal["carries", "carries_not", "open", "unknown"]


@dataclass(frozen=True)
class CandidateAnswer:
    """The answer for a candidate under a need. Its headroom, the highest carried load ÷ the need, has the ends `low`
    and `high`."""

    name: str
    folder: Path
    sizing: Sizing
    need: Need
    service_level: ServiceLevelObjective
    replay: Reach | None
    stand_in: Reach | None

    @property
    def reaches(self) -> list[Reach]:
        return [reach for reach in (self.replay, self.stand_in) if reach is not None and reach.is_known]

    @property
    def without_answer(self) -> list[Method]:
        """Return the methods that were tried without a result."""
        return [reach.method for reach in (self.replay, self.stand_in) if reach is not None and not reach.is_known]

    @property
    def deciding(self) -> Reach | None:
        """Return the lower reach."""
        return min(self.reaches, key=lambda reach: (reach.low, reach.high or float("inf")), default=None)

    @property
    def low(self) -> float | None:
        return self.deciding.low / self.need.multiple if self.deciding else None

    @property
    def high(self) -> float | None:
        return min((reach.high / self.need.multiple for reach in self.reaches if reach.high is not None), default=None)

    @property
    def middle(self) -> float | None:
        """Return the lowest ceiling of any method ÷ the need, or None if it is unknown."""
        if self.deciding is None or self.deciding.middle is None:
            return None
        # Where levels of one method lie wide apart, its own middle may be above the level that broke by the other.
        return min(reach.middle for reach in self.reaches if reach.middle is not None) / self.need.multiple

    @property
    def ends(self) -> Finding | None:
        """Return the first limit: the one at the lowest level that broke, by any method."""
        broke = [reach for reach in self.reaches if reach.high is not None]
        # The second part of the key decides between equal levels: False, for the deciding method, sorts first.
        return min(broke, key=lambda reach: (reach.high, reach is not self.deciding)).ends if broke else None

    @property
    def untried(self) -> bool:
        """Return True if every tried load was carried, so that the ceiling may be higher."""
        levels = [point.level for reach in (self.replay, self.stand_in) if reach is not None for point in reach.points]
        return self.deciding is not None and max(levels, default=0.0) <= self.deciding.low

    @property
    def standing(self) -> Standing:
        if self.low is None:
            return "unknown"
        if self.high is not None and self.high <= 1:
            return "carries_not"
        # A candidate carries the need only if nothing is pending: every method has a result, every peak was played.
        whole = self.sizing.status == "complete" and not self.without_answer
        played = self.sizing.demand.peaks is not None and not unplayed(self.sizing.demand)
        return "carries" if self.low >= 1 and whole and played else "open"

    @property
    def emulated(self) -> bool:
        """Return True if the storage of the data or the log was emulated."""
        replay, devices = self.sizing.replay, self.sizing.devices
        emulated = devices.for_role("data").emulated_array or devices.for_role("wal").emulated_array
        return bool(replay and replay.emulated) or emulated is not None

    @property
    def memory_bytes(self) -> float | None:
        """Return the size of the candidate's buffer pool; by default the same as today's."""
        return self.sizing.candidate.memory_bytes or self.sizing.demand.pool_bytes

    @property
    def per_s(self) -> float | None:
        """Return the profile's transactions per second that the candidate carried, or None if unknown."""
        transactions = self.sizing.demand.transactions
        return self.deciding.low * transactions if self.deciding and self.deciding.low and transactions else None

    def per_s_of(self, unit: float | None) -> float | None:
        """Return the carried transactions per second, per unit of cost, watts or height."""
        return self.per_s / unit if self.per_s is not None and unit else None


def unplayed(demand: Demand) -> list[Peak]:
    """Return the peaks of the profile that no played window comes near."""
    return [peak for peak in demand.peaks or () if peak.per_s > MORE * peak.played]


def answer_of(
    folder: Path, sizing: Sizing, name: str, need: Need, other: ServiceLevelObjective | None
) -> CandidateAnswer:
    """Return the answer for a candidate, judged by the service level `other` if given, else by its own."""
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


def answer_finding(answer: CandidateAnswer) -> Finding:
    """Return the answer as a finding."""
    span = {"headroom": answer.middle, "low": answer.low, "high": answer.high}
    facts: dict[str, Any] = {"candidate": answer.name, **span, "ends": answer.ends}
    match answer.standing:
        case "carries":
            return info(SizingKind.CARRIES, **facts, untried=answer.untried)
        case "carries_not":
            return caution(SizingKind.CARRIES_NOT, **facts)
        case "open":
            demand = answer.sizing.demand
            facts |= {"whole": answer.sizing.status == "complete", "without": answer.without_answer}
            facts |= {"unplayed": [peak.measure for peak in unplayed(demand)], "peaks_known": demand.peaks is not None}
            return caution(SizingKind.OPEN, **facts, untried=answer.untried)
        case "unknown":
            return caution(SizingKind.UNKNOWN, candidate=answer.name)


# Candidates against the hardware of today, where that was measured by the same method.


def compare_with_today(today: CandidateAnswer, candidates: Sequence[CandidateAnswer]) -> Iterator[Finding]:
    """Yield the ratio of the ceilings of each candidate and today's hardware, method by method."""
    # Today's hardware did carry this load, so a ceiling below it puts the test in doubt.
    if today.deciding and today.deciding.high is not None and today.deciding.high <= 1:
        yield caution(SizingKind.TODAY_BELOW, today=today.name, high=today.deciding.high, method=today.deciding.method)
    for candidate in candidates:
        for ours, theirs in ((candidate.replay, today.replay), (candidate.stand_in, today.stand_in)):
            if ours is not None and theirs is not None:
                yield _ratio_finding(candidate.name, today.name, ours, theirs)


def _ratio_finding(candidate: str, today: str, ours: Reach, theirs: Reach) -> Finding:
    facts = {"candidate": candidate, "today": today, "method": ours.method}
    # Without both ends of both ceilings the ratio has no interval.
    if ours.middle is None or theirs.middle is None or ours.high is None or theirs.high is None:
        return info(SizingKind.TODAY_OPEN, **facts)
    ratio, low, high = ours.middle / theirs.middle, ours.low / theirs.high, ours.high / theirs.low
    return info(SizingKind.TODAY, **facts, ratio=ratio, low=low, high=high)


# The limits of a sizing: what was not tested, or not as it will be.

POOL_WITHIN = 0.1
BEHIND_MS = 3.0
"""Median lateness of issued I/Os, without a backlog, above which this machine lacked CPU. On an idle machine I/Os are
in time. Earlier records show 1.2 to 1.8 ms, because fio's moments are whole ms."""
SMALLER = 0.9
WAITED = 0.1
"""The share of queries that may wait for a stream: chance alone makes that many due at once."""


def untested_of_candidate(answer: CandidateAnswer) -> Iterator[Finding]:
    """Yield the limits of one candidate's answer: parts of the load that were not tested, or not as they will be."""
    sizing, name = answer.sizing, answer.name
    if sizing.status != "complete":
        yield caution(SizingKind.UNFINISHED, candidate=name, running=sizing.status == "running", said=sizing.because)
    if answer.replay is None:
        yield caution(SizingKind.NO_REPLAY, candidate=name)
    if answer.stand_in is None:
        yield caution(SizingKind.NO_STAND_IN, candidate=name, replayed=answer.replay is not None)
    for reach in (answer.replay, answer.stand_in):
        if reach and reach.unconfirmed:
            facts = {"method": reach.method, "runs": reach.unconfirmed, "of": reach.runs}
            yield caution(SizingKind.UNCONFIRMED, candidate=name, **facts, running=sizing.status == "running")
        if reach and reach.apart:
            other = answer.service_level.read_ms != sizing.service_level.read_ms
            yield caution(
                SizingKind.GAP, candidate=name, method=reach.method, levels=list(reach.apart), other_level=other
            )
    yield from _untested_of_replay(answer)
    yield from _untested_of_stand_in(answer)


def _untested_of_replay(answer: CandidateAnswer) -> Iterator[Finding]:
    if (replay := answer.sizing.replay) is None:
        return
    yield from page_cache_cautions((answer.name, outcome) for outcome in replay.direct_io.values())
    if replay.played < 1:
        yield caution(SizingKind.COMPRESSED, candidate=answer.name, played=replay.played)
    kept_up = [stream for level in replay.levels if not level.backlog for stream in level.streams]
    late = max(
        (stream for stream in kept_up if stream.behind_ms), key=lambda stream: stream.behind_ms or 0.0, default=None
    )
    if late and late.behind_ms and late.behind_ms > BEHIND_MS:
        yield caution(SizingKind.BEHIND, candidate=answer.name, stream=late.name, behind_ms=late.behind_ms)
    yield from _smaller_data(answer, "replay", replay.file_bytes)
    held = [level for level in replay.levels if level.level == replay.holds]
    answered = replay.outcome in ("found", "at_least")
    # The mean decided, and the percentile noted beside it was missed: reads are slow in the tail.
    slow = [limit for level in held for limit in level.limits if limit.percentile and limit.verdict == "broke"]
    if slow and answered and replay.decides == "mean" and answer.service_level == answer.sizing.service_level:
        facts = {"percentile": slow[-1].percentile, "limit_ms": slow[-1].limit_ms, "slower": slow[-1].value}
        yield caution(SizingKind.SLOW_PERCENTILE, candidate=answer.name, **facts)
    grouped = [
        (level.level, stream.grouped) for level in replay.levels for stream in level.streams if stream.grouped > 1
    ]
    if grouped:
        yield caution(
            SizingKind.GROUPED, candidate=answer.name, level=min(grouped)[0], grouped=max(n for _, n in grouped)
        )


def _untested_of_stand_in(answer: CandidateAnswer) -> Iterator[Finding]:
    if (stand_in := answer.sizing.stand_in) is None:
        return
    compared = [
        (quantity, quantity.reached / quantity.wanted)
        for quantity in stand_in.matched
        if quantity.wanted and quantity.reached is not None
    ]
    # Quantities that are off were tested at other multiples than the answer names.
    if off := [(quantity.name, ratio) for quantity, ratio in compared if abs(ratio - 1) > MATCHED_WITHIN]:
        facts = {"quantities": [name for name, _ in off], "ratios": [ratio for _, ratio in off]}
        yield caution(SizingKind.UNMATCHED, candidate=answer.name, **facts, searched=answer.stand_in is not None)
    if lacking := [
        quantity.name for quantity in stand_in.matched if quantity.wanted is None or quantity.reached is None
    ]:
        yield caution(SizingKind.NOT_COMPARED, candidate=answer.name, quantities=lacking)
    for load, ended in stand_in.queries.items():
        if stand_in.rates.get(load) and ended < QUERY_COUNT:
            yield caution(SizingKind.FEW_QUERIES, candidate=answer.name, load=load, ended=ended, of=QUERY_COUNT)
    for load, share in stand_in.waited.items():
        if share > WAITED:
            yield caution(SizingKind.QUERIES_WAITED, candidate=answer.name, load=load, share=share)
    yield from _smaller_data(answer, "stand_in", stand_in.data_bytes)
    data_bytes, pool_bytes = answer.sizing.demand.database_bytes, answer.memory_bytes
    if data_bytes and pool_bytes and stand_in.pool_share is not None:
        share = min(1.0, pool_bytes / data_bytes)
        if abs(stand_in.pool_share / share - 1) > POOL_WITHIN:
            yield caution(SizingKind.POOLS_DIFFER, candidate=answer.name, shares=[share, stand_in.pool_share])


def _smaller_data(answer: CandidateAnswer, method: Method, own_bytes: int) -> Iterator[Finding]:
    database_bytes = answer.sizing.demand.database_bytes
    if database_bytes and own_bytes < SMALLER * database_bytes:
        facts = {"method": method, "own_bytes": own_bytes, "database_bytes": database_bytes}
        yield caution(SizingKind.SMALLER, candidate=answer.name, **facts)


def untested_of_profile(candidates: Sequence[CandidateAnswer], profile: ProfileSummary | None) -> Iterator[Finding]:
    """Yield the played windows of the profile, and the peaks that were not played."""
    demand = candidates[0].sizing.demand
    windows = [[window.because, window.begin] for window in demand.windows]
    replayed = any(candidate.replay for candidate in candidates)
    lacking = unplayed(demand)
    ratios = [peak.per_s / peak.played for peak in demand.peaks or () if peak.played]
    if replayed:
        yield info(
            SizingKind.OTHER_HOURS,
            windows=windows,
            seconds=sum(window.seconds for window in demand.windows),
            span_s=None if profile is None else profile.end - profile.begin,
            most=max([1.0, *ratios]) if demand.peaks is not None and not lacking else None,
            all=demand.peaks == (),  # the profile is a single window
        )
    if demand.peaks is None:
        yield caution(SizingKind.PEAKS_NOT_KNOWN)
    for peak in lacking:
        yield caution(
            SizingKind.NOT_PLAYED, measure=peak.measure, begin=peak.begin, per_s=peak.per_s, played=peak.played
        )
    if demand.beyond and demand.beyond.share > TOGETHER and not lacking:
        beyond = {"measure": demand.beyond.measure, "begin": demand.beyond.begin, "share": demand.beyond.share}
        yield caution(SizingKind.BEYOND_PLAYED, **beyond)
    if (len(windows) > 1 or not replayed) and any(candidate.stand_in for candidate in candidates):
        yield info(SizingKind.STAND_IN_WINDOW, windows=len(windows), replayed=replayed)


def untested_of_all(candidates: Sequence[CandidateAnswer], growth: float) -> Iterator[Finding]:
    """Yield the limits that all candidates share."""
    demand = candidates[0].sizing.demand
    replayed = any(candidate.replay for candidate in candidates)
    if not demand.log_known and replayed:
        yield caution(SizingKind.LOG_AMONG_DATA)
    if growth > 1:
        yield info(SizingKind.DATA_GROWTH, growth=growth)
    if replayed:
        yield info(SizingKind.IO_SIZES)
        yield info(SizingKind.CACHES)
    if stand_ins := {
        candidate.name: candidate.sizing.stand_in
        for candidate in candidates
        if candidate.stand_in and candidate.sizing.stand_in
    }:
        without = [name for name, stand_in in stand_ins.items() if not stand_in.waited]
        yield info(SizingKind.OTHER_QUERIES, without=without, ran=len(without) < len(stand_ins))
    limited = [candidate for candidate in candidates if candidate.service_level.read_ms is not None]
    replays = [candidate.sizing.replay for candidate in limited if candidate.replay and candidate.sizing.replay]
    by_mean = any(replay.decides == "mean" for replay in replays)
    if by_mean or any(candidate.stand_in for candidate in limited):
        yield info(SizingKind.MEAN_READS, stand_in_alone=bool(replays) and not by_mean)
