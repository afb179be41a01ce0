"""The summary table's columns, defined once for the HTML table and the terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.experiment import marks as marks_of
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import NBSP, percent, plural
from stallmark.report.text import sentence
from stallmark.report.text.marks import word


@dataclass(frozen=True)
class Column:
    """One quantity of every step. Columns of low `importance` leave a narrow terminal last; 0 never leaves."""

    group: str
    title: str
    unit: str
    write: Callable[[StepSummary], str]
    importance: int
    percentile: str | None = None
    main: bool = False

    def missing_percentile(self, step: StepSummary) -> bool:
        return self.percentile is not None and step.latency.percentiles_ms.get(self.percentile) is None


def rate(io: IoSummary | None, name: str) -> float | None:
    """Return a per-second property of `io`; None when nothing was measured, or for no time at all."""
    return getattr(io, name) if io is not None and io.seconds > 0 else None


def counted(value: float | None, io: IoSummary | None) -> str:
    """Write a figure that rests on counts of I/Os, with how far it may be off if their samples were few."""
    text = format.number(value)
    return f"{text} ±{NBSP}{percent(io.uncertainty)}" if value is not None and io and io.uncertainty else text


def data_rate(step: StepSummary, name: str) -> str:
    """Write a per-second property of the I/O of a step's data files."""
    return counted(rate(step.storage.data, name), step.storage.data)


def _latency(name: str, importance: int) -> Column:
    return Column(
        "Latency", name, "ms", lambda s: format.number(s.latency.percentiles_ms.get(name)), importance, percentile=name
    )


SETTING: tuple[Column, ...] = (
    Column("Setting", "users", "", lambda s: format.count(s.users), 6),
    Column("Setting", "pool", "", lambda s: format.size(s.pool_held_bytes), 7),
    Column("Setting", "of data", "", lambda s: format.portion(s.pool_held_share), 8),
)
RESPONSE: tuple[Column, ...] = (
    _latency("p50", 5),
    _latency("p95", 1),
    _latency("p99", 4),
    _latency("max", 12),
    Column("Data files", "reads", "per tx", lambda s: counted(s.storage.reads_per_transaction, s.storage.data), 2),
    Column("Data files", "writes", "per tx", lambda s: counted(s.storage.writes_per_transaction, s.storage.data), 14),
    Column("Data files", "reads", "per write", lambda s: format.number(s.storage.reads_per_write), 15),
    Column("Data files", "read", "ms", lambda s: format.number(s.storage.data.read_ms if s.storage.data else None), 1),
    Column("Data files", "IOPS", "", lambda s: data_rate(s, "iops"), 3),
    Column("Data files", "MB/s", "", lambda s: data_rate(s, "mb_per_s"), 9),
    Column("Data files", "hits", "", lambda s: format.share(s.server.hit_share), 10),
    Column("Busy", "CPU", "host", lambda s: format.share(s.server.cpu_busy_share), 11),
    Column("Busy", "device", "data", lambda s: format.share(s.storage.busy_share), 13),
)


_QUERIES = Column(
    "Throughput", "queries", "per hour", lambda s: format.number(s.streams.per_hour if s.streams else None), 1
)


def summary(experiment: ExperimentSummary) -> tuple[Column, ...]:
    """Return the columns of the summary table. Throughput counts the primary transaction where the workload has one.
    Then follow the nominal rate of the database's size, and the rate of all transactions."""
    return *SETTING, *_throughput(experiment), *RESPONSE


def _throughput(experiment: ExperimentSummary) -> tuple[Column, ...]:
    group, primary = "Throughput", primary_of(experiment)
    if primary is None:
        return (Column(group, "TPS", "", lambda s: format.number(s.throughput.tps), 0, main=True),)
    nominal = {step.throughput.nominal_tps for step in experiment.steps}
    alike = format.number(nominal.pop()) if len(nominal) == 1 else None
    unit = f"nominal {alike}" if alike and alike != format.NONE else ""
    each = [] if alike else [Column(group, "nominal", "per s", lambda s: format.number(s.throughput.nominal_tps), 5)]
    return (
        Column(group, f"{plural(primary)}/s", unit, lambda s: format.number(s.result_tps), 0, main=True),
        *each,
        Column(group, "all tx", "per s", lambda s: format.number(s.throughput.tps), 2),
        *([_QUERIES] if any(step.streams for step in experiment.steps) else []),
    )


def primary_of(experiment: ExperimentSummary) -> str | None:
    """Return the transaction whose rate is the result of every step; None where it is all of them, or steps differ."""
    found = {step.throughput.primary for step in experiment.steps}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class Mark:
    """A finding that a reader must know before believing a step: a word for the table, explained below it."""

    finding: Finding

    @property
    def word(self) -> str:
        return word(self.finding)

    @property
    def sentence(self) -> str:
        return sentence(self.finding)

    @property
    def serious(self) -> bool:
        return self.finding.severity is Severity.INVALID


def marks(experiment: ExperimentSummary, step: StepSummary) -> list[Mark]:
    run = next(r for r in experiment.runs if any(one.key == step.key for one in r.steps))
    return [Mark(one) for one in marks_of(run, step)]
