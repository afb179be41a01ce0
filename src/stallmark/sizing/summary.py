"""The summary of a sizing: a need, and each candidate's headroom over it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stallmark.analysis.finding import Finding, caution, info, mixed_versions
from stallmark.analysis.profile import ProfileSummary, summarise_profile
from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.reader import find_records
from stallmark.sizing import candidate
from stallmark.sizing.candidate import (
    CandidateAnswer,
    Need,
    answer_finding,
    answer_of,
    busiest_per_s,
    compare_with_today,
    need_of,
)
from stallmark.sizing.demand import profile_fingerprint, with_peaks
from stallmark.sizing.manifest import Demand, Sizing, read_sizing
from stallmark.sizing.reach import SizingKind


@dataclass(frozen=True)
class SizingSummary:
    """The summary of a sizing."""

    need: Need
    demand: Demand
    service_level: ServiceLevelObjective
    candidates: Sequence[CandidateAnswer]
    today: CandidateAnswer | None
    profile: ProfileSummary | None
    """None if only the need of the busiest windows is known."""
    answers: Sequence[Finding]
    """One finding for each candidate, in their order."""
    findings: Sequence[Finding]
    memory: Sequence[Finding]
    cautions: Sequence[Finding]
    played: Sequence[Finding]
    """The played windows of the profile, and the peaks that were not played."""
    untested: Sequence[Finding]

    @property
    def any_carries(self) -> bool:
        """Return True if any candidate carries the need."""
        return any(answer.standing == "carries" for answer in self.candidates)

    @property
    def emulated(self) -> bool:
        return any(answer.emulated for answer in self.candidates)


def summarise_candidate(folder: Path) -> SizingSummary:
    """Summarise the folder of one candidate, whose need is its profile's busiest windows as they were."""
    sizing = read_sizing(folder)
    return _summary([(folder, sizing)], None, None, Need(1.0, busiest_per_s(sizing.demand)), None)


def size(
    profile: Path,
    candidates: Sequence[Path],
    percentile: str | None = None,
    growth: float = 1.0,
    other: ServiceLevelObjective | None = None,
    today: Path | None = None,
) -> SizingSummary:
    """Size candidates for a profile, judged by the service level `other` if given, else by theirs.

    Raise StallmarkError if a candidate was measured for another profile, or if candidates cannot be compared.
    """
    profile_summary = summarise_profile(profile)
    read = [(folder, read_sizing(folder)) for folder in candidates]
    old = None if today is None else (today, read_sizing(today))
    every = [*read, *([old] if old else [])]
    for folder, sizing in every:
        if sizing.demand.profile != profile_fingerprint(profile_summary.manifest, profile_summary.rates):
            raise StallmarkError(
                f"{folder} was measured for another profile than {profile}, or before that was continued: give the "
                "profile that it was measured for, or run the sizing again."
            )
    _refuse_unlike(every, other)
    need = need_of(profile_summary, read[0][1].demand, percentile, growth)
    read = [(folder, _with_peaks(sizing, profile_summary)) for folder, sizing in read]
    return _summary(read, old, profile_summary, need, other)


def _with_peaks(sizing: Sizing, profile: ProfileSummary) -> Sizing:
    """Return a sizing with the peaks of its profile, for records made before peaks were searched."""
    known = sizing.demand.peaks is not None
    return sizing if known else sizing.changed(demand=with_peaks(sizing.demand, profile.intervals))


def _refuse_unlike(every: Sequence[tuple[Path, Sizing]], other: ServiceLevelObjective | None) -> None:
    first, sizing = every[0]
    for folder, compared in every[1:]:
        if other is None and compared.service_level != sizing.service_level:
            raise StallmarkError(
                f"{first} and {folder} were measured with different service levels: give one with --slo, as 20ms."
            )
        if [len(window.pieces) for window in compared.demand.windows] != [
            len(window.pieces) for window in sizing.demand.windows
        ]:
            raise StallmarkError(
                f"{first} and {folder} were measured with other windows of the profile: run one of them again."
            )
        if len({sized.replay.decides for sized in (compared, sizing) if sized.replay}) > 1:
            raise StallmarkError(
                f"The replays of {first} and {folder} were judged by different figures of reads, a mean and a "
                "percentile: run one of them again."
            )
    # Stand-ins on different data versions did different work per transaction.
    made = {
        folder: [record.manifest for record in find_records([folder / sized.stand_in.ceiling])]
        for folder, sized in every
        if sized.stand_in and sized.stand_in.ceiling
    }
    for (one_folder, left), (other_folder, right) in pairwise(made.items()):
        if mixed := mixed_versions([*left, *right]):
            versions = " and ".join(map(str, mixed.facts["versions"]))
            raise StallmarkError(
                f"The stand-ins of {one_folder} and {other_folder} ran on data version {versions} of the "
                f"{mixed.facts['workload']}, with different rows, inputs or procedures: run the older one again."
            )


