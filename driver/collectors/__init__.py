"""The collectors, in the order in which they are listed and shown."""

from collections.abc import Sequence

from stallmark.driver.collectors.base import Collector
from stallmark.driver.collectors.device import Device
from stallmark.driver.collectors.host import Host
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

__all__ = ["REGISTRY", "Collector", "collectors_for"]

REGISTRY: dict[str, Sequence[type[Collector]]] = {
    "postgresql": (ServerIO, Wal, Waits, UserIO, Database, Checkpoints, Relations, Host, Device),
}
"""By the engine's dialect."""


def collectors_for(engine: Engine) -> list[Collector]:
    """One of each collector for this engine; what cannot measure here says so in `unavailable`.

    Those that read counters share a connection, because the sampler runs them in one thread.
    """
    shared = CollectorConnection(engine)
    return [
        kind(engine, shared) if issubclass(kind, PostgresCollector) and not kind.polling else kind(engine)
        for kind in REGISTRY.get(engine.dialect, ())
    ]
