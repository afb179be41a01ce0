"""The prediction of throughput for another read time: a closed model of one step, solved for throughput.

Each of N users thinks for Z and then waits for a response R, so N = X (Z + R). Reads are a delay: their number per
transaction depends on pool and transactions and stays. Their time, queueing at the device included, is what is varied.

The CPU is a queue of c servers (mean value analysis, M. Reiser and S. Lavenberg, Journal of the ACM 27, 1980; P. J.
Schweitzer's approximation, 1979; c servers by A. Seidmann, P. Schweitzer and S. Shalev-Oren, 1987). Locks are held for
as long as transactions last, so waiting for them shrinks with the rest. Writes, log, client and what nothing explains
stay.

The range is over what the model cannot know. Waiting for locks shrinks or stays; the CPU queues or only limits; reads
are as long as sessions were seen in them or as the counters say. On either side it is widened by twice the standard
error of the step's own throughput, and by MODEL_ERROR.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from stallmark.analysis.bottleneck.summary import Demands, Limit, Prediction
from stallmark.stats.thresholds import MODEL_ERROR

WHAT_IF_MS = (5.0, 2.0, 1.0, 0.5, 0.2)
"""Read times that are worth a row: a disk with little queue, a hybrid array, a good array, flash behind a network, NVMe
in the server."""


@dataclass(frozen=True)
class _Assumptions:
    locks_shrink: bool = True
    cpu_queues: bool = True


_EVERY = [_Assumptions(*some) for some in product((True, False), repeat=2)]


def predict(demands: Demands, read_ms: float) -> Prediction:
    """Predict throughput if a read took `read_ms` (> 0) on average."""
    rate, times = _solve(demands, read_ms, _Assumptions())
    rates = [rate, *_others(demands, read_ms)]
    per_rate = demands.tps / demands.rate
    error = 2 * demands.spread + MODEL_ERROR * abs(math.log2(read_ms / demands.read_ms))
    at_most = max(rates) * per_rate * (1 + error)
    at_least = min(rates) * per_rate / (1 + error)
    response = sum(times.values()) - times[Limit.THINK_TIME]
    return Prediction(read_ms, rate * per_rate, at_least, at_most, response, max(times, key=lambda part: times[part]))


def _others(demands: Demands, read_ms: float) -> Iterator[float]:
    """Yield the rates under every other set of assumptions."""
    read_part = demands.read_part_ms
    # By the counters reads may be longer or shorter than they were seen to be; the rest of the response gives way.
    counted = min(demands.read_volume_ms, read_part + demands.fixed_ms)
    by_counters = replace(demands, read_part_ms=counted, fixed_ms=demands.fixed_ms + read_part - counted)
    for one in (demands, by_counters):
        for assume in _EVERY:
            yield _solve(one, read_ms, assume)[0]


def _solve(demands: Demands, read_ms: float, assume: _Assumptions) -> tuple[float, dict[Limit, float]]:
    """Return the rate at which N = X (Z + R(X)), per second, and R's parts there; X (Z + R(X)) only grows with X."""
    high = demands.users * 1e6
    if demands.cpu_ms and demands.cores:
        high = min(high, demands.cores / demands.cpu_ms * 1000)

    def too_many(rate: float) -> float:
        return rate * sum(_times(demands, read_ms, rate, assume).values()) / 1000 - demands.users

    if too_many(high) <= 0:
        return high, _times(demands, read_ms, high, assume)
    low = 0.0
    while low < (rate := (low + high) / 2) < high:  # to the last digit
        low, high = (low, rate) if too_many(rate) > 0 else (rate, high)
    return rate, _times(demands, read_ms, rate, assume)


def _times(demands: Demands, read_ms: float, rate: float, assume: _Assumptions) -> dict[Limit, float]:
    """Return a user's cycle in ms, by part."""
    reads = demands.read_part_ms * read_ms / demands.read_ms
    cpu = demands.cpu_part_ms
    if assume.cpu_queues:
        cpu = max(0.0, cpu + _residence(demands, rate) - _residence(demands, demands.rate))
    held = reads + cpu + demands.fixed_ms
    locks = demands.lock_ms
    before = demands.response_ms - locks
    if assume.locks_shrink and before > 0:
        locks *= held / before
    return {
        Limit.READS: reads,
        Limit.CPU: cpu,
        Limit.LOCKS: locks,
        Limit.THINK_TIME: demands.think_ms,
        Limit.REST: demands.fixed_ms,
    }


def _residence(demands: Demands, rate: float) -> float:
    """Return the time at the CPU per transaction, queueing included (ms), when transactions come at `rate`."""
    if not demands.cpu_ms or not demands.cores:
        return 0.0
    each = demands.cpu_ms / demands.cores
    others = max(0.0, demands.users - 1) / demands.users
    used = min(others * rate * each / 1000, 1 - 1e-9)
    return demands.cpu_ms - each + each / (1 - used)
