"""CPU time of the server's own processes, if they run on this machine."""

import sys

import pyarrow as pa

from stallmark.collectors.base import EPOCH, Collector, Row
from stallmark.errors import StallmarkError
from stallmark.process_tree import ProcessTree
from stallmark.record.schema import column

CPU_TIMES = (
    column("user_s", pa.float64(), "CPU time of the server's programs, ended processes included"),
    column("system_s", pa.float64(), "CPU time of the kernel in the server's processes, ended ones included"),
)


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
