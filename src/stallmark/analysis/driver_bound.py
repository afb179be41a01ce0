"""The limits of the driver: the ways in which it, and not the server, was the bottleneck of a step."""

from collections.abc import Iterator

import numpy as np

from stallmark.analysis.finding import Finding, Kind, invalid
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.stats.thresholds import DRIVER_OVERHEAD, EXECUTOR_CPU, LAG_FLOOR_MS, LAG_SHARE, LITTLE


class DriverKind(Kind):
    """Ways in which the driver limited the load, or its users' time does not add up."""

    OVERHEAD = "driver_overhead"
    EXECUTOR_CPU = "executor_cpu"
    LATE_STARTS = "late_starts"
    LITTLES_LAW = "littles_law"


def driver_bound(load: Load, interval: Interval, arrivals: str, *, answered: bool = True) -> Iterator[Finding]:
    """Yield the ways in which the driver limited the load in this interval; none if it did not.

    In a closed loop every moment of a user is think time or inside a call. The rest is the driver's overhead, unless
    the server was lost or a call never ended (`answered` is false): then users waited for the server. A late start
    lengthens the user's cycle by its delay. In an open loop idle users wait for arrivals, so only the start delay of
    free users counts, compared with the latency that includes it. `machine` of a finding is the number of the load
    machine, 0 if there was only one.
    """
    for machine, executors in sorted(load.executors.items()):
        running = float(interval.select(load.user_sum("running", machine)).sum()) * 1e6
        if arrivals == "closed" and running and answered:
            used = float(interval.select(_used_us(load, machine)).sum())
            if (overhead := 1 - used / running) > DRIVER_OVERHEAD:
                yield invalid(DriverKind.OVERHEAD, machine=machine, share=overhead)
        cpu = max(float(interval.select(load.users[executor]["cpu_us"]).mean()) / 1e6 for executor in executors)
        if cpu > EXECUTOR_CPU:
            yield invalid(DriverKind.EXECUTOR_CPU, machine=machine, share=cpu)
    done = float(interval.select(load.users_sum("committed") + load.users_sum("rolled_back")).sum())
    if done:
        late_ms = float(interval.select(load.user_sum("lag_us")).sum()) / done / 1000
        latency_ms = float(interval.select(load.users_sum("latency_us")).sum()) / done / 1000
        think_ms = (
            float(interval.select(load.user_sum("think_us")).sum()) / done / 1000 if arrivals == "closed" else 0.0
        )
        if late_ms > max(LAG_SHARE * (latency_ms + think_ms), LAG_FLOOR_MS):
            yield invalid(DriverKind.LATE_STARTS, late_ms=late_ms, latency_ms=latency_ms, think_ms=think_ms)


def little_gap(load: Load, interval: Interval) -> Finding | None:
    """Return the gap in users ≈ TPS × (latency + think time) in a closed loop, or None if the two sides agree."""
    running = load.user_sum("running")
    users = float(interval.select(running).mean())
    if not users:
        return None
    spent_us = load.users_sum("latency_us") + load.user_sum("think_us")
    accounted = float(interval.select(spent_us).mean()) / 1e6
    spread_us, left_us = _spread_back(spent_us, running * 1e6)
    passed = float(interval.select(spread_us).mean()) / 1e6
    # Either way of counting may close: calls that end after the interval make the first too small, calls from before it
    # make the second too large.
    if min(abs(accounted / users - 1), abs(passed / users - 1) + left_us / running.sum() / 1e6) <= LITTLE:
        return None
    return invalid(DriverKind.LITTLES_LAW, users=users, accounted_users=accounted)


def _used_us(load: Load, machine: int) -> np.ndarray:
    """Return the users' time per second that was think time or inside a call."""
    used_us = load.user_sum("busy_us", machine) + load.user_sum("think_us", machine)
    return _spread_back(used_us, load.user_sum("running", machine) * 1e6)[0]


def _spread_back(spent_us: np.ndarray, users_us: np.ndarray) -> tuple[np.ndarray, float]:
    """Return time by the second in which it passed, and the rest for which no earlier second has room.

    Time is counted in the second in which a call ended. Time beyond the users' time in a second belongs to the seconds
    before: a call of many seconds, such as one that ends after an interval, must not pass for an idle user. With one
    user, 0, 0 and 3 seconds counted become 1, 1 and 1.
    """
    over = np.cumsum((spent_us - users_us)[::-1])
    left = np.append(
        (over - np.minimum(np.minimum.accumulate(over), 0.0))[::-1], 0.0
    )  # excess that each second passes to the one before
    return spent_us + left[1:] - left[:-1], float(left[0])
