"""CPU time of a run's own processes: the server's, and on the same machine the client's.

Kernel threads that serve their I/O are in neither.
"""

from dataclasses import dataclass

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, over
from stallmark.analysis.read.throughput import Load

THIS_MACHINE = 0
"""The load machine that is the one Stallmark ran on."""


@dataclass(frozen=True)
class OwnCpu:
    """CPU seconds in `seconds` of an interval. `client_s` is 0 if the server is on another machine, and None if it is
    not known."""

    seconds: float
    server_user_s: float
    server_system_s: float
    server_run_delay_s: float | None  # runnable, waiting for a CPU
    client_s: float | None

    @property
    def cpu_s(self) -> float | None:
        """Return the CPU seconds of server and client on the server's machine."""
        return None if self.client_s is None else self.server_user_s + self.server_system_s + self.client_s

    @property
    def cores(self) -> float | None:
        """Return how many CPUs they kept busy on average."""
        return None if self.cpu_s is None else self.cpu_s / self.seconds


def own_cpu(load: Load, io: Io, interval: Interval) -> OwnCpu | None:
    """Return the run's own CPU time in an interval, or None if that of the server's processes is not known."""
    server = over(io.server_cpu, interval)
    if server is None or server.broken:
        return None
    client = _client_cores(load, io, interval) if io.host is not None else 0.0
    return OwnCpu(
        server.seconds,
        server["user_s"],
        server["system_s"],
        server.get("run_delay_s"),
        None if client is None else client * server.seconds,
    )


def _client_cores(load: Load, io: Io, interval: Interval) -> float | None:
    """Return the cores that the client kept busy on this machine, or None if they are not known: a load machine may be
    another name of this one."""
    if io.client_cpu is None or any(load.executors.keys() - {THIS_MACHINE}):
        return None
    spent = interval.of(io.client_cpu)  # its last second may be missing
    executors = float(interval.of(load.user_sum("cpu_us")).mean())
    return (executors + float(spent.mean())) / 1e6 if len(spent) else None
