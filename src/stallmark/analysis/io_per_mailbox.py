"""A step whose rate was steered to I/Os per mailbox: what the measured interval says, whatever was seen before."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from statistics import fmean

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.points import Point, labels
from stallmark.analysis.read.io_per_mailbox import IoPerMailbox
from stallmark.stats.thresholds import IO_PER_MAILBOX_NEAR


class IoPerMailboxKind(Kind):
    REACHED = "io_per_mailbox_reached"
    LIMIT = "io_per_mailbox_not_within_limit"
    TOO_SLOW = "io_per_mailbox_above_limit"
    UNSERVED = "io_per_mailbox_unserved"
    ALONE = "io_per_mailbox_below_idle"
    MISSED = "io_per_mailbox_missed"
    NOT_COUNTED = "io_per_mailbox_not_counted"


class Reached(StrEnum):
    """How a run ended that did not do the I/Os that were wanted, by the manifest's words."""

    LIMIT = "limit"
    UNSERVED = "unserved"
    ALONE = "alone"


def io_per_mailbox(found: Sequence[Point]) -> Iterator[Finding]:
    """Find what each steered step, repeats together, did of the I/Os that were wanted."""
    steered = [point for point in found if any(step.io_per_mailbox for step in point.steps)]
    for point in steered:
        seen = [step.io_per_mailbox for step in point.steps if step.io_per_mailbox]
        yield _judged(seen, labels([point], found)[0] if len(steered) > 1 else None)


def _judged(seen: Sequence[IoPerMailbox], step: str | None) -> Finding:
    asked = seen[0]
    facts = {"step": step, "mailboxes": asked.mailboxes, "wanted": asked.wanted}
    done = [one.iops_each for one in seen if one.iops_each is not None]
    times = [one.read_ms for one in seen if one.read_ms is not None]
    if len(done) < len(seen):
        return caution(IoPerMailboxKind.NOT_COUNTED, **facts)
    apart = [one.apart_iops for one in seen if one.apart_iops is not None]
    facts |= {"apart_iops": fmean(apart) if apart else None}
    facts |= {"iops_each": fmean(done), "read_ms": fmean(times) if len(times) == len(seen) else None, "runs": len(seen)}
    if any(one > asked.limit_ms for one in times):
        return caution(IoPerMailboxKind.TOO_SLOW, limit_ms=asked.limit_ms, **facts | {"read_ms": max(times)})
    ended = {one.outcome for one in seen}
    if all(one >= asked.wanted * (1 - IO_PER_MAILBOX_NEAR) for one in done):
        if all(one <= asked.wanted * (1 + IO_PER_MAILBOX_NEAR) for one in done):
            return info(IoPerMailboxKind.REACHED, **facts)
        return caution(IoPerMailboxKind.ALONE if ended == {Reached.ALONE} else IoPerMailboxKind.MISSED, **facts)
    if ended == {Reached.LIMIT} and times:
        # The I/Os that were measured within the limit are what the storage does; fewer mailboxes ask for no more.
        held = math.floor(min(done) * asked.mailboxes / asked.wanted)
        return caution(IoPerMailboxKind.LIMIT, limit_ms=asked.limit_ms, held=held, **facts)
    return caution(IoPerMailboxKind.UNSERVED if ended == {Reached.UNSERVED} else IoPerMailboxKind.MISSED, **facts)
