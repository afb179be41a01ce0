"""The metrics of a step, each declared once. The table of steps, charts, comparisons, thresholds and docs/metrics.md
are made of the declarations.

A new one is a field of the step's summary, or whatever computes it, and a declaration here.

Points of a comparison: steps that were meant to be the same, such as repeats of one variant, put together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from stallmark import format

# Scenarios parse their thresholds by these declarations, without what computes the values.
if TYPE_CHECKING:
    from stallmark.analysis.read.transactions import TransactionSummary
    from stallmark.analysis.step_summary import StepSummary

SHARE = "share"
"""The unit of figures that are written in percent."""

Direction = Literal["higher", "lower"]
Value: TypeAlias = "Callable[[StepSummary], float | None]"
T = TypeVar("T")


class Heading(NamedTuple):
    """The heading of a metric's column."""

    group: str
    title: str
    unit: str = ""
    importance: int | None = 0
    """Columns of low importance leave the table of steps last in a narrow terminal, those of 0 never. None is for other
    tables alone."""
    subject: str = ""  # the measured thing, if the group does not name it

    @property
    def line(self) -> str:
        """Return title and unit as a heading of one line."""
        return f"{self.title} {self.unit}".replace(" per ", "/").strip()


class Chart(NamedTuple):
    """A chart against the axis of the experiment, with a line for each metric that has it."""

    id: str
    title: str
    unit: str


@dataclass(frozen=True)
class Metric:
    """A metric of a step."""

    key: str
    title: str
    unit: str
    value: Value
    formula: str
    source: str
    better: Direction | None = None  # None for a metric that explains and is not an aim in itself
    compared: bool = False  # each compared metric makes differences in the others harder to show
    write: Callable[[Any], str] = format.number
    counted: bool = False
    """True for counts of I/Os, which few samples make uncertain."""
    heading: Heading | None = None
    chart: Chart | None = None
    line: str = ""
    """The name of its line in the chart, if it is not the title."""
    limited: Value | None = None
    """The value that is held against limits, if it is another one."""
    of_type: Callable[[TransactionSummary], float | None] | None = None
    """The same of one type of transaction."""
    is_setting: bool = False
    """It was chosen, not measured: no limit is set for it."""

    def text(self, step: StepSummary) -> str:
        """Write the value of a step, with its uncertainty if it is counted."""
        value, data = self.value(step), step.storage.data
        return format.with_uncertainty(value, data.uncertainty if data else None) if self.counted else self.write(value)

    def value_of_type(self, step: StepSummary, name: str) -> float | None:
        """Return the value of one type of transaction, or None if the step has none of it."""
        summary = next((transaction for transaction in step.transactions if transaction.name == name), None)
        return self.of_type(summary) if summary and self.of_type else None

    @property
    def limit_unit(self) -> str:
        """Return the unit in which a rule's limit is parsed."""
        return "ms" if self.unit.startswith("ms") else SHARE if self.unit == SHARE else "number"


def _data_files(name: str) -> Value:
    """Return a value of the data files' I/O; None if it was not measured, or for no time at all."""

    def value(step: StepSummary) -> float | None:
        return getattr(step.storage.data, name) if step.storage.data and step.storage.data.seconds else None

    return value


def _failed_share(failed: int, done: int) -> float | None:
    return failed / (failed + done) if failed + done else None


def _percentile(
    name: str, importance: int | None, formula: str = "", *, compared: bool = False, drawn: bool = False
) -> Metric:
    return Metric(
        name,
        f"{name} latency",
        "ms",
        lambda step: step.latency.percentiles_ms.get(name),
        formula or f"the latency that {name[1:]} % did not exceed",
        "driver",
        "lower",
        compared,
        format.percentile,
        heading=None if importance is None else Heading("Latency", name, "ms", importance),
        chart=LATENCIES if drawn else None,
        line=name,
        limited=lambda step: step.latency.judged_ms.get(name),
        of_type=lambda transaction: transaction.judged_ms.get(name),
    )


LATENCIES = Chart("latency", "Latency percentiles", "ms")
READ_TIME = Chart("read-ms", "Read time as the server saw it", "ms per read")

