"""The reads of each type of transaction, where they are known: from its sampled sessions, or from SQL Server's plan
cache by the procedures that it calls."""

import math
from dataclasses import replace

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import over
from stallmark.analysis.read.server_summary import TransactionReads
from stallmark.analysis.read.server_views import ServerViews, ended_between, transaction_of
from stallmark.analysis.read.throughput import Load

PAGE_BYTES = 8192  # of SQL Server


def transaction_reads(views: ServerViews, load: Load, interval: Interval) -> list[TransactionReads]:
    """Return the reads by type, in no order; empty if they are not known. A type of which too few transactions were
    sampled has no share."""
    found = _looked_at(load, interval) or _by_procedure(views, load, interval)
    read = [one.reads * float(interval.of(load.ended(one.transaction)).sum()) for one in found]
    total = sum(read)
    return [
        replace(one, share=mine / total if total and not one.too_few else None)
        for one, mine in zip(found, read, strict=True)
    ]


def _looked_at(load: Load, interval: Interval) -> list[TransactionReads]:
    found = []
    for name, columns in load.own_io.items():
        total = {column: float(interval.of(values).sum()) for column, values in columns.items()}
        if sampled := total["sampled"]:
            read_ms = None if math.isnan(total["read_us"]) else total["read_us"] / sampled / 1000
            reads, read_bytes, hits = (total[what] / sampled for what in ("reads", "read_bytes", "hits"))
            found.append(TransactionReads(name, round(sampled), True, reads, read_bytes, hits, read_ms))
    return found


def _by_procedure(views: ServerViews, load: Load, interval: Interval) -> list[TransactionReads]:
    """Return the reads of all procedures that a transaction calls, per transaction that ended. Counts of plans that
    left the cache are missing here too."""
    sums: dict[str, list[float]] = {}
    for procedure, counters in views.procedures.items():
        transaction = transaction_of(procedure, list(load.counts))
        delta = over(counters, interval)
        if transaction is None or delta is None or delta.broken or not delta["executions"]:
            continue
        mine = sums.setdefault(transaction, [0.0, 0.0, 0.0])
        mine[0] += delta["physical_reads"]
        mine[1] += delta["logical_reads"]
        mine[2] = max(mine[2], ended_between(load, transaction, delta))
    return [
        TransactionReads(
            transaction,
            round(ended),
            False,
            physical / ended,
            physical / ended * PAGE_BYTES,
            max(0.0, logical - physical) / ended,
            None,
        )
        for transaction, (physical, logical, ended) in sums.items()
        if ended
    ]
