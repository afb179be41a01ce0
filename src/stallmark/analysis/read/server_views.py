"""The views of a server that counts by wait type and procedure, as SQL Server does, or by process, as PostgreSQL.

The counts of a wait type or a procedure from before it was first seen are not known, and are left out.

Waits for rows by table: the mean number of sessions that waited for each, over a measured interval. PostgreSQL's locks
are sampled five times a second, and the mean is samples / polls. SQL Server sums up its waits by index, and the mean is
Δ wait / Δ time.

Windows' counters of the volumes under the server's files.

The reads of each type of transaction, if known: from its sampled sessions, or from SQL Server's plan cache by the
procedures that it calls.

Resets of a table's counters while a step was measured, by a user or by the server.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Annotated

import numpy as np
import pyarrow as pa

from stallmark import format
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.io import Io
from stallmark.analysis.read.io_latency import Histograms, read_io_latency
from stallmark.analysis.read.rises import Codes, PairCodes
from stallmark.analysis.read.server_io import DATA, by_process
from stallmark.analysis.read.server_state import StateViews
from stallmark.analysis.read.server_summary import delta_over, largest_readers
from stallmark.analysis.read.statements import (
    QueryStore,
    Statements,
    read_query_store,
    read_statement_reads,
    read_statements,
)
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval, ReadKind, Span
from stallmark.format import Shown, words
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

TOP = 8

_SUMMED = [
    f"{target}_wait{unit}"
    for target in ("row_lock", "page_lock", "page_latch", "page_io_latch")
    for unit in ("s", "_ms")
]


@dataclass(frozen=True)
class RowWait:
    """Sessions that waited for one table, on average. Fields that the server does not report are None."""

    table: str
    waiting: float  # sessions waiting for locks on its rows or pages
    waits_per_s: Annotated[float | None, Shown("waits/s")] = None
    wait_ms: Annotated[float | None, Shown("ms each")] = None
    latched: Annotated[float | None, Shown("for latches")] = None
    """Sessions waiting for a page in memory that another session changes or reads."""
    reading: Annotated[float | None, Shown("for reads")] = None  # sessions waiting for a page to be read from disk


@dataclass(frozen=True)
class RowWaits:
    """The waits for rows of one run: sums by table, or by the interval the sessions seen waiting for
    each, their mean number added up over the seconds sampled, and how many these were."""

    summed: Mapping[str, Counters] = field(default_factory=dict)
    seen: Mapping[Span, tuple[Counter[str], int]] = field(default_factory=dict)

    def summaries(self, interval: Interval) -> list[RowWait] | None:
        """Return the tables for whose rows most sessions waited, or None if nothing was sampled."""
        if self.summed:
            summaries = [_row_wait(name, delta_over(counters, interval)) for name, counters in self.summed.items()]
            waits = [wait for wait in summaries if wait]
        else:
            total, seconds = self.seen.get(interval.span, (Counter(), 0))
            if not seconds:
                return None
            waits = [RowWait(name, users / seconds) for name, users in total.items() if users]
        return sorted(waits, key=lambda wait: (-wait.waiting, wait.table))[:TOP]


def _row_wait(table: str, delta: Delta | None) -> RowWait | None:
    """Return the waits for one table, or None if its counters were reset or no session waited."""
    if delta is None or delta.broken:
        return None

    def sessions(*names: str) -> float:
        return sum(delta.values.get(f"{name}_wait_ms", 0.0) for name in names) / 1000 / delta.seconds

    locks = ("row_lock", "page_lock")
    waits = sum(delta.values.get(f"{name}_waits", 0.0) for name in locks)
    row_wait = RowWait(
        table,
        sessions(*locks),
        waits / delta.seconds,
        sessions(*locks) * 1000 * delta.seconds / waits if waits else None,
        sessions("page_latch"),
        sessions("page_io_latch"),
    )
    return row_wait if row_wait.waiting or row_wait.latched or row_wait.reading else None


def read_row_waits(record: Record, intervals: Sequence[Interval]) -> RowWaits:
    total: dict[Span, Counter[str]] = {interval.span: Counter() for interval in intervals}
    looked: dict[Span, set[int]] = {interval.span: set() for interval in intervals}
    for batch in record.batches("row_locks", ["second", "relation", "samples", "polls"]):
        if "samples" not in batch.schema.names:
            return RowWaits(summed=read_counters(record, "row_locks", _SUMMED, group="relation", within=intervals))
        second = batch.column("second").to_numpy()
        users = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        waiting = pa.table({"relation": batch.column("relation").cast(pa.string()), "users": users})
        for interval in intervals:
            inside = (second >= interval.begin) & (second < interval.end)
            looked[interval.span].update(second[inside].tolist())
            sums = waiting.filter(pa.array(inside)).group_by("relation").aggregate([("users", "sum")])
            for row in sums.to_pylist():
                if row["relation"] is not None:  # a second in which nobody waited
                    total[interval.span][row["relation"]] += row["users_sum"]
    return RowWaits(seen={span: (sums, len(looked[span])) for span, sums in total.items()})


_COLUMNS = ("queue", "read_ms", "write_ms", "reads_per_s", "writes_per_s")


@dataclass(frozen=True)
class VolumeSummary:
    """One volume over the measured interval. Times are weighted by the I/Os of each second, and None without I/Os."""

    volume: Annotated[str, words("volume")]
    queue: Annotated[float, Shown("queue")]
    reads_per_s: Annotated[float, Shown("reads/s")]
    read_ms: Annotated[float | None, Shown("ms per read")]
    writes_per_s: Annotated[float, Shown("writes/s")]
    write_ms: Annotated[float | None, Shown("ms per write")]


def volume_summaries(record: Record, interval: Interval) -> list[VolumeSummary]:
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for row in record.rows("volumes", ["t", "volume", *_COLUMNS]):
        if interval.begin <= row["t"] < interval.end and all(row[name] is not None for name in _COLUMNS):
            rows[row["volume"]].append(row)
    return [_summary(volume, rows[volume]) for volume in sorted(rows)]


def _summary(volume: str, rows: list[dict[str, float]]) -> VolumeSummary:
    return VolumeSummary(
        volume,
        fmean(row["queue"] for row in rows),
        fmean(row["reads_per_s"] for row in rows),
        _weighted(rows, "read_ms", "reads_per_s"),
        fmean(row["writes_per_s"] for row in rows),
        _weighted(rows, "write_ms", "writes_per_s"),
    )


def _weighted(rows: list[dict[str, float]], time: str, rate: str) -> float | None:
    ios = sum(row[rate] for row in rows)
    return sum(row[time] * row[rate] for row in rows) / ios if ios else None


TOP_WAITS = 10
_WAIT = ["waits", "wait_ms", "signal_ms"]
_PROCEDURE = ["executions", "elapsed_us", "physical_reads", "logical_reads", "logical_writes"]


@dataclass(frozen=True)
class ServerWait:
    """A wait type of the server, over all its tasks and the measured interval; `wait_ms` includes `signal_ms`."""

    wait_type: str
    wait_class: str  # one of WAIT_CLASSES
    seconds: float
    waits: int
    wait_ms: float
    signal_ms: float  # part of the wait for a CPU after the resource was available
    uncertainty: float | None = None  # see `IoSummary`

    @property
    def resource_ms(self) -> float:
        return self.wait_ms - self.signal_ms


_EACH = "Per execution"


@dataclass(frozen=True)
class ProcedureSummary:
    """One procedure over the measured interval, as the server's plan cache counted it."""

    name: Annotated[str, words("procedure")]
    executions: Annotated[int, Shown("executions", format.count)]
    coverage: Annotated[float | None, Shown("covered", format.share)]
    """Executions seen, per call of the driver, or None without calls."""
    physical_reads: Annotated[float | None, Shown("physical reads", group=_EACH)]  # pages
    logical_reads: Annotated[float | None, Shown("logical reads", group=_EACH)]
    logical_writes: Annotated[float | None, Shown("logical writes", group=_EACH)]
    elapsed_ms: Annotated[float | None, Shown("ms", group=_EACH)]


