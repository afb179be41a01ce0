"""The I/Os of data files of a mail store, and how many mailboxes make as many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.throughput import Load
from stallmark.record.manifest.workload import Transaction
from stallmark.stats.thresholds import MAILBOX_IOPS


def mailboxes(iops: float) -> int:
    """Return how many mailboxes do so many I/Os per second."""
    return math.floor(iops / MAILBOX_IOPS)


@dataclass(frozen=True)
class MailIo:
    """Reads and writes of data files per second, by all the server's processes, without the `apart_iops` that timers
    read: these are None, and counted, where their sessions do not tell."""

    iops: float
    mailboxes: int  # that do as many
    read_ms: float | None
    apart_iops: float | None


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


def summarise_mail_io(data: IoSummary | None, apart: float | None) -> MailIo | None:
    """Return the summary of a step in which mail ran alone, or None if its I/Os were not counted. `apart` is what
    timers read per second."""
    if not data or not data.seconds:
        return None
    iops = max(0.0, data.iops - (apart or 0.0))
    return MailIo(iops, mailboxes(iops), data.read_ms, apart)
