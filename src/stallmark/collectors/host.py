"""The machine the server runs on, and the CPU time of the server's own processes there."""

import sys
from pathlib import Path

import psutil
import pyarrow as pa

from stallmark.collectors.base import EPOCH, Collector, Row
from stallmark.errors import StallmarkError
from stallmark.process_tree import ProcessTree, read_stat
from stallmark.record.schema import column

# The machine the server runs on.


class Host(Collector):
    name = "host"
    title = "Host"
    help = (
        "CPU time of all cores since the machine started, and available memory. System includes interrupts; "
        "time waiting for I/O and stolen time are known on Linux only. In a container this is still the "
        "whole machine. Stalled: the time in which any task waited for a CPU or for I/O (/proc/pressure)."
    )
    columns = pa.schema(
        [
            column("user_s", pa.float64(), "CPU time of programs since the start of the machine"),
            column("system_s", pa.float64(), "CPU time of the kernel, interrupts included"),
            column("iowait_s", pa.float64(), "idle while I/O was under way; Linux only"),
            column("idle_s", pa.float64(), "idle time"),
            column("steal_s", pa.float64(), "taken by the hypervisor; Linux only"),
            column("cores", pa.int32(), "of the machine", "cores"),
            column("available_bytes", pa.int64(), "memory available now"),
            column("cpu_stalled_s", pa.float64(), "any task was waiting for a CPU; null where it is not counted"),
            column("io_stalled_s", pa.float64(), "any task was waiting for I/O; null where it is not counted"),
        ]
    )

    def unavailable(self) -> str | None:
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so its CPUs and memory are not read."
        return None

    def sample(self, now: float) -> list[Row]:
        cpu = psutil.cpu_times()._asdict()
        return [
            {
                "user_s": cpu["user"] + cpu.get("nice", 0.0),
                "system_s": cpu["system"] + cpu.get("irq", 0.0) + cpu.get("softirq", 0.0),
                "iowait_s": cpu.get("iowait"),
                "idle_s": cpu["idle"],
                "steal_s": cpu.get("steal"),
                "cores": psutil.cpu_count(),
                "available_bytes": psutil.virtual_memory().available,
                "cpu_stalled_s": _stalled_s("cpu"),
                "io_stalled_s": _stalled_s("io"),
            }
        ]


def _stalled_s(resource: str, pressure: Path = Path("/proc/pressure")) -> float | None:
    """Return the time that any task has waited for a resource, or None if the kernel does not count it."""
    try:
        [line, *_] = (pressure / resource).read_text().splitlines()
    except (OSError, ValueError):
        return None
    return int(line.rpartition("total=")[2]) / 1e6


# CPU time of the server's own processes, if they run on this machine, and of the kernel's threads beside them.

CPU_TIMES = (
    column("user_s", pa.float64(), "CPU time of the server's programs, ended processes included"),
    column("system_s", pa.float64(), "CPU time of the kernel in the server's processes, ended ones included"),
)


KTHREADD = 2
"""The process that all threads of the kernel descend from."""


class ServerCpu(Collector):
    name = "server_cpu"
    title = "CPU of the server"
    help = (
        "CPU time of the server's processes, ended ones included, and how long they were runnable and waited for a "
        "CPU (/proc). The delay of a process that ended is kept as it was last seen."
    )
    columns = pa.schema(
        [
            EPOCH,
            *CPU_TIMES,
            column("run_delay_s", pa.float64(), "runnable and waiting for a CPU, summed over threads; null: not known"),
            column("processes", pa.int32(), "of the server now", "processes"),
        ]
    )

    _pid: int | None = None
    _tree: ProcessTree | None = None

    def unavailable(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return f"CPU time of the server's processes is read from Linux' /proc, and this is {sys.platform}."
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so their CPU time is not known."
        return None

    def open(self) -> None:
        pid = self.engine.process()
        if pid is None:
            raise StallmarkError("the server's processes are not seen any more")
        if pid != self._pid:
            self._pid, self._tree = pid, ProcessTree(pid)

    def sample(self, now: float) -> list[Row]:
        assert self._tree
        times = self._tree.read()
        if times is None:
            raise StallmarkError("the server's first process has ended")
        return [{"epoch": f"process {self._pid}", **vars(times)}]


class KernelCpu(Collector):
    name = "kernel_cpu"
    title = "CPU of the kernel's threads"
    help = (
        "CPU time of the kernel's own threads (/proc): they write caches out, encrypt, and serve stacked devices and "
        "networks, for whoever asked. Interrupts are not in it."
    )
    interval_s = 5.0  # there may be a thousand
    columns = pa.schema([column("system_s", pa.float64(), "CPU time of the kernel's threads so far")])

    def unavailable(self) -> str | None:
        if self.engine.process() is None:
            return "The server's processes are not seen on this machine, so its kernel's CPU time is not read."
        threads = read_stat(KTHREADD)
        if threads is None or threads.name != "kthreadd":
            return "The kernel's threads are not seen here, as in a container: their CPU time is not known."
        return None

    def open(self) -> None:
        self._tree = ProcessTree(KTHREADD)

    def sample(self, now: float) -> list[Row]:
        times = self._tree.read()
        return [{"system_s": times.user_s + times.system_s}] if times else []