@dataclass(frozen=True)
class TransactionReads:
    """The reads of a transaction of one type, on average. `reads` are physical: I/Os of its session where sessions were
    sampled (`sampled`), else pages of 8 KiB that SQL Server counted for its procedures."""

    transaction: str
    counted: int  # transactions that were sampled, or that ended
    sampled: bool
    reads: float
    read_bytes: float
    hits: float  # blocks or pages that were in the pool
    read_ms: float | None  # time in these reads
    share: float | None = None  # share of the physical reads of all types

    @property
    def too_few(self) -> bool:
        """Return True if too few transactions were sampled for a mean or a share."""
        return self.sampled and self.counted < SHARE_SAMPLES


@dataclass(frozen=True)
class ServerViews:
    """The counters of one run by wait type and procedure, known over the measured intervals; empty if the server has no
    such view."""

    waits: Mapping[str, Counters] = field(default_factory=dict)
    wait_classes: Mapping[str, str] = field(default_factory=dict)  # benign ones are not in it
    procedures: Mapping[str, Counters] = field(default_factory=dict)
    processes: Mapping[str, Counters] = field(default_factory=dict)  # on data files
    io_latency: Histograms = field(default_factory=dict)
    query_store: QueryStore = field(default_factory=QueryStore)
    statements: Statements = field(default_factory=Statements)
    statement_reads: Mapping[str, Counters] = field(default_factory=dict)  # keys: statements of a user's own SQL
    state: StateViews = field(default_factory=StateViews)
    row_waits: RowWaits = field(default_factory=RowWaits)

    def top_waits(self, interval: Interval) -> list[ServerWait]:
        """Return the waits with most time beyond waiting for a CPU, without benign ones; none if they were cleared, as
        a type that has more again than it had before does not show it."""
        deltas = {name: delta_over(counters, interval) for name, counters in self.waits.items()}
        if any(delta.broken for delta in deltas.values() if delta):
            return []
        waits = []
        for name, kind in self.wait_classes.items():
            delta = deltas[name]
            if delta is None or not delta["waits"]:
                continue
            figures = delta.seconds, round(delta["waits"]), delta["wait_ms"], delta["signal_ms"]
            waits.append(ServerWait(name, kind, *figures, delta.uncertainty or None))
        return sorted(waits, key=lambda wait: (-wait.resource_ms, wait.wait_type))[:TOP_WAITS]

    def procedure_summaries(self, interval: Interval, load: Load) -> list[ProcedureSummary]:
        """Return the procedures that were executed, those that read most first."""
        return [
            ProcedureSummary(
                name,
                round(delta["executions"]),
                _coverage(name, delta, load),
                delta.mean("physical_reads", "executions"),
                delta.mean("logical_reads", "executions"),
                delta.mean("logical_writes", "executions"),
                delta.mean("elapsed_us", "executions", 1000),
            )
            for name, delta in largest_readers(self.procedures, interval)
        ]


