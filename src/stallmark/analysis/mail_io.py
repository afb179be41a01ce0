"""The I/Os of a mail store as mailboxes: those of a common profile that do as many."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from stallmark.analysis.ceiling.summary import Ceiling, by_variant
from stallmark.analysis.finding import Finding, Kind, info
from stallmark.analysis.points import Point, labels
from stallmark.analysis.read.io import mailboxes
from stallmark.analysis.step_summary import StepSummary
from stallmark.stats.thresholds import MAILBOX_IOPS


class MailIoKind(Kind):
    MAILBOXES = "mailboxes"


def mailboxes_of_steps(points: Sequence[Point]) -> Iterator[Finding]:
    """Yield the mailboxes of each step, its repeats together."""
    for point in points:
        yield from _mailboxes(point.steps, labels([point], points)[0] if len(points) > 1 else None)


def mailboxes_of_ceilings(ceilings: Sequence[Ceiling]) -> Iterator[Finding]:
    """Yield the mailboxes of the highest level that was kept, by variant."""
    variants = by_variant(ceilings)
    for same in variants:
        steps = [step for ceiling in same if ceiling.holds is not None for step in ceiling.steps_at(ceiling.holds)]
        yield from _mailboxes(steps, same[0].variant if len(variants) > 1 else None)


def _mailboxes(steps: Sequence[StepSummary], step: str | None) -> Iterator[Finding]:
    counted = [step.mail_io for step in steps if step.mail_io]
    if not counted or len(counted) < len(steps):
        return
    iops = fmean(io.iops for io in counted)
    times = [io.read_ms for io in counted if io.read_ms is not None]
    apart = [io.apart_iops for io in counted if io.apart_iops is not None]
    yield info(
        MailIoKind.MAILBOXES,
        step=step,
        iops=iops,
        apart_iops=fmean(apart) if len(apart) == len(counted) else None,
        each=MAILBOX_IOPS,
        mailboxes=mailboxes(iops),
        read_ms=fmean(times) if len(times) == len(counted) else None,
        measured=len(counted),
    )
