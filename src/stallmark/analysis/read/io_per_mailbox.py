"""The I/Os of data files per mailbox in a step whose rate was steered to so many."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.throughput import Load
from stallmark.record.manifest.workload import Steered, Transaction


@dataclass(frozen=True)
class IoPerMailbox:
    """A steered step. `outcome` and `within` are of its steering, as the manifest has them. `iops_each` and `read_ms`
    are of the measured interval: reads and writes of data files per mailbox and second, by all the server's processes,
    without the `apart_iops` that timers read; these are None, and counted, where their sessions do not tell.
    """

    wanted: float
    mailboxes: int
    limit_ms: float
    outcome: str
    rate: float
    within: float | None
    iops_each: float | None
    read_ms: float | None
    apart_iops: float | None = None


def apart_iops(load: Load, transactions: Sequence[Transaction], interval: Interval) -> float | None:
    """Return what timers read per second, those that were not sampled as those that were; None where none was."""
    found = None
    for name in (one.name for one in transactions if one.source == "timer"):
        own = load.own_io.get(name)
        if own is None or not (sampled := interval.of(own["sampled"]).sum()):
            continue
        ended = interval.of(load.ended(name)).sum()
        found = (found or 0.0) + float(interval.of(own["reads"]).sum() * ended / sampled) / interval.seconds
    return found


def summarise_io_per_mailbox(
    steered: Steered | None, data: IoSummary | None, apart: float | None
) -> IoPerMailbox | None:
    """Return the summary of a step; None where it was not steered. `apart` is what timers read per second."""
    if steered is None:
        return None
    done = None
    if data and data.seconds:
        done = max(0.0, (data.reads + data.writes) / data.seconds - (apart or 0.0)) / steered.mailboxes
    return IoPerMailbox(
        wanted=steered.wanted,
        mailboxes=steered.mailboxes,
        limit_ms=steered.limit_ms,
        outcome=steered.outcome,
        rate=steered.rate,
        within=steered.within,
        iops_each=done,
        read_ms=data.read_ms if data else None,
        apart_iops=apart,
    )