_DECLARED = (
    Metric(
        "users", "virtual users", "users", lambda step: step.users, "the users of the step", "scenario",
        write=format.count, heading=Heading("Setting", "users", importance=6), is_setting=True,
    ),
    Metric(
        "pool", "buffer pool", "bytes", lambda step: step.pool_held_bytes,
        "what the server held for pages, if it counts them, else what it was allowed", "server",
        write=format.size, heading=Heading("Setting", "pool", importance=7), is_setting=True,
    ),
    Metric(
        "pool_share", "buffer pool of the data", SHARE, lambda step: step.pool_held_share,
        "pool ÷ size of the database at the start", "server",
        write=format.portion, heading=Heading("Setting", "of data", importance=8), is_setting=True,
    ),
    Metric(
        "tps", "throughput", "commits/s", lambda step: step.result_tps,
        "committed ÷ seconds, of the primary transaction if the workload has one (the brokerage: Trade-Result)",
        "driver", "higher", compared=True,
        heading=Heading("Throughput", "TPS"), of_type=lambda transaction: transaction.tps,
    ),
    Metric(
        "nominal", "nominal rate", "commits/s", lambda step: step.throughput.nominal_tps, "customers ÷ 500", "scale",
        heading=Heading("Throughput", "nominal", "per s", 5), is_setting=True,
    ),
    Metric(
        "all_tps", "throughput of all types", "commits/s", lambda step: step.throughput.tps,
        "committed transactions of every type ÷ seconds", "driver", "higher",
        heading=Heading("Throughput", "all tx", "per s", 2),
    ),
    Metric(
        "queries", "queries of streams beside users", "queries/h",
        lambda step: step.streams.per_hour if step.streams else None,
        "queries done ÷ hours, of all streams", "driver", "higher",
        heading=Heading("Throughput", "queries", "per hour", 1),
    ),
    Metric(
        "latency", "mean latency", "ms", lambda step: step.latency.mean_ms,
        "ended − scheduled, retries included; mean over committed and rolled back", "driver", "lower", compared=True,
        heading=Heading("Latency", "mean", "ms", None), of_type=lambda transaction: transaction.latency_mean_ms,
    ),
    _percentile("p50", 5, drawn=True),
    _percentile("p90", None),
    _percentile("p95", 1, drawn=True),
    _percentile("p99", 4, compared=True, drawn=True),
    _percentile("p99.9", None),
    _percentile("max", 12, "the longest latency"),
    Metric(
        "errors", "failed transactions", SHARE,
        lambda step: _failed_share(step.throughput.failed, step.throughput.committed + step.throughput.rolled_back),
        "transactions given up after 10 retries ÷ all that ended", "driver", "lower", write=format.share,
        of_type=lambda transaction: _failed_share(transaction.failed, transaction.done_count),
    ),
    Metric(
        "write_ms", "write time", "ms/write", _data_files("write_ms"),
        "Δ write stall ÷ Δ writes of data files; a file's extension counts as a write", "server", compared=True,
    ),
    Metric(
        "reads", "reads per transaction", "reads/commit", lambda step: step.storage.reads_per_transaction,
        "Δ reads of data files ÷ commits in the same time", "server, driver", compared=True, counted=True,
        heading=Heading("Data files", "reads", "per tx", 2),
        chart=Chart("reads", "Physical reads per transaction", "reads per commit"),
    ),
    Metric(
        "writes", "writes per transaction", "writes/commit", lambda step: step.storage.writes_per_transaction,
        "Δ writes of data files ÷ commits in the same time; a file's extension counts as a write", "server, driver",
        counted=True, heading=Heading("Data files", "writes", "per tx", 14),
    ),
    Metric(
        "reads_per_write", "reads per write", "reads/write", lambda step: step.storage.reads_per_write,
        "Δ reads ÷ Δ writes of data files", "server", heading=Heading("Data files", "reads", "per write", 15),
    ),
    Metric(
        "read_ms", "read time", "ms/read", _data_files("read_ms"), "Δ read stall ÷ Δ reads of data files", "server",
        "lower", compared=True, heading=Heading("Data files", "read", "ms", 1),
        chart=READ_TIME, line="volume-weighted mean",
    ),
    Metric(
        "read_mean_of_seconds_ms", "read time, mean of seconds", "ms/read", _data_files("read_interval_mean_ms"),
        "mean of the same ratio taken in each second", "server", "lower", chart=READ_TIME, line="mean of intervals",
    ),
    Metric(
        "iops", "IOPS", "I/Os/s", _data_files("iops"), "(Δ reads + Δ writes of data files) ÷ seconds", "server",
        compared=True, counted=True, heading=Heading("Data files", "IOPS", importance=3),
        chart=Chart("iops", "I/O operations per second", "per second, data files"),
    ),
    Metric(
        "mb", "bandwidth", "MB/s", _data_files("mb_per_s"), "(Δ bytes read + Δ bytes written) ÷ seconds ÷ 10⁶",
        "server", compared=True, counted=True, heading=Heading("Data files", "MB/s", importance=9),
        chart=Chart("mb", "Bandwidth", "MB/s, data files"), line="MB/s",
    ),
    Metric(
        "hits", "buffer pool hits", SHARE, lambda step: step.server.hit_share, "1 − blocks read ÷ blocks asked for",
        "server", write=format.share, heading=Heading("Data files", "hits", importance=10),
    ),
    Metric(
        "cpu", "CPU busy", SHARE, lambda step: step.server.cpu_busy_share,
        "1 − (idle + waiting for I/O) ÷ all; stolen time counts as busy", "host", compared=True,
        write=format.share, heading=Heading("Busy", "CPU", importance=11, subject="host"),
    ),
    Metric(
        "device", "device busy", SHARE, lambda step: step.storage.busy_share,
        "Δ time with any I/O under way ÷ time; emulated: service ÷ (time × spindles)", "device",
        write=format.share, heading=Heading("Busy", "device", importance=13, subject="data"),
    ),
)  # fmt: skip
METRICS: dict[str, Metric] = {metric.key: metric for metric in _DECLARED}
THROUGHPUT = METRICS["tps"]


