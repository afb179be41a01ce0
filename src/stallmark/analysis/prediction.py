"""Predictions of throughput for other read times, for every variant of some runs.

A closed model of a step, fitted to its figures, is solved for each. Predictions are tested where variants with other
read times were really run.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from statistics import fmean

from stallmark.analysis.finding import Finding, info
from stallmark.analysis.metrics import group, points
from stallmark.analysis.step_summary import Demands, Limit, NoteKind, Prediction, Source, StepSummary
from stallmark.errors import StallmarkError
from stallmark.stats.thresholds import MODEL_ERROR, READS_SAME

_ROUNDING = 1e-9


@dataclass(frozen=True)
class ModelTest:
    """One side's prediction for the other side, compared with the measurement: TPS, means over runs."""

    model_of: str  # variant
    variant: str
    read_ms: float  # measured on the other side
    predicted: float
    low: float
    high: float
    measured: float
    runs: int  # runs of the other side

    @property
    def error(self) -> float:
        """Return predicted ÷ measured, less 1."""
        return self.predicted / self.measured - 1

    @property
    def is_within_range(self) -> bool:
        # A range without width, of runs that do not differ, is not missed by the rounding of its ends.
        return self.low * (1 - _ROUNDING) <= self.measured <= self.high * (1 + _ROUNDING)


# The prediction of throughput for another read time: a closed model of one step, solved for throughput.
#
# Each of N users thinks for Z and then waits for a response R, so N = X (Z + R). Reads are a delay: their number per
# transaction depends on pool and transactions and stays. Their time, queueing at the device included, is varied.
#
# The CPU is a queue of c servers (mean value analysis, M. Reiser and S. Lavenberg, Journal of the ACM 27, 1980; P. J.
# Schweitzer's approximation, 1979; c servers by A. Seidmann, P. Schweitzer and S. Shalev-Oren, 1987). Locks are held
# until a transaction ends, so waiting for locks shrinks with the rest. Writes, log, client and unexplained time stay.
#
# The range covers what the model cannot know. Waiting for locks shrinks or stays; the CPU queues or only limits; reads
# are as long as sessions were seen in them or as the counters say. On either side it is widened by twice the standard
# error of the step's own throughput, and by MODEL_ERROR.

WHAT_IF_MS = (5.0, 2.0, 1.0, 0.5, 0.2)
"""Read times that a prediction is made for: a disk with little queue, a hybrid array, a good array, flash behind a
network, NVMe in the server."""


@dataclass(frozen=True)
class _Assumptions:
    locks_shrink: bool = True
    cpu_queues: bool = True


_ALL_ASSUMPTIONS = [_Assumptions(*choices) for choices in product((True, False), repeat=2)]


def predict(demands: Demands, read_ms: float) -> Prediction:
    """Predict throughput if a read took `read_ms` (> 0) on average."""
    rate, times = _solve(demands, read_ms, _Assumptions())
    rates = [rate, *_other_rates(demands, read_ms)]
    per_rate = demands.tps / demands.rate
    error = 2 * demands.spread + MODEL_ERROR * abs(math.log2(read_ms / demands.read_ms))
    at_most = max(rates) * per_rate * (1 + error)
    at_least = min(rates) * per_rate / (1 + error)
    response = sum(times.values()) - times[Limit.THINK_TIME]
    return Prediction(read_ms, rate * per_rate, at_least, at_most, response, max(times, key=lambda part: times[part]))


def mean_prediction(demands: Sequence[Demands], read_ms: float) -> Prediction:
    """Predict throughput for several runs: means over the runs, and so are the ends of the range."""
    predictions = [predict(demand, read_ms) for demand in demands]
    limits = {prediction.limit for prediction in predictions}
    return Prediction(
        read_ms,
        fmean(prediction.tps for prediction in predictions),
        fmean(prediction.low for prediction in predictions),
        fmean(prediction.high for prediction in predictions),
        fmean(prediction.response_ms for prediction in predictions),
        limits.pop() if len(limits) == 1 else None,
    )


def _other_rates(demands: Demands, read_ms: float) -> Iterator[float]:
    """Yield the rates under every other set of assumptions."""
    read_part = demands.read_part_ms
    # By the counters reads may be longer or shorter than by samples; the rest of the response time makes up for it.
    counted = min(demands.read_volume_ms, read_part + demands.fixed_ms)
    by_counters = replace(demands, read_part_ms=counted, fixed_ms=demands.fixed_ms + read_part - counted)
    for variant in (demands, by_counters):
        for assume in _ALL_ASSUMPTIONS:
            yield _solve(variant, read_ms, assume)[0]


def _solve(demands: Demands, read_ms: float, assume: _Assumptions) -> tuple[float, dict[Limit, float]]:
    """Return the rate at which N = X (Z + R(X)), per second, and the parts of R there.

    Z + R is a + b / (1 − kX), whose second part is the queue for the CPUs. So X solves −akX² + (a + b + kM) X − M = 0,
    with M = 1000 N. Time at the CPUs is never below 0: the rate without any is a bound, as their own limit is.
    """
    busy_ms, per_core, k = demands.users * 1000, 0.0, 0.0
    bounds = [demands.users * 1e6]
    cpu = demands.cpu_part_ms
    if demands.cpu_ms and demands.cores:
        bounds.append(demands.cores / demands.cpu_ms * 1000)
        if assume.cpu_queues:
            per_core, k = demands.cpu_ms / demands.cores, _used_per_rate(demands)
            cpu += demands.cpu_ms - per_core - _residence(demands, demands.rate)
    bare = sum(_parts(demands, read_ms, 0.0, assume).values())
    weight = sum(_parts(demands, read_ms, 1.0, assume).values()) - bare
    a, b = bare + weight * cpu, weight * per_core
    middle = a + b + k * busy_ms
    for rate_ms in (bare, (middle + math.sqrt(max(0.0, middle**2 - 4 * a * k * busy_ms))) / 2):
        if rate_ms > 0:
            bounds.append(busy_ms / rate_ms)
    rate = min(bounds)
    return rate, _times(demands, read_ms, rate, assume)


