"""The limits of a sizing: what was not tested, or not as it will be."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.page_cache import page_cache
from stallmark.analysis.profile.demand import TOGETHER
from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.analysis.read.query_figures import QUERIES
from stallmark.analysis.sizing.candidate import CandidateAnswer, unplayed
from stallmark.analysis.sizing.kinds import SizingKind
from stallmark.analysis.sizing.reach import Method
from stallmark.stats.thresholds import MATCHED_WITHIN

POOL_WITHIN = 0.1
BEHIND_MS = 3.0
"""I/Os of a replay that are issued so late at the median, without a backlog, waited for a CPU of this machine. On an
idle one they are not late; earlier records have 1.2 to 1.8 ms there, as fio has their moments in whole ms."""
SMALLER = 0.9
WAITED = 0.1
"""The share of the queries that may wait for a stream: chance makes as many due at once."""


def of_candidate(found: CandidateAnswer) -> Iterator[Finding]:
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
    yield from page_cache((found.name, outcome) for outcome in replay.direct_io.values())
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


def of_profile(candidates: Sequence[CandidateAnswer], profile: ProfileSummary | None) -> Iterator[Finding]:
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


def of_all(candidates: Sequence[CandidateAnswer], growth: float, profile: ProfileSummary | None) -> Iterator[Finding]:
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
