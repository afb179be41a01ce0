"""The metrics in the table of steps, and the names of steps."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.metrics import METRICS, THROUGHPUT, Heading, Metric
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import plural
from stallmark.report.figures import KeyItem, key_of_variants, plain
from stallmark.report.table import Columns, Rows, named_rows, numbers
from stallmark.report.text.device import EMULATED
from stallmark.report.text.reading import Panel

# Names of steps, and their places on the axis of the experiment.

R = TypeVar("R", bound=Hashable)
T = TypeVar("T")


def step_labels(experiment: ExperimentSummary) -> dict[str, str]:
    """Return a name for every step (by key), as short as names that differ can be."""
    steps = experiment.steps
    several_variants = len({s.variant for s in steps}) > 1
    several_users = len({s.users for s in steps}) > 1
    several_repeats = len({s.repeat for s in steps}) > 1
    other_loads = any(s.beside for s in steps)

    def label(step: StepSummary, *more: str) -> str:
        parts = [step.variant] if several_variants or not several_users else []
        # A search may try a level again, and loads have the same users together as alone: users alone would not
        # distinguish these steps.
        users = step.step if experiment.ceilings or other_loads else format.users(step.users)
        parts += [users] if several_users else []
        parts += [f"repeat {step.repeat}"] if several_repeats else []
        return " · ".join([*parts, *more])

    labels = {s.key: label(s) for s in steps}
    # Names get longer only while two are equal.
    for more in ("step", "run"):
        taken = Counter(labels.values())
        for step in steps:
            if taken[labels[step.key]] > 1:
                labels[step.key] += f" · {getattr(step, more)}"
    return labels


def step_rows(experiment: ExperimentSummary, items: Callable[[StepSummary], Iterable[T]]) -> Rows[T]:
    """Return a row for each item that `each` gives for a step, with the step's name before it."""
    labels = step_labels(experiment)
    return named_rows("step", ((labels[step.key], item) for step in experiment.steps for item in items(step)))


def by_reason(
    experiment: ExperimentSummary, reasons: Callable[[StepSummary], Iterable[R]], every: str = ""
) -> list[tuple[str, R]]:
    """Return each reason that `reasons` gives for a step once, with the names of its steps, or `every` for all."""
    labels, steps_by_reason = step_labels(experiment), dict[R, list[str]]()
    for step in experiment.steps:
        for reason in reasons(step):
            steps_by_reason.setdefault(reason, []).append(labels[step.key])
    return [
        (every if every and len(steps) == len(labels) else ", ".join(steps), reason)
        for reason, steps in steps_by_reason.items()
    ]


def panels(steps: Sequence[StepSummary]) -> list[Panel]:
    """Return a panel of emulated steps and one of real steps. Panels have a title if both exist, or if the steps are
    emulated."""
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


_BY_NUMBER: dict[str, tuple[str, Callable[[StepSummary], float | None], Callable[[Any], str]]] = {
    "users": ("virtual users", lambda step: step.users, str),
    "pool share": ("buffer pool, share of the data", lambda step: step.pool_held_share, format.portion),
    "pool bytes": ("buffer pool", lambda step: step.pool_held_bytes, format.size),
}
"""The axes of numbers: the title of each, its value of a step, and how that is written."""


@dataclass(frozen=True)
class Axis:
    """The experiment's axis: numbers if the steps differ by a number, otherwise a position for each step."""

    kind: str  # a key of _BY_NUMBER, or "category"
    labels: dict[str, str]
    title: str = ""
    logarithmic: bool = False

    @classmethod
    def from_experiment(cls, experiment: ExperimentSummary) -> "Axis":
        steps, labels = experiment.steps, step_labels(experiment)
        for kind in {"users": ["users"], "buffer_pool": ["pool share", "pool bytes"]}.get(experiment.axis, ()):
            title, value, _ = _BY_NUMBER[kind]
            known = [v for step in steps if (v := value(step)) is not None]
            # An axis of memory needs the size of every step.
            if len(set(known)) > 1 and len(known) == len(steps) and (kind == "users" or min(known) > 0):
                wide = kind != "users" and max(known) / min(known) >= 8
                return cls(kind, labels, title + (", log scale" if wide else ""), wide)
        return cls("category", labels)

    @property
    def numeric(self) -> bool:
        return self.kind != "category"

    def x(self, step: StepSummary) -> float:
        """Return the position of the step on an axis of numbers."""
        return _BY_NUMBER[self.kind][1](step) or 0

    def tick(self, step: StepSummary) -> str:
        if not self.numeric:
            return plain(self.labels[step.key], 22)
        _, value, write = _BY_NUMBER[self.kind]
        return write(value(step))


def variant_key(experiment: ExperimentSummary) -> list[KeyItem]:
    """Return the key for all charts against the axis; empty for a single variant."""
    return key_of_variants([s.variant for s in experiment.steps])


def step_metrics(experiment: ExperimentSummary) -> list[Metric]:
    """Return the metrics of the table of steps. Throughput counts the primary transaction where the workload has one.
    Then follow the nominal rate of the database's size, and the rate of all transactions."""
    shown = {key: metric for key, metric in METRICS.items() if metric.heading and metric.heading.importance is not None}
    primary, nominal = primary_of(experiment), {step.throughput.nominal_tps for step in experiment.steps}
    # A single nominal rate is below the heading instead.
    if primary is None or len(nominal) == 1:
        del shown["nominal"]
    if primary is None or not any(step.streams for step in experiment.steps):
        del shown["queries"]
    if primary is None:
        del shown["all_tps"]
        return list(shown.values())
    rate = nominal.pop() if len(nominal) == 1 else None
    below = "" if rate is None else f"nominal {format.number(rate)}"
    shown["tps"] = replace(THROUGHPUT, heading=Heading("Throughput", f"{plural(primary)}/s", below))
    return list(shown.values())


def metric_columns(keys: Iterable[str], step: Callable[[T], StepSummary | None]) -> Columns[T]:
    """Return a column for each of these metrics of an item's step."""

    def cell(item: T, metric: Metric) -> str:
        measured = step(item)
        return metric.text(measured) if measured else format.NONE

    return numbers([METRICS[key] for key in keys], lambda metric: metric.heading.line if metric.heading else "", cell)


def primary_of(experiment: ExperimentSummary) -> str | None:
    """Return the transaction whose rate is the result of every step, or None if it is all of them, or steps differ."""
    primaries = {step.throughput.primary for step in experiment.steps}
    return primaries.pop() if len(primaries) == 1 else None
