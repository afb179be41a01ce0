"""The metrics that comparisons are made by, and their ratios with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallmark.analysis.compare.summary import Direction, Ratio, TransactionRatios
from stallmark.analysis.points import sampling_uncertainty
from stallmark.analysis.read.transactions import TransactionSummary
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.stats import student as statistics

SHARE = "share"
"""The unit of figures that are written in percent."""

Value = Callable[[StepSummary], float | None]


@dataclass(frozen=True)
class Metric:
    """A metric of a step. `better` is None for what explains and is no aim in itself."""

    key: str
    title: str
    unit: str
    better: Direction | None
    value: Value
    counted: bool = False
    """It rests on a count of I/Os, which few samples make uncertain."""


def _of_data(name: str) -> Value:
    def value(step: StepSummary) -> float | None:
        return getattr(step.storage.data, name) if step.storage.data else None

    return value


METRICS = (
    Metric("tps", "throughput", "commits/s", "higher", lambda s: s.result_tps),
    Metric("latency", "mean latency", "ms", "lower", lambda s: s.latency.mean_ms),
    Metric("p99", "p99 latency", "ms", "lower", lambda s: s.latency.percentiles_ms.get("p99")),
    Metric("read_ms", "read time", "ms/read", "lower", _of_data("read_ms")),
    Metric("write_ms", "write time", "ms/write", None, _of_data("write_ms")),
    Metric("reads", "reads per transaction", "reads/commit", None, lambda s: s.storage.reads_per_transaction, True),
    Metric("iops", "IOPS", "I/Os/s", None, _of_data("iops"), True),
    Metric("mb", "bandwidth", "MB/s", None, _of_data("mb_per_s"), True),
    Metric("cpu", "CPU busy", SHARE, None, lambda s: s.server.cpu_busy_share),
)


def metric(key: str) -> Metric:
    """Return the metric of a key. Raise KeyError for an unknown one."""
    return {one.key: one for one in METRICS}[key]


def declared(run: RunSummary) -> str:
    """Return the key of the primary metric that the run's scenario declared; throughput, where it could not yet."""
    return run.manifest.scenario.primary or METRICS[0].key


def ratio(what: Metric, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool, title: str = "") -> Ratio:
    """Return B ÷ A over runs, as `ratio_of`."""
    values_a, values_b = ([what.value(step) for step in steps] for steps in (a, b))
    found = ratio_of(title or what.title, what.unit, what.better, values_a, values_b, paired)
    return _widened(found, 1 + sampling_uncertainty(a, b)) if what.counted else found


def _widened(found: Ratio, by: float) -> Ratio:
    """Return the ratio with an interval that is wider by a factor. What lies within is not shown."""
    if found.low is None or found.high is None or by == 1:
        return found
    low, high = found.low / by, found.high * by
    p = 1.0 if low <= 1 <= high else found.p
    return replace(found, low=low, high=high, p=p, p_adjusted=p)


def ratio_of(
    title: str, unit: str, better: Direction | None, a: Sequence[float | None], b: Sequence[float | None], paired: bool
) -> Ratio:
    """Return B ÷ A over runs; `paired`: the n-th of each belong together. Without interval below two runs on a side."""
    found = Ratio(title, unit, better, None, None, len(a), len(b))
    known = [value for value in (*a, *b) if value is not None and value > 0]
    if not a or not b or len(known) < len(a) + len(b):
        return found
    log_a, log_b = np.log(known[: len(a)]), np.log(known[len(a) :])
    mean_a, mean_b = float(np.exp(log_a.mean())), float(np.exp(log_b.mean()))
    found = replace(found, a=mean_a, b=mean_b, ratio=mean_b / mean_a)
    if min(len(a), len(b)) < 2:
        return found
    student = (statistics.paired if paired else statistics.welch)(log_a, log_b)
    low, high = (float(np.exp(end)) for end in student.interval())
    df, error, p = float(student.df), float(student.error), float(student.p())
    return replace(found, low=low, high=high, df=df, p=p, p_adjusted=p, detectable=statistics.detectable(error, df))


def adjusted(family: Sequence[Ratio]) -> list[Ratio]:
    """Return the same with Holm's p-values among those that have one."""
    judged = [one for one in family if one.p is not None]
    p_values = iter(statistics.holm([one.p for one in judged if one.p is not None]))
    return [one if one.p is None else replace(one, p_adjusted=next(p_values), family=len(judged)) for one in family]


def other_ratios(primary: str, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Ratio]:
    """Return the ratios of every metric but the primary one, adjusted among themselves."""
    return adjusted([ratio(one, a, b, paired) for one in METRICS if one.key != primary])


def transaction_ratios(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[TransactionRatios]:
    """Return the ratios of every type of transaction, adjusted among all of these. None where there is but one type."""
    names = [one.name for one in a[0].transactions] if a else []
    if len(names) < 2:
        return []
    flat = []
    for name in names:
        for title, unit, better, value in _TRANSACTION:
            what = Metric(name, title, unit, better, _of_transaction(name, value))
            flat.append(ratio(what, a, b, paired))
    flat = adjusted(flat)
    return [
        TransactionRatios(name, rate, latency) for name, rate, latency in zip(names, flat[::2], flat[1::2], strict=True)
    ]


_TRANSACTION: tuple[tuple[str, str, Direction, Callable[[TransactionSummary], float | None]], ...] = (
    ("rate", "committed per second", "higher", lambda t: t.tps),
    ("mean latency", "ms", "lower", lambda t: t.latency_mean_ms),
)


def _of_transaction(name: str, of: Callable[[TransactionSummary], float | None]) -> Value:
    return lambda step: next((of(one) for one in step.transactions if one.name == name), None)


def mean_of_runs(values: Sequence[float | None]) -> float | None:
    """Return the geometric mean; the arithmetic one where a value is 0; None where no value is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.exp(np.mean(np.log(known)))) if min(known) > 0 else float(np.mean(known))
