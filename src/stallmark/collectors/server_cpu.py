"""CPU time of the server's own processes, if they run on this machine, and of the kernel's threads beside them."""

import sys

import pyarrow as pa

from stallmark.collectors.base import EPOCH, Collector, Row
from stallmark.errors import StallmarkError
from stallmark.process_tree import ProcessTree, read_stat
from stallmark.record.schema import column

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
