"""A step whose rate was steered to I/Os per mailbox: what the measured interval says, whatever was seen before."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from statistics import fmean

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import Point, labels
from stallmark.analysis.read.profile import ProfileSummary
from stallmark.stats.thresholds import PROFILE_NEAR


class ProfileKind(Kind):
    REACHED = "profile_reached"
    LIMIT = "profile_not_within_limit"
    TOO_SLOW = "profile_above_limit"
    UNSERVED = "profile_unserved"
    ALONE = "profile_below_idle"
    MISSED = "profile_missed"
    NOT_COUNTED = "profile_not_counted"


class Reached(StrEnum):
    """How a run ended that did not do the I/Os of its profile, by the manifest's words."""

    LIMIT = "limit"
    UNSERVED = "unserved"
    ALONE = "alone"


def profiles(found: Sequence[Point]) -> Iterator[Finding]:
    """Find what each steered step, repeats together, did of its profile."""
    steered = [point for point in found if any(step.profile for step in point.steps)]
    for point in steered:
        seen = [step.profile for step in point.steps if step.profile]
        yield _judged(seen, labels([point], found)[0] if len(steered) > 1 else None)


def _judged(seen: Sequence[ProfileSummary], step: str | None) -> Finding:
    asked = seen[0]
    facts = {"step": step, "mailboxes": asked.mailboxes, "profile": asked.profile}
    done = [one.iops_each for one in seen if one.iops_each is not None]
    times = [one.read_ms for one in seen if one.read_ms is not None]
    if len(done) < len(seen):
        return caution(ProfileKind.NOT_COUNTED, **facts)
    apart = [one.apart_iops for one in seen if one.apart_iops is not None]
    facts |= {"apart_iops": fmean(apart) if apart else None}
    facts |= {"iops_each": fmean(done), "read_ms": fmean(times) if times else None, "runs": len(seen)}
    if any(one > asked.limit_ms for one in times):
        return caution(ProfileKind.TOO_SLOW, limit_ms=asked.limit_ms, **facts | {"read_ms": max(times)})
    ended = {one.outcome for one in seen}
    if all(one >= asked.profile * (1 - PROFILE_NEAR) for one in done):
        if all(one <= asked.profile * (1 + PROFILE_NEAR) for one in done):
            return info(ProfileKind.REACHED, **facts)
        return caution(ProfileKind.ALONE if ended == {Reached.ALONE} else ProfileKind.MISSED, **facts)
    if ended == {Reached.LIMIT} and times:
        # The I/Os that were measured within the limit are what the storage does; fewer mailboxes ask for no more.
        held = math.floor(min(done) * asked.mailboxes / asked.profile)
        return caution(ProfileKind.LIMIT, limit_ms=asked.limit_ms, held=held, **facts)
    return caution(ProfileKind.UNSERVED if ended == {Reached.UNSERVED} else ProfileKind.MISSED, **facts)
