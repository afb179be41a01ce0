"""The share of the CPUs of the server's machine that other programs used while a step was measured."""

from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, OwnCpu, over, own_cpu
from stallmark.analysis.read.server_summary import ServerState
from stallmark.record.manifest import Manifest
from stallmark.stats.thresholds import CPU_DELAY, CPU_LIMITS, FOREIGN_CPU


def foreign_cpu_share(
    manifest: Manifest, load: Load, io: Io, state: ServerState | None, interval: Interval
) -> float | None:
    """Return the share of the CPUs that other programs used, or None if it is not known or does not matter.

    It is what neither the server, the client on the same machine nor the kernel's threads used. A share above the limit
    is left out if it kept nobody from a CPU.
    """
    shares = _by_processes(manifest, load, io, interval) or _by_notes(state)
    if shares is None:
        return None
    foreign, busy, own = shares
    if foreign > FOREIGN_CPU and not _delays(manifest, load, interval, busy, own):
        return None
    return foreign


def _by_processes(
    manifest: Manifest, load: Load, io: Io, interval: Interval
) -> tuple[float, float, OwnCpu | None] | None:
    """Return the share of other programs, of all that was busy, and the run's own. Not known beside an array that is
    emulated as a block device: the program that serves it is in no table."""
    own, host = own_cpu(load, io, interval), over(io.host, interval)
    if own is None or own.cores is None or host is None or host.broken:
        return None
    models = (manifest.devices.of(role).emulated_array for role in ("data", "wal"))
    if any(model and model.block_device for model in models):
        return None
    total = sum(host.values.values()) / host.seconds
    busy = total - (host["idle_s"] + host.values.get("iowait_s", 0.0)) / host.seconds
    kernel = over(io.kernel_cpu, interval)
    threads = kernel["system_s"] / kernel.seconds if kernel and not kernel.broken else 0.0
    return max(0.0, busy - own.cores - threads) / total, busy / total, own


def _by_notes(state: ServerState | None) -> tuple[float, float, OwnCpu | None] | None:
    """Return the same by SQL Server's notes of every minute. Where these do not hold the idle time, the process is all
    that is known to be busy."""
    if state is None or state.cpu_busy_share is None or state.cpu_process_share is None:
        return None
    foreign = state.cpu_busy_share - state.cpu_process_share
    return (foreign, state.cpu_busy_share, None) if foreign > 0 else None


def _delays(manifest: Manifest, load: Load, interval: Interval, busy: float, own: OwnCpu | None) -> bool:
    """Return whether the run waited for CPUs: as the kernel counted it, else whether the CPUs were busy enough to limit
    it. The kernel does not tell one load's sessions from another's."""
    if own is None or own.server_run_delay_s is None or manifest.loads:
        return busy >= CPU_LIMITS
    spent_s = float(interval.of(load.all("service_us")).sum()) / 1e6
    return own.server_run_delay_s / own.seconds > CPU_DELAY * spent_s / interval.seconds
