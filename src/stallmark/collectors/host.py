"""The machine the server runs on."""

from pathlib import Path

import psutil
import pyarrow as pa

from stallmark.collectors.base import Collector, Row
from stallmark.record.schema import column


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