def read_server_views(record: Record, io: Io, state: StateViews, intervals: Sequence[Interval]) -> ServerViews:
    """Read the views over some intervals. The I/O and the state were read before."""
    wait_classes = _pairs(record, "server_waits", "wait_type", "wait_class")
    benign = _pairs(record, "server_waits", "wait_type", "benign")
    return ServerViews(
        waits=read_counters(record, "server_waits", _WAIT, group="wait_type", entity="wait_type", within=intervals),
        wait_classes={name: kind for name, kind in wait_classes.items() if benign[name] != "true"},
        procedures=read_counters(record, "procedures", _PROCEDURE, group="procedure", entity="plan", within=intervals),
        processes=by_process(record, io.server, DATA, columns=("reads", "writes", "extends")),
        io_latency=read_io_latency(record, intervals),
        query_store=read_query_store(record, intervals),
        statements=read_statements(record, intervals),
        statement_reads=read_statement_reads(record, intervals),
        state=state,
        row_waits=read_row_waits(record, intervals),
    )


def transaction_of(procedure: str, transactions: Sequence[str]) -> str | None:
    """Return the transaction type that calls a procedure: "trade_order" calls brokerage.trade_order_frame1. None
    without one."""
    bare = procedure.rpartition(".")[2]
    fitting = [name for name in transactions if bare == name or bare.startswith(f"{name}_")]
    return max(fitting, key=len, default=None)


