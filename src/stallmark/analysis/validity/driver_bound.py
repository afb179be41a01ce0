"""Was the driver the bottleneck? Then the figures say what the driver can do, and nothing about the
server."""

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.load import Load
from stallmark.format import number, percent
from stallmark.stats.thresholds import DRIVER_OVERHEAD, EXECUTOR_CPU, LAG_FLOOR_MS, LAG_SHARE, LITTLE


def driver_bound(load: Load, interval: Interval, arrivals: str) -> str | None:
    """A sentence when the driver held the load back in this interval; None when it did not.

    In a closed loop every moment of a user is think time or inside a call, the rest is the driver's overhead.
    In an open loop idle users wait for arrivals, so only the start delay of those who were free counts.
    """
    reasons = []
    for machine, executors in sorted(load.executors.items()):
        where = f" on load machine {machine}" if machine else ""
        running = interval.of(load.user_sum("running", machine)).sum() * 1e6
        if arrivals == "closed" and running:
            used = interval.of(load.user_sum("busy_us", machine) + load.user_sum("think_us", machine)).sum()
            if (overhead := 1 - used / running) > DRIVER_OVERHEAD:
                reasons.append(f"users{where} spent {percent(overhead)} of their time neither thinking nor in a call")
        cpu = max(interval.of(load.users[executor]["cpu_us"]).mean() / 1e6 for executor in executors)
        if cpu > EXECUTOR_CPU:
            reasons.append(f"an executor{where} used {percent(cpu)} of a CPU core")
    done = interval.of(load.of_users("committed") + load.of_users("rolled_back")).sum()
    if done:
        lag_ms = interval.of(load.user_sum("lag_us")).sum() / done / 1000
        latency_ms = interval.of(load.of_users("latency_us")).sum() / done / 1000
        if lag_ms > max(LAG_SHARE * latency_ms, LAG_FLOOR_MS):
            reasons.append(
                f"transactions started {number(lag_ms)} ms late on average, of {number(latency_ms)} ms latency"
            )
    return f"The driver was the bottleneck: {'; '.join(reasons)}." if reasons else None


def little_gap(load: Load, interval: Interval) -> str | None:
    """A sentence when users ≈ TPS × (latency + think time) does not close in a closed loop."""
    users = interval.of(load.user_sum("running")).mean()
    if not users:
        return None
    accounted = interval.of(load.of_users("latency_us") + load.user_sum("think_us")).mean() / 1e6
    if abs(accounted / users - 1) <= LITTLE:
        return None
    return (
        f"Little's law does not close: {number(users)} users were running, throughput times latency and "
        "think "
        f"time accounts for {number(accounted)}."
    )
