"""Candidates against the hardware of today, where that was measured by the same method."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.sizing.candidate import CandidateAnswer
from stallmark.analysis.sizing.kinds import SizingKind
from stallmark.analysis.sizing.reach import Reach


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
