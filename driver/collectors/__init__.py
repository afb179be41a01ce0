"""The collectors, in the order in which they are listed and shown."""

from collections.abc import Sequence

from stallmark.driver.collectors.base import Collector
from stallmark.driver.collectors.device import Device
from stallmark.driver.collectors.host import Host
from stallmark.driver.collectors.mssql.collector import MssqlCollector
from stallmark.driver.collectors.mssql.connection import CollectorConnection as MssqlConnection
from stallmark.driver.collectors.mssql.counters import (
    LogSpace,
    Performance,
    Procedures,
    ServerWaits,
    SessionWaits,
    TempDb,
)
from stallmark.driver.collectors.mssql.counters import ServerIO as MssqlServerIO
from stallmark.driver.collectors.mssql.error_log import ErrorLog
from stallmark.driver.collectors.mssql.moments import BufferPool, Cpu, PendingIO, Schedulers
from stallmark.driver.collectors.mssql.waits import Waits as MssqlWaits
from stallmark.driver.collectors.postgres.connection import CollectorConnection
from stallmark.driver.collectors.postgres.counters import (
    Checkpoints,
    Database,
    PostgresCollector,
    Relations,
    ServerIO,
    UserIO,
    Wal,
)
from stallmark.driver.collectors.postgres.waits import Waits
from stallmark.driver.engines.base import Engine

__all__ = ["REGISTRY", "Collector", "collectors_for", "storage_alarm"]

REGISTRY: dict[str, Sequence[type[Collector]]] = {
    "postgresql": (ServerIO, Wal, Waits, UserIO, Database, Checkpoints, Relations, Host, Device),
    "mssql": (
        *(MssqlServerIO, MssqlWaits, ServerWaits, SessionWaits, Performance, Procedures),
        *(PendingIO, Schedulers, Cpu, LogSpace, TempDb, BufferPool, ErrorLog, Host, Device),
    ),
}
"""By the engine's dialect."""


def collectors_for(engine: Engine) -> list[Collector]:
    """One of each collector for this engine; what cannot measure here says so in `unavailable`.

    Those that read counters share a connection, because the sampler runs them in one thread.
    """
    postgres, mssql = CollectorConnection(engine), MssqlConnection(engine)

    def made(kind: type[Collector]) -> Collector:
        if not kind.polling and issubclass(kind, PostgresCollector):
            return kind(engine, postgres)
        if not kind.polling and issubclass(kind, MssqlCollector):
            return kind(engine, mssql)
        return kind(engine)

    return [made(kind) for kind in REGISTRY.get(engine.dialect, ())]


def storage_alarm(collectors: Sequence[Collector]) -> str | None:
    """Why a run must stop and gives no verdict: the server's storage failed, as one of its collectors saw."""
    alarms = (collector.alarm for collector in collectors if isinstance(collector, ErrorLog))
    return next((alarm for alarm in alarms if alarm), None)
