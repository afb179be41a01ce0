"""The summary table's columns, defined once for the HTML table and the terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from stallmark.driver.analysis.summary import ExperimentSummary, StepSummary
from stallmark.driver.report import units
from stallmark.driver.report.charts import rate


@dataclass(frozen=True)
class Column:
    """One quantity per step. Columns of low `importance` leave a narrow terminal first (0 never leaves)."""

    group: str
    title: str
    unit: str
    write: Callable[[StepSummary], str]
    importance: int
    percentile: str | None = None

    def missing_percentile(self, step: StepSummary) -> bool:
        return self.percentile is not None and step.latency_ms.get(self.percentile) is None


def _latency(name: str, importance: int) -> Column:
    return Column(
        "Latency", name, "ms", lambda s: units.number(s.latency_ms.get(name)), importance, percentile=name
    )


SUMMARY: tuple[Column, ...] = (
    Column("Setting", "users", "", lambda s: units.count(s.users), 6),
    Column("Setting", "pool", "", lambda s: units.size(s.buffer_pool_bytes), 7),
    Column("Setting", "of data", "", lambda s: units.share(s.buffer_pool_share), 8),
    Column("Throughput", "TPS", "", lambda s: units.number(s.tps), 0),
    _latency("p50", 5),
    _latency("p95", 1),
    _latency("p99", 4),
    _latency("max", 12),
    Column("Data files", "reads", "per tx", lambda s: units.number(s.reads_per_transaction), 2),
    Column("Data files", "read", "ms", lambda s: units.number(s.data_io and s.data_io.read_ms), 1),
    Column("Data files", "IOPS", "", lambda s: units.number(rate(s.data_io, "iops")), 3),
    Column("Data files", "MB/s", "", lambda s: units.number(rate(s.data_io, "mb_per_s")), 9),
    Column("Server", "hits", "", lambda s: units.share(s.hit_share), 10),
    Column("Server", "CPU", "host", lambda s: units.share(s.cpu_busy_share), 11),
)


@dataclass(frozen=True)
class Mark:
    """Something a reader must know before believing a step: a word for the table, a sentence below it."""

    word: str
    sentence: str
    serious: bool


def marks(experiment: ExperimentSummary, step: StepSummary) -> list[Mark]:
    run = next(r for r in experiment.runs if r.folder == step.run)
    result = []
    if run.incomplete_because:
        result.append(Mark("incomplete", run.incomplete_because, True))
    result += [Mark("invalid", sentence, True) for sentence in step.invalid]
    if step.driver_bound:
        result.append(Mark("driver-bound", step.driver_bound, True))
    if step.device_verdict:
        limits = "not the bottleneck" not in step.device_verdict
        word = "device-bound" if limits else "device not the bottleneck"
        result.append(Mark(word, step.device_verdict, False))
    return result
