"""Records of runs on SQL Server, with rows made up: 35 s, a sample every second."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.step_summary import StepSummary
from stallmark.collectors.mssql import MssqlCollector
from stallmark.collectors.mssql.counters import (
    LogSpace,
    Performance,
    Procedures,
    Replicas,
    ServerIO,
    ServerWaits,
    StatisticsUpdates,
    TempDb,
)
from stallmark.collectors.mssql.io_latency import IoLatency, Volumes
from stallmark.collectors.mssql.moments import BufferPool, Cpu, ErrorLog, PendingIO, Schedulers
from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, QueryStoreWaits, Statements
from stallmark.collectors.mssql.waits import Blocking, Deadlocks, UserWaits
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED
from support import tables
from support.manifests import changed
from support.synthetic import Truth, make_run

SECONDS, BEGIN, END = 35, 5, 35  # of which 30 are measured
POSTGRES = ("server_io", "wal", "waits", "database", "checkpoints", "host", "device")
TRUTH = Truth(tps=400, noise=0.0, emulated=False, device={"name": "sda"}, off=POSTGRES)


@dataclass(frozen=True)
class File:
    """Rates per second; everything else follows."""

    name: str
    kind: str
    reads: float = 0.0
    read_ms: float = 0.0  # of each; the server counts whole ms of the sum
    writes: float = 0.0
    write_ms: float = 0.0
    io_bytes: int = 8192
    handles: dict[int, str] = field(default_factory=lambda: {0: "0x01"})  # by the second they hold from
    sizes: dict[int, int] = field(default_factory=lambda: {0: 1 << 20})

    def rows(self) -> Iterable[dict[str, Any]]:
        for t in range(SECONDS + 1):
            since = max(second for second in self.handles if second <= t)
            handle = self.handles[since]
            reads, writes = int(self.reads * (t - since)), int(self.writes * (t - since))
            yield dict.fromkeys(ServerIO.columns.names) | {
                "t": float(t), "server_time": float(t), "epoch": f"start 1 handle {handle}", "entity": self.name,
                "kind": self.kind, "reads": reads, "read_bytes": reads * self.io_bytes,
                "read_stall_ms": int(reads * self.read_ms), "writes": writes, "write_bytes": writes * self.io_bytes,
                "write_stall_ms": int(writes * self.write_ms), "handle": handle,
                "size_bytes": self.sizes[max(second for second in self.sizes if second <= t)],
            }  # fmt: skip


DATA = File("bank/bank", "data", reads=800, read_ms=6.25, writes=80, write_ms=2.5)
LOG = File("bank/bank_log", "wal", writes=400, write_ms=0.75, io_bytes=4096)
TEMP = File("tempdb/tempdev", "temp", reads=1, writes=1)
OTHER = File("crm/crm", "foreign", reads=10, read_ms=5)


TABLES: Sequence[type[MssqlCollector]] = (
    *(UserWaits, ServerWaits, Procedures, Statements, Blocking, Deadlocks, Volumes, ErrorLog, IoLatency),
    *(
        QueryStore,
        QueryStoreWaits,
        QueryStoreState,
        Performance,
        Replicas,
        StatisticsUpdates,
        PendingIO,
        Schedulers,
        LogSpace,
        TempDb,
        BufferPool,
        Cpu,
    ),
)


def put(folder: Path, kind: type[MssqlCollector], rows: Iterable[dict[str, Any]]) -> None:
    schema = pa.schema([*SAMPLED, *kind.columns])
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["t"]), schema=schema)
    tables.put(folder, kind.name, table)


def run(folder: Path, files: Sequence[File] = (DATA, LOG, TEMP, OTHER), **more: Iterable[dict[str, Any]]) -> Path:
    """A record of a run on SQL Server; `more`: rows of other tables."""
    make_run(folder, TRUTH)
    sampled = {kind.name: {"title": kind.title, "interval_s": kind.interval_s} for kind in (ServerIO, *TABLES)}
    changed(
        folder,
        server={"product": "SQL Server", "version": "16.0.4105.2 RTM Developer Edition"},
        collectors={name: one for name, one in sampled.items() if name in (ServerIO.name, *more)},
    )
    put(folder, ServerIO, [row for file in files for row in file.rows()])
    for kind in TABLES:
        if kind.name in more:
            put(folder, kind, more[kind.name])
    return folder


def summary(folder: Path) -> ExperimentSummary:
    return summarise([Record(folder)])


def step(folder: Path, files: Sequence[File] = (DATA, LOG, TEMP, OTHER), **more: Any) -> StepSummary:
    [only] = summary(run(folder, files, **more)).steps
    return only
