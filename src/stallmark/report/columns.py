"""The summary table's columns, defined once for HTML and the terminal, and the names of steps."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.experiment import marks as marks_of
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import NBSP, percent, plural
from stallmark.report.figures import KeyItem, looks, plain
from stallmark.report.table import Rows, named_rows
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED
from stallmark.report.text.reading import Panel
from stallmark.report.text.terms import word

# Names of steps, and their places on the axis of the experiment.

T = TypeVar("T")


def step_labels(experiment: ExperimentSummary) -> dict[str, str]:
    """Return the shortest name for every step (by key) that tells it from the others."""
    steps = experiment.steps
    several_variants = len({s.variant for s in steps}) > 1
    several_users = len({s.users for s in steps}) > 1
    several_repeats = len({s.repeat for s in steps}) > 1

    def label(step: StepSummary, *more: str) -> str:
        parts = [step.variant] if several_variants or not several_users else []
        users = step.step if experiment.ceilings else format.users(step.users)  # a level may come again
        parts += [users] if several_users else []
        parts += [f"repeat {step.repeat}"] if several_repeats else []
        return " · ".join([*parts, *more])

    labels = {s.key: label(s) for s in steps}
    for more in ("step", "run"):
        taken = Counter(labels.values())
        for step in steps:
            if taken[labels[step.key]] > 1:
                labels[step.key] += f" · {getattr(step, more)}"
    return labels


def step_rows(experiment: ExperimentSummary, each: Callable[[StepSummary], Iterable[T]]) -> Rows[T]:
    """Return a row for each item that `each` gives for a step, with the step's name before it."""
    labels = step_labels(experiment)
    return named_rows("step", ((labels[step.key], item) for step in experiment.steps for item in each(step)))


def panels(steps: Sequence[StepSummary]) -> list[Panel]:
    """Return emulated steps and real ones apart; a title only where they must be told apart or are emulated."""
    some_emulated = any(s.emulated for s in steps)
    result = []
    for emulated in (True, False):
        chosen = [s for s in steps if s.emulated == emulated]
        if not chosen:
            continue
        devices = {s.device.name for s in chosen}
        bare = f"bare device {devices.pop()}" if len(devices) == 1 else "bare devices"
        title = EMULATED if emulated else bare if some_emulated else ""
        result.append(Panel(chosen, emulated, title))
    return result


@dataclass(frozen=True)
class Axis:
    """The experiment's axis: numbers where the steps differ by a number, else a place for each step."""

    kind: str  # "pool share", "pool bytes", "users" or "category"
    title: str
    logarithmic: bool
    labels: dict[str, str]

    @classmethod
    def of(cls, experiment: ExperimentSummary) -> "Axis":
        steps = experiment.steps
        labels = step_labels(experiment)
        if experiment.axis == "users" and len({s.users for s in steps}) > 1:
            return cls("users", "virtual users", False, labels)
        if experiment.axis == "buffer_pool":
            for kind, title, values in (
                ("pool share", "buffer pool, share of the data", [s.pool_held_share for s in steps]),
                ("pool bytes", "buffer pool", [s.pool_held_bytes for s in steps]),
            ):
                known = [v for v in values if v]
                if len(set(known)) > 1 and len(known) == len(values):
                    wide = max(known) / min(known) >= 8
                    return cls(kind, title + (", log scale" if wide else ""), wide, labels)
        return cls("category", "", False, labels)

    @property
    def numeric(self) -> bool:
        return self.kind != "category"

    def x(self, step: StepSummary) -> float:
        """Return the place of the step on an axis of numbers."""
        match self.kind:
            case "users":
                return step.users
            case "pool share":
                return step.pool_held_share or 0
        return step.pool_held_bytes or 0

    def tick(self, step: StepSummary) -> str:
        match self.kind:
            case "users":
                return str(step.users)
            case "pool share":
                return format.portion(step.pool_held_share)
            case "pool bytes":
                return format.size(step.pool_held_bytes)
        return plain(self.labels[step.key], 22)


def variant_key(experiment: ExperimentSummary) -> list[KeyItem]:
    """Return the key for all charts against the axis; empty for a single variant."""
    seen = looks([s.variant for s in experiment.steps])
    if len(seen) < 2:
        return []
    return [KeyItem(name, look.colour, None, look.symbol) for name, look in seen.items()]


# The summary table's columns, defined once for the HTML table and the terminal.


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
