"""The machine the server runs on."""

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
        "whole machine."
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
        ]
    )

    def unavailable(self) -> str | None:
        if not self.engine.is_local:
            return "A server that is named by URL may run anywhere: its CPU and memory are not read here."
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
            }
        ]