def _summary(
    read: Sequence[tuple[Path, Sizing]],
    old: tuple[Path, Sizing] | None,
    profile: ProfileSummary | None,
    need: Need,
    other: ServiceLevelObjective | None,
) -> SizingSummary:
    named = Counter(sizing.candidate.name for _, sizing in read)
    candidates = [
        answer_of(folder, sizing, _unique_name(folder, sizing, named[sizing.candidate.name] > 1), need, other)
        for folder, sizing in read
    ]
    today = answer_of(*old, _unique_name(*old, False), need, other) if old else None
    # An emulated device does not describe a real one.
    if len({answer.emulated for answer in (*candidates, *([today] if today else []))}) > 1:
        raise StallmarkError("Emulated and real candidates cannot be compared: size them separately.")
    first = candidates[0]
    demand, level = first.sizing.demand, first.service_level
    return SizingSummary(
        need=need,
        demand=demand,
        service_level=level,
        candidates=candidates,
        today=today,
        profile=profile,
        answers=[answer_finding(answer) for answer in candidates],
        findings=list(_findings(need, demand, level, candidates, today, profile)),
        memory=[*_memory_findings(candidates), *(profile.memory if profile else ())],
        cautions=[
            *_need_below_busiest(need, demand),
            *(finding for answer in candidates for finding in candidate.untested_of_candidate(answer)),
        ],
        played=list(candidate.untested_of_profile(candidates, profile)),
        untested=[*candidate.untested_of_all(candidates, need.growth), *(profile.cautions if profile else ())],
    )


def _unique_name(folder: Path, sizing: Sizing, again: bool) -> str:
    return f"{sizing.candidate.name} ({folder.name})" if again else sizing.candidate.name


def _findings(
    need: Need,
    demand: Demand,
    level: ServiceLevelObjective,
    candidates: Sequence[CandidateAnswer],
    today: CandidateAnswer | None,
    profile: ProfileSummary | None,
) -> Iterator[Finding]:
    if profile is not None:
        yield _need_finding(need, demand)
    for answer in candidates:
        # A single method is in the answer itself.
        if len(answer.reaches) > 1:
            by = {reach.method: [reach.low, reach.high, reach.middle] for reach in answer.reaches}
            yield info(SizingKind.METHODS, candidate=answer.name, multiple=need.multiple, **by)
        yield from (
            info(SizingKind.ENDS, candidate=answer.name, ends=reach.ends) for reach in answer.reaches if reach.ends
        )
    yield from _cheapest_finding(candidates)
    if today is not None:
        yield from compare_with_today(today, candidates)
    for window in demand.windows:
        read_ms = demand.read_ms if window is demand.windows[0] else window.read_ms
        if read_ms is not None and level.read_ms is not None and read_ms > level.read_ms:
            facts = {"because": window.because, "begin": window.begin}
            yield info(SizingKind.SLOW_TODAY, **facts, read_ms=read_ms, limit_ms=level.read_ms)


def _need_below_busiest(need: Need, demand: Demand) -> Iterator[Finding]:
    if need.minutes_per_s and need.window_per_s and need.minutes_per_s < need.window_per_s:
        facts = {"percentile": need.percentile, "times": need.window_per_s / need.minutes_per_s}
        facts |= {"interval_s": need.interval_s}
        yield caution(SizingKind.NEED_BELOW_BUSIEST, **facts, window_s=demand.windows[0].seconds)


def _need_finding(need: Need, demand: Demand) -> Finding:
    facts = {"per_s": need.per_s, "growth": need.growth, "window_per_s": need.window_per_s}
    facts |= {"window_s": demand.windows[0].seconds, "begin": demand.windows[0].begin}
    facts |= {"others": len(demand.windows) - 1, "interval_s": need.interval_s}
    if need.minutes_per_s is not None:
        of_minutes = {"multiple": need.multiple, "percentile": need.percentile, "minutes_per_s": need.minutes_per_s}
        return info(SizingKind.NEED, **facts, **of_minutes)
    return info(SizingKind.NEED_BY_WINDOW, **facts, percentile=need.percentile, minutes=need.minutes)


def _cheapest_finding(candidates: Sequence[CandidateAnswer]) -> Iterator[Finding]:
    carrying = [answer for answer in candidates if answer.standing == "carries"]
    priced = [
        (answer.sizing.candidate.cost, answer.name) for answer in carrying if answer.sizing.candidate.cost is not None
    ]
    if len(priced) < 2:
        return
    cost, cheapest = min(priced, key=lambda pair: pair[0])
    alike = [name for amount, name in priced if amount == cost and name != cheapest]
    without = [answer.name for answer in carrying if answer.sizing.candidate.cost is None]
    facts = {"candidate": cheapest, "alike": alike, "cost": cost, "carrying": len(carrying), "without_cost": without}
    yield info(SizingKind.CHEAPEST, **facts)


def _memory_findings(candidates: Sequence[CandidateAnswer]) -> Iterator[Finding]:
    for answer in candidates:
        demand, stand_in = answer.sizing.demand, answer.sizing.stand_in
        if demand.pool_bytes is None and answer.memory_bytes is None:
            continue
        yield info(
            SizingKind.MEMORY,
            candidate=answer.name,
            today_bytes=demand.pool_bytes,
            memory_bytes=answer.sizing.candidate.memory_bytes,
            database_bytes=demand.database_bytes,
            stand_in_share=stand_in.pool_share if stand_in else None,
        )
