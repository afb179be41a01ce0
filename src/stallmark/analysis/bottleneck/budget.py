"""The budget of a transaction's response time: reads, log, locks, CPU, client.

By Little's law (J. D. C. Little, Operations Research 9, 1961) the mean number of sessions in a state is a product: the
rate of transactions times the time each spends in it. So samples of sessions divide the mean response time, and no wait
has to be timed.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.analysis.bottleneck.attribution import IoTime
from stallmark.analysis.bottleneck.summary import PARTS, STORAGE, Budget
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.waits import WaitParts

_SERVED = ("read", "log", "other_io", "lock", "cpu", "rest")
BATCHES = 10


def make_budget(
    load: Load, io: Io, waits: WaitParts | None, interval: Interval, divided: Mapping[str, IoTime]
) -> Budget | None:
    """Return the budget, with I/O `divided` by `divide_io`; None where no sessions were sampled or nothing ended.

    `rest` holds waits of no known class. Time in which no session was sampled is the client's, between the
    server's answers.
    """
    seen, looks = waits.over(interval) if waits else ({}, 0)
    done = int(interval.of(load.all("committed") + load.all("rolled_back")).sum())
    latency, service = (float(interval.of(load.all(column)).sum()) for column in ("latency_us", "service_us"))
    if not seen or not done or latency <= 0:
        return None
    per_transaction = 1000 * interval.seconds / done  # ms of one session
    response_ms = latency / done / 1000
    queue_ms = max(0.0, (latency - service) / done / 1000)
    parts = dict.fromkeys(PARTS, 0.0) | {name: seen.get(name, 0.0) * per_transaction for name in _SERVED}
    served = sum(parts.values())
    within = response_ms - queue_ms
    if served > within:  # samples scatter: their sum cannot exceed the whole that it is part of
        parts = {name: ms * within / served for name, ms in parts.items()}
    parts["queue"] = queue_ms
    parts["client"] = max(0.0, within - served)
    above_ms = {name: parts[name] * divided[name].above for name in STORAGE}
    for name in STORAGE:
        parts["cpu"] += parts[name] * divided[name].cpu
        parts["unknown"] += parts[name] * divided[name].unknown
        parts[name] *= divided[name].storage
    return Budget(response_ms, done, parts, looks, io.data_device is not None, above_ms)


def relative_spread(load: Load, interval: Interval) -> float:
    """Return the standard error of the mean rate of transactions, relative, from means of equal batches of seconds.

    Batches of a few seconds and more hardly depend on one another where single seconds do (batch means: A. M. Law,
    Simulation Modeling and Analysis, 9.5.3). 0 with fewer seconds than batches.
    """
    done = interval.of(load.of_users("committed") + load.of_users("rolled_back"))
    length = len(done) // BATCHES
    if not length or not done.any():
        return 0.0
    means = done[: length * BATCHES].reshape(BATCHES, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(BATCHES) / means.mean())