def _times(demands: Demands, read_ms: float, rate: float, assume: _Assumptions) -> dict[Limit, float]:
    """Return a user's cycle in ms, by part."""
    cpu = demands.cpu_part_ms
    # Only the change of queueing counts: the measured time already contains the queue at the measured rate.
    if assume.cpu_queues:
        cpu = max(0.0, cpu + _residence(demands, rate) - _residence(demands, demands.rate))
    return _parts(demands, read_ms, cpu, assume)


def _parts(demands: Demands, read_ms: float, cpu: float, assume: _Assumptions) -> dict[Limit, float]:
    """Return the parts of a user's cycle from one transaction to the next, in ms. `cpu` is its time on CPUs in ms."""
    reads = demands.read_part_ms * read_ms / demands.read_ms
    held = reads + cpu + demands.fixed_ms
    locks = demands.lock_ms
    before = demands.response_ms - locks
    # A lock is held as long as the rest of its transaction lasts, so waits scale with that time.
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
    per_core = demands.cpu_ms / demands.cores
    used = min(rate * _used_per_rate(demands), 1 - 1e-9)
    return demands.cpu_ms - per_core + per_core / (1 - used)


def _used_per_rate(demands: Demands) -> float:
    """Return the share of the CPUs that the other users take, per transaction per second."""
    assert demands.cpu_ms and demands.cores
    return max(0.0, demands.users - 1) / demands.users * demands.cpu_ms / demands.cores / 1000


@dataclass(frozen=True)
class WhatIf:
    """One variant at one number of users. Everything is a mean over its runs, and so are the ends of ranges."""

    variant: str
    step: str
    users: int
    runs: int
    emulated: bool
    tps: float  # the measured result
    read_ms: float  # measured
    read_source: Source
    predictions: list[Prediction]  # ordered as requested


@dataclass(frozen=True)
class WhatIfs:
    """Predictions, and tests of such predictions. `left_out`: steps without a prediction, with the reason."""

    found: list[WhatIf]
    tests: list[ModelTest]
    left_out: list[Finding]


def predict_throughputs(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIfs:
    """Predict throughput for read times. Raise StallmarkError if no step was measured."""
    same = [point.steps for point in points(steps)]
    known = [steps_of_point for steps_of_point in same if demands_of(steps_of_point)]
    left_out = list(_left_out([step for steps_of_point in same for step in steps_of_point]))
    if not same:
        raise StallmarkError("These runs hold no measured step: there is nothing to predict.")
    tests = [test for a, b in permutations(known, 2) for test in check_model(a, b)]
    return WhatIfs([_predict_point(steps_of_point, times_ms) for steps_of_point in known], tests, left_out)


def _predict_point(steps: Sequence[StepSummary], times_ms: Sequence[float]) -> WhatIf:
    demands = demands_of(steps)
    first = steps[0]
    return WhatIf(
        first.variant,
        first.step,
        first.users,
        len(steps),
        any(step.emulated for step in steps),
        fmean(demand.tps for demand in demands),
        fmean(demand.read_ms for demand in demands),
        demands[0].read_source,
        [mean_prediction(demands, read_ms) for read_ms in times_ms],
    )


def _left_out(steps: Sequence[StepSummary]) -> Iterator[Finding]:
    unknown = [step for step in steps if not step.demands]
    for same in group(unknown, _missing_reason):
        names = list(dict.fromkeys(f"{step.variant}, {step.step}" for step in same))
        yield info(NoteKind.NOT_PREDICTED, steps=names, because=_missing_reason(same[0]))


def _missing_reason(step: StepSummary) -> Finding:
    return next(iter(step.cause.notes if step.cause else ()), info(NoteKind.QUERIES))


# A test of one side's model: its prediction for the other side's read time, against what that side really did.


def check_model(model: Sequence[StepSummary], other: Sequence[StepSummary]) -> list[ModelTest]:
    """Return one test, or none if the two sides differ in more than read time: users, reads per transaction, or
    anything unknown.

    Predictions are means over the runs of `model`, and so are the ends of their range.
    """
    demands, other_demands = demands_of(model), demands_of(other)
    if not demands or not other_demands or not _same_users_and_reads(model, other):
        return []
    # Read times of the device and of the server are different quantities.
    if {demand.read_source for demand in (*demands, *other_demands)} != {demands[0].read_source}:
        return []
    predicted = mean_prediction(demands, fmean(demand.read_ms for demand in other_demands))
    return [
        ModelTest(
            model[0].variant,
            other[0].variant,
            predicted.read_ms,
            predicted.tps,
            predicted.low,
            predicted.high,
            fmean(demand.tps for demand in other_demands),
            len(other_demands),
        )
    ]


def demands_of(steps: Sequence[StepSummary]) -> list[Demands]:
    """Return the parameters of each step's model; empty if a step has none."""
    known = [step.demands for step in steps if step.demands]
    return known if len(known) == len(steps) else []


def _same_users_and_reads(model: Sequence[StepSummary], other: Sequence[StepSummary]) -> bool:
    if {step.users for step in (*model, *other)} != {model[0].users}:
        return False
    reads = [[step.storage.reads_per_transaction for step in side] for side in (model, other)]
    if any(count is None for side in reads for count in side):
        return False
    a, b = (fmean(count for count in side if count is not None) for side in reads)
    return a > 0 and b > 0 and abs(b - a) <= READS_SAME * max(a, b)
