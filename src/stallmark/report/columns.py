"""The summary table's columns, defined once for the HTML table and the terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from stallmark import format
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.steady.steadiness import Judgement
from stallmark.analysis.summary import ExperimentSummary, StepSummary
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.format import plural
from stallmark.report.text import device, sentence


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
        return self.percentile is not None and step.latency_ms.get(self.percentile) is None


def rate(io: IoSummary | None, name: str) -> float | None:
    """Return a per-second property of `io`; None when nothing was measured, or for no time at all."""
    return getattr(io, name) if io is not None and io.seconds > 0 else None


def _latency(name: str, importance: int) -> Column:
    return Column("Latency", name, "ms", lambda s: format.number(s.latency_ms.get(name)), importance, percentile=name)


SETTING: tuple[Column, ...] = (
    Column("Setting", "users", "", lambda s: format.count(s.users), 6),
    Column("Setting", "pool", "", lambda s: format.size(s.buffer_pool_bytes), 7),
    Column("Setting", "of data", "", lambda s: format.portion(s.buffer_pool_share), 8),
)
RESPONSE: tuple[Column, ...] = (
    _latency("p50", 5),
    _latency("p95", 1),
    _latency("p99", 4),
    _latency("max", 12),
    Column("Data files", "reads", "per tx", lambda s: format.number(s.reads_per_transaction), 2),
    Column("Data files", "read", "ms", lambda s: format.number(s.data_io.read_ms if s.data_io else None), 1),
    Column("Data files", "IOPS", "", lambda s: format.number(rate(s.data_io, "iops")), 3),
    Column("Data files", "MB/s", "", lambda s: format.number(rate(s.data_io, "mb_per_s")), 9),
    Column("Data files", "hits", "", lambda s: format.share(s.hit_share), 10),
    Column("Busy", "CPU", "host", lambda s: format.share(s.cpu_busy_share), 11),
    Column("Busy", "device", "data", lambda s: format.share(s.device_busy_share), 13),
)


_QUERIES = Column(
    "Throughput", "queries", "per hour", lambda s: format.number(s.beside.per_hour if s.beside else None), 1
)


def summary(experiment: ExperimentSummary) -> tuple[Column, ...]:
    """Return the columns of the summary table. Throughput counts the primary transaction where the workload has one.
    Then follow the nominal rate of the database's size, and the rate of all transactions."""
    return *SETTING, *_throughput(experiment), *RESPONSE


def _throughput(experiment: ExperimentSummary) -> tuple[Column, ...]:
    group, primary = "Throughput", primary_of(experiment)
    if primary is None:
        return (Column(group, "TPS", "", lambda s: format.number(s.tps), 0, main=True),)
    nominal = {step.nominal_tps for step in experiment.steps}
    alike = format.number(nominal.pop()) if len(nominal) == 1 else None
    unit = f"nominal {alike}" if alike and alike != format.NONE else ""
    each = [] if alike else [Column(group, "nominal", "per s", lambda s: format.number(s.nominal_tps), 5)]
    return (
        Column(group, f"{plural(primary)}/s", unit, lambda s: format.number(s.result_tps), 0, main=True),
        *each,
        Column(group, "all tx", "per s", lambda s: format.number(s.tps), 2),
        *([_QUERIES] if any(step.beside for step in experiment.steps) else []),
    )


def primary_of(experiment: ExperimentSummary) -> str | None:
    """Return the transaction whose rate is the result of every step; None where it is all of them, or steps differ."""
    found = {step.primary for step in experiment.steps}
    return found.pop() if len(found) == 1 else None


_UNSTEADY = {Judgement.NEVER: "never steady", Judgement.LATE: "steady late"}


@dataclass(frozen=True)
class Mark:
    """A caution that a reader must know before believing a step: a word for the table, explained below it."""

    word: str
    finding: Finding
    serious: bool

    @property
    def sentence(self) -> str:
        return sentence(self.finding)


def marks(experiment: ExperimentSummary, step: StepSummary) -> list[Mark]:
    run = next(r for r in experiment.runs if r.folder == step.run)
    result = []
    if run.incomplete_because:
        result.append(Mark("incomplete", caution(ValidityKind.RUN_INCOMPLETE, because=run.incomplete_because), True))
    if (found := step.steadiness) and found.verdict in _UNSTEADY:
        result.append(Mark(_UNSTEADY[found.verdict], found.finding, found.incomparable))
    short: dict[Kind, str] = {ValidityKind.ENDED_EARLY: "cut short"}
    result += [Mark(short.get(one.kind, "invalid"), one, True) for one in step.invalid]
    result += [Mark(gate.name, gate.failure, True) for gate in step.gates if gate.failure and not gate.voids]
    result += [Mark("bursts of errors", one, False) for one in step.bursts]
    result += [Mark("driver-bound", one, True) for one in step.driver_bound]
    if step.device_verdict:
        result.append(Mark(device.mark(step.device_verdict), step.device_verdict, False))
    return result


def doubtful(experiment: ExperimentSummary) -> set[str]:
    """Return the keys of the steps with a serious mark; charts draw them hollow."""
    return {s.key for s in experiment.steps if any(m.serious for m in marks(experiment, s))}
