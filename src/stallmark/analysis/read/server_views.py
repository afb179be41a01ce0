"""The views of a server that counts by file, wait type and procedure, as SQL Server does, or by process, as PostgreSQL.

The counts of a wait type or a procedure from before it was first seen are not known, and are left out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from stallmark.analysis.read.codes import Codes, PairCodes
from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import SERVER, Io, over, summarise_io, together
from stallmark.analysis.read.io_latency import Histograms, read_io_latency
from stallmark.analysis.read.process_io import DATA, by_process
from stallmark.analysis.read.query_store import QueryStore, read_query_store
from stallmark.analysis.read.row_waits import RowWaits, read_row_waits
from stallmark.analysis.read.server_state import StateViews
from stallmark.analysis.read.server_summary import FileSummary, IoSummary, ProcedureSummary, ServerWait
from stallmark.analysis.read.statements import Statements, read_statements
from stallmark.analysis.read.throughput import Load
from stallmark.record.reader import Record

TOP_WAITS = 10
OURS = ("data", "wal")
"""The kinds of files of databases that are ours."""

_WAIT = ["waits", "wait_ms", "signal_ms"]
_PROCEDURE = ["executions", "elapsed_us", "physical_reads", "logical_reads", "logical_writes"]


@dataclass(frozen=True)
class ServerViews:
    """The counters of one run by file, wait type and procedure; empty where the server has no such view. They are
    known over the measured intervals."""

    files: Mapping[str, Counters] = field(default_factory=dict)
    file_kinds: Mapping[str, str] = field(default_factory=dict)
    growths: Mapping[str, np.ndarray] = field(default_factory=dict)  # file -> when it was seen to have grown (s)
    waits: Mapping[str, Counters] = field(default_factory=dict)
    wait_classes: Mapping[str, str] = field(default_factory=dict)  # benign ones are not in it
    procedures: Mapping[str, Counters] = field(default_factory=dict)
    processes: Mapping[str, Counters] = field(default_factory=dict)  # on data files
    io_latency: Histograms = field(default_factory=dict)
    query_store: QueryStore = field(default_factory=QueryStore)
    statements: Statements = field(default_factory=Statements)
    state: StateViews = field(default_factory=StateViews)
    row_waits: RowWaits = field(default_factory=RowWaits)

    def file_summaries(self, interval: Interval) -> list[FileSummary]:
        """Return our own files and those in which something was read or written, ours first."""
        found = []
        for name, counters in self.files.items():
            io = summarise_io(counters, interval, SERVER, "server")
            times = self.growths.get(name, np.empty(0))
            grown = int(np.sum((times > interval.begin) & (times <= interval.end)))
            kind = self.file_kinds[name]
            if kind in OURS or io is None or io.reads or io.writes:
                found.append(FileSummary(name, kind, io, grown))
        order = ("data", "wal", "temp", "foreign")
        return sorted(found, key=lambda file: (order.index(file.kind), file.name))

    def io_of(self, database: str, interval: Interval) -> tuple[IoSummary | None, IoSummary | None]:
        """Return the I/O of one database's data files and of its log over an interval; None where it is not known."""
        found: dict[str, list[IoSummary | None]] = {kind: [] for kind in OURS}
        for name, counters in self.files.items():
            if name.startswith(f"{database}/") and self.file_kinds[name] in OURS:
                found[self.file_kinds[name]].append(summarise_io(counters, interval, SERVER, "server"))
        data, wal = (reduce(_with, ios) if ios else None for ios in found.values())
        return data, wal

    def top_waits(self, interval: Interval) -> list[ServerWait]:
        """Return the waits with most time beyond waiting for a CPU, without benign ones; none if they were cleared, as
        a type that has more again than it had before does not show it."""
        deltas = {name: over(counters, interval) for name, counters in self.waits.items()}
        if any(delta.broken for delta in deltas.values() if delta):
            return []
        found = []
        for name, kind in self.wait_classes.items():
            delta = deltas[name]
            if delta is None or not delta["waits"]:
                continue
            figures = delta.seconds, round(delta["waits"]), delta["wait_ms"], delta["signal_ms"]
            found.append(ServerWait(name, kind, *figures, delta.uncertainty or None))
        return sorted(found, key=lambda wait: (-wait.resource_ms, wait.wait_type))[:TOP_WAITS]

    def procedure_summaries(self, interval: Interval, load: Load) -> list[ProcedureSummary]:
        """Return the procedures that were executed, those that read most first."""
        found = []
        for name, counters in self.procedures.items():
            delta = over(counters, interval)
            if delta is None or delta.broken or not delta["executions"]:
                continue
            elapsed = delta.mean("elapsed_us", "executions")
            summary = ProcedureSummary(
                name,
                round(delta["executions"]),
                _coverage(name, delta, load),
                delta.mean("physical_reads", "executions"),
                delta.mean("logical_reads", "executions"),
                delta.mean("logical_writes", "executions"),
                None if elapsed is None else elapsed / 1000,
            )
            found.append((delta["physical_reads"], summary))
        return [summary for _, summary in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]


def _with(one: IoSummary | None, other: IoSummary | None) -> IoSummary | None:
    return together(one, other) if one and other else None


def our_databases(file_kinds: Mapping[str, str]) -> Collection[str]:
    """Return the databases that are ours."""
    return {name.partition("/")[0] for name, kind in file_kinds.items() if kind in OURS}


def read_server_views(record: Record, io: Io, state: StateViews, intervals: Sequence[Interval]) -> ServerViews:
    """Read the views over some intervals, beside the I/O and the state, which were read before."""
    wait_classes = _pairs(record, "server_waits", "wait_type", "wait_class")
    benign = _pairs(record, "server_waits", "wait_type", "benign")
    return ServerViews(
        files=io.server.entities if io.server.file_kinds else {},
        file_kinds=io.server.file_kinds,
        growths=io.server.growths,
        waits=read_counters(record, "server_waits", _WAIT, group="wait_type", entity="wait_type", within=intervals),
        wait_classes={name: kind for name, kind in wait_classes.items() if benign[name] != "true"},
        procedures=read_counters(record, "procedures", _PROCEDURE, group="procedure", entity="plan", within=intervals),
        processes=by_process(record, io.server, DATA),
        io_latency=read_io_latency(record, intervals),
        query_store=read_query_store(record, intervals),
        statements=read_statements(record, intervals),
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
    """Return the executions that the plan cache counted per transaction that ended; None where no such
    transaction ended."""
    transaction = transaction_of(procedure, list(load.counts))
    if transaction is None:
        return None
    ended = ended_between(load, transaction, delta)
    return delta["executions"] / ended if ended else None


def ended_between(load: Load, transaction: str, delta: Delta) -> float:
    """Return the transactions committed or rolled back in the time that a delta covers, taken evenly within seconds."""
    counts = load.counts[transaction]
    ended = np.concatenate([[0], np.cumsum(counts["committed"] + counts["rolled_back"])])
    begin, end = np.interp([delta.begin, delta.end], np.arange(len(ended)), ended)
    return float(end - begin)


def _pairs(record: Record, table: str, key: str, value: str) -> dict[str, str]:
    """Return the value in one column for each value of another, as text; empty when the table lacks one of
    the columns."""
    if not {key, value} <= set(record.schema(table).names):
        return {}
    keys, values, pairs = Codes(), Codes(), PairCodes()
    for batch in record.batches(table, [key, value]):
        pairs.of(keys.of(batch, key), values.of(batch, value))
    of_key, of_value = keys.names, values.names
    return {of_key[one]: of_value[other] for one, other in pairs.pairs}
