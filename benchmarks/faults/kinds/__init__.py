"""The kinds of rounds, and how often each comes."""

from collections.abc import Callable

from benchmarks.faults.kinds import network, records, servers, signals, sqlserver, surroundings
from benchmarks.faults.round import Round

KINDS: dict[str, tuple[int, Callable[[Round], None]]] = {
    "build": (6, signals.build),
    "run": (10, signals.run),
    "restore": (3, signals.restore),
    "check": (1, signals.check),
    "report": (2, records.report),
    "attach": (1, records.attach),
    "load machines": (3, servers.load_machines),
    "hooks": (2, records.hooks),
    "emulated array": (2, records.emulated),
    "array as a block device": (1, records.block_device),
    "server up": (1, sqlserver.server_up),
    "memory of SQL Server": (2, sqlserver.memory),
    "disk full": (3, surroundings.disk_full),
    "unwritable folder": (2, surroundings.unwritable),
    "clock": (3, surroundings.clock),
    "network": (4, network.network),
    "server restarts": (2, network.restarts),
    "failover": (2, network.failover),
}