def _coverage(procedure: str, delta: Delta, load: Load) -> float | None:
    """Return the executions that the plan cache counted per transaction that ended, or None if no such transaction
    ended."""
    transaction = transaction_of(procedure, list(load.counts))
    if transaction is None:
        return None
    ended = ended_between(load, transaction, delta)
    return delta["executions"] / ended if ended else None


def ended_between(load: Load, transaction: str, delta: Delta) -> float:
    """Return the transactions committed or rolled back in the time that a delta covers."""
    counts = load.counts[transaction]
    return delta.count_within(counts["committed"] + counts["rolled_back"])


def _pairs(record: Record, table: str, key: str, value: str) -> dict[str, str]:
    """Return the value in one column for each value of another, as text; empty when the table lacks one of
    the columns."""
    if not {key, value} <= set(record.schema(table).names):
        return {}
    keys, values, pairs = Codes(), Codes(), PairCodes()
    for batch in record.batches(table, [key, value]):
        pairs.codes(keys.codes(batch, key), values.codes(batch, value))
    of_key, of_value = keys.names, values.names
    return {of_key[key_code]: of_value[value_code] for key_code, value_code in pairs.pairs}


PAGE_BYTES = 8192  # page size of SQL Server


def transaction_reads(views: ServerViews, load: Load, interval: Interval) -> list[TransactionReads]:
    """Return the reads by type, unordered; empty if unknown. A type with too few sampled transactions has no share."""
    reads_by_type = _looked_at(load, interval) or _by_procedure(views, load, interval)
    read = [
        type_reads.reads * float(interval.select(load.ended_per_second(type_reads.transaction)).sum())
        for type_reads in reads_by_type
    ]
    total = sum(read)
    return [
        replace(type_reads, share=mine / total if total and not type_reads.too_few else None)
        for type_reads, mine in zip(reads_by_type, read, strict=True)
    ]


def _looked_at(load: Load, interval: Interval) -> list[TransactionReads]:
    sampled_reads = []
    for name, columns in load.own_io.items():
        total = {column: float(interval.select(values).sum()) for column, values in columns.items()}
        if sampled := total["sampled"]:
            read_ms = None if math.isnan(total["read_us"]) else total["read_us"] / sampled / 1000
            reads, read_bytes, hits = (total[quantity] / sampled for quantity in ("reads", "read_bytes", "hits"))
            sampled_reads.append(TransactionReads(name, round(sampled), True, reads, read_bytes, hits, read_ms))
    return sampled_reads


def _by_procedure(views: ServerViews, load: Load, interval: Interval) -> list[TransactionReads]:
    """Return the reads of all procedures that a transaction calls, per transaction that ended. Counts of plans that
    left the cache are missing here too."""
    sums: dict[str, list[float]] = {}
    for procedure, delta in largest_readers(views.procedures, interval):
        if (transaction := transaction_of(procedure, list(load.counts))) is None:
            continue
        mine = sums.setdefault(transaction, [0.0, 0.0, 0.0])
        mine[0] += delta["physical_reads"]
        mine[1] += delta["logical_reads"]
        # Several procedures of one transaction count the same transactions.
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


def restart_findings(manifest: Manifest, io: Io, views: ServerViews, interval: Interval) -> Iterator[Finding]:
    """Yield the collectors whose counters were reset within an interval. Resets of I/O counters make the step
    invalid."""
    counters: dict[str, Iterable[Counters | None]] = {
        "server_waits": views.waits.values(),
        "procedures": views.procedures.values(),
        "statements": views.statements.counters.values(),
        "statement_reads": views.statement_reads.values(),
        "query_store": views.query_store.statements.values(),
        "query_store_waits": views.query_store.waits.values(),
        "row_locks": views.row_waits.summed.values(),
        "database": (io.own_database, io.other_databases),
        "checkpoints": (io.checkpoints,),
    }
    restarted = [
        manifest.collectors[name].title
        for name, parts in counters.items()
        if name in manifest.collectors and any(delta.broken for part in parts if (delta := delta_over(part, interval)))
    ]
    if restarted:
        yield caution(ReadKind.COUNTERS_RESTARTED, sources=restarted)
