"""The judgement whether the driver was the bottleneck. Then the figures say nothing about the server."""

from collections.abc import Iterator

from stallmark.analysis.finding import Finding, invalid
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.stats.thresholds import DRIVER_OVERHEAD, EXECUTOR_CPU, LAG_FLOOR_MS, LAG_SHARE, LITTLE


def driver_bound(load: Load, interval: Interval, arrivals: str) -> Iterator[Finding]:
    """Yield the ways in which the driver held the load back in this interval; nothing when it did not.

    In a closed loop every moment of a user is think time or inside a call; the rest is the driver's overhead. In an
    open loop idle users wait for arrivals, so only the start delay of free users counts. `machine` of a finding is the
    number of the load machine, 0 where there was only one.
    """
    for machine, executors in sorted(load.executors.items()):
        running = float(interval.of(load.user_sum("running", machine)).sum()) * 1e6
        if arrivals == "closed" and running:
            used = float(interval.of(load.user_sum("busy_us", machine) + load.user_sum("think_us", machine)).sum())
            if (overhead := 1 - used / running) > DRIVER_OVERHEAD:
                yield invalid(ValidityKind.DRIVER_OVERHEAD, machine=machine, share=overhead)
        cpu = max(float(interval.of(load.users[executor]["cpu_us"]).mean()) / 1e6 for executor in executors)
        if cpu > EXECUTOR_CPU:
            yield invalid(ValidityKind.EXECUTOR_CPU, machine=machine, share=cpu)
    done = float(interval.of(load.of_users("committed") + load.of_users("rolled_back")).sum())
    if done:
        late_ms = float(interval.of(load.user_sum("lag_us")).sum()) / done / 1000
        latency_ms = float(interval.of(load.of_users("latency_us")).sum()) / done / 1000
        if late_ms > max(LAG_SHARE * latency_ms, LAG_FLOOR_MS):
            yield invalid(ValidityKind.LATE_STARTS, late_ms=late_ms, latency_ms=latency_ms)


def little_gap(load: Load, interval: Interval) -> Finding | None:
    """Return by how much users ≈ TPS × (latency + think time) does not close in a closed loop; None when it closes."""
    users = float(interval.of(load.user_sum("running")).mean())
    if not users:
        return None
    accounted = float(interval.of(load.of_users("latency_us") + load.user_sum("think_us")).mean()) / 1e6
    if abs(accounted / users - 1) <= LITTLE:
        return None
    return invalid(ValidityKind.LITTLES_LAW, users=users, accounted_users=accounted)