def compared_metrics() -> list[Metric]:
    """Return the metrics of comparisons: what is better in one direction comes before what explains."""
    compared = [metric for metric in METRICS.values() if metric.compared]
    return sorted(compared, key=lambda metric: metric.better is None)


PRIMARIES = tuple(metric.key for metric in compared_metrics() if metric.better)
"""Metrics a scenario may declare as its primary one: they are better in one direction."""


def reference() -> str:
    """Return the page of all metrics."""
    rows = "\n".join(f"| {' | '.join(_row(metric))} |" for metric in METRICS.values())
    return f"""# The metrics of a step

A report shows them for each step, over its measured interval. `stallmark compare` compares some of them. Those with a
limit can be in `thresholds`; with a star also of one type of transaction, as `trade_order.p99 < 1s`. [Every
number](numbers.md) has the rules for all figures, and those that are not of a step. `stallmark schema --metrics` prints
this page.

| metric | title | column | formula | source | unit | better | compared | limit |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


_LIMITS = {"ms": "ms or s", SHARE: "%", "number": "number"}


def _row(metric: Metric) -> Iterator[str]:
    yield from (f"`{metric.key}`", metric.title)
    heading = metric.heading
    yield ", ".join(filter(None, heading[1:3])) if heading and heading.importance is not None else ""
    yield from (metric.formula, metric.source, metric.unit, metric.better or "", "yes" if metric.compared else "")
    yield "" if metric.is_setting else _LIMITS[metric.limit_unit] + " *" * (metric.of_type is not None)


@dataclass(frozen=True)
class Point:
    steps: tuple[StepSummary, ...]

    @property
    def first(self) -> StepSummary:
        return self.steps[0]

    @property
    def tps(self) -> float:
        """Return the result per second: of the primary transaction if one is set."""
        return sum(step.result_tps for step in self.steps) / len(self.steps)

    @property
    def relative_range(self) -> float:
        """Return the largest ÷ the smallest throughput of the repeats − 1."""
        slowest = min(step.result_tps for step in self.steps)
        return max(step.result_tps for step in self.steps) / slowest - 1 if slowest else 0.0

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the steps that have it."""
        return mean_of([METRICS[metric].value(step) for step in self.steps])


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values, or None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def complete_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if a value is missing: the mean of the others would be of another set."""
    return None if None in values else mean_of(values)


def sampling_uncertainty(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> float:
    """Return the relative difference that counts of two sides may have only because their samples were few."""
    return math.fsum(max((step.storage.uncertainty for step in side), default=0.0) for side in (a, b))


def group(items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return items with equal keys together, in the order of appearance."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def points(steps: Sequence[StepSummary]) -> list[Point]:
    """Return one point per variant and step, repeats together."""
    same = group(steps, lambda step: (step.variant, step.step, step.users))
    return [Point(tuple(steps)) for steps in same]


def labels(shown: Sequence[Point], among: Sequence[Point]) -> list[str]:
    """Return names that distinguish the `shown` points from the others: the variant, the step, or both."""
    variants = len({point.first.variant for point in among}) > 1
    steps = len({point.first.step for point in among}) > 1
    return [", ".join([p.first.variant] * (variants or not steps) + [p.first.step] * steps) for p in shown]


def step_names(shown: Sequence[StepSummary], among: Sequence[StepSummary]) -> list[str] | None:
    """Return the names of steps, with "(1 of 3 runs)" if other runs of a step are missing, or None if these are all
    steps."""
    if len(shown) == len(among):
        return None
    keys, everything = {step.key for step in shown}, points(among)
    counted = [(point, sum(step.key in keys for step in point.steps)) for point in everything]
    meant = [(point, count) for point, count in counted if count]
    names = labels([point for point, _ in meant], everything)
    return [
        name if count == len(point.steps) else f"{name} ({count} of {len(point.steps)} runs)"
        for name, (point, count) in zip(names, meant, strict=True)
    ]
