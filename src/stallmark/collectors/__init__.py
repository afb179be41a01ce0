"""The collectors, in the order in which they are listed and shown."""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

from stallmark.collectors.host import DeviceIO, Host, KernelCpu, ServerCpu
from stallmark.collectors.mssql.counters import LoadIO as MssqlLoadIO
from stallmark.collectors.mssql.counters import (
    LogSpace,
    Performance,
    Procedures,
    Replicas,
    ServerWaits,
    SessionWaits,
    StatisticsUpdates,
    TempDb,
)
from stallmark.collectors.mssql.counters import RowLocks as MssqlRowLocks
from stallmark.collectors.mssql.counters import ServerCpu as MssqlServerCpu
from stallmark.collectors.mssql.counters import ServerIO as MssqlServerIO
from stallmark.collectors.mssql.io_latency import IoLatency, LogLatency, Volumes
from stallmark.collectors.mssql.io_latency import drop_left_behind as _drop_left_behind
from stallmark.collectors.mssql.moments import BufferPool, Cpu, ErrorLog, PendingIO, Schedulers
from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, QueryStoreWaits, Statements
from stallmark.collectors.mssql.statements import StatementReads as MssqlStatementReads
from stallmark.collectors.mssql.waits import Blocking, Deadlocks
from stallmark.collectors.mssql.waits import UserWaits as MssqlWaits
from stallmark.collectors.postgres.counters import (
    Checkpoints,
    Database,
    LoadIO,
    Relations,
    RowLocks,
    ServerIO,
    StatementReads,
    UserWaits,
    Wal,
)
from stallmark.collectors.postgres.io_trace import IoFiles, IoTrace
from stallmark.collectors.sampler import Collector
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.transactions.workload import StatementFacts

__all__ = ["ON_REQUEST", "REGISTRY", "Collector", "collectors_for", "drop_left_behind", "storage_alarm"]

REGISTRY: dict[str, Sequence[type[Collector]]] = {
    "postgresql": (
        *(ServerIO, Wal, UserWaits, RowLocks, LoadIO, Database, Checkpoints, Relations, Host, ServerCpu),
        *(KernelCpu, DeviceIO),
    ),
    "mssql": (
        *(MssqlServerIO, MssqlLoadIO, MssqlWaits, ServerWaits, SessionWaits, Performance, Procedures, Statements),
        *(MssqlRowLocks, Blocking, Deadlocks, PendingIO, Schedulers, Cpu, LogSpace, LogLatency, Replicas, TempDb),
        StatisticsUpdates,
        *(BufferPool, ErrorLog, Host, MssqlServerCpu, KernelCpu, DeviceIO),
        *((Volumes,) if sys.platform == "win32" else ()),  # elsewhere it would be a line that helps nobody
    ),
}
"""Collectors by the engine's dialect."""

ON_REQUEST: Mapping[str, Mapping[str, Sequence[type[Collector]]]] = {
    "mssql": {"query_store": (QueryStore, QueryStoreWaits, QueryStoreState), "io_latency": (IoLatency,)},
    "postgresql": {"io_trace": (IoTrace, IoFiles)},
}
"""Collectors by the engine's dialect and by the word of a scenario's `observe`: they cost the server something."""


OF_STATEMENTS: Mapping[str, type[StatementReads] | type[MssqlStatementReads]] = {
    "postgresql": StatementReads,
    "mssql": MssqlStatementReads,
}
"""The collector of the reads of own SQL's statements, by the engine's dialect."""


def collectors_for(
    engine: Engine,
    observe: Sequence[str] = (),
    statements: Mapping[str, Sequence[StatementFacts]] = MappingProxyType({}),
) -> list[Collector]:
    """Return one of each collector for this engine and of the requested ones; `unavailable` marks those that cannot
    measure.

    A requested collector takes the place of another of its name. `statements`: those of SQL of a user's own, by
    workload.
    """
    requested = ON_REQUEST.get(engine.dialect, {})
    kinds = [*REGISTRY.get(engine.dialect, ()), *(kind for name in observe for kind in requested[name])]
    if len(engine.databases()) == 1:
        [engine] = engine.databases()
    collectors = [kind(engine) for kind in {kind.name: kind for kind in kinds}.values()]
    if statements and engine.dialect in OF_STATEMENTS:
        collectors.append(OF_STATEMENTS[engine.dialect](engine, statements))
    return collectors


def drop_left_behind(engine: Engine) -> None:
    """Drop what collectors of a killed run left running on the server. Only for a run that holds the server."""
    if engine.dialect == "mssql":
        _drop_left_behind(cast(MssqlEngine, engine))


def storage_alarm(collectors: Sequence[Collector]) -> str | None:
    """Return the reason why a run must stop and gives no verdict: the server's storage failed, as a collector saw."""
    return next((collector.alarm for collector in collectors if collector.alarm), None)
