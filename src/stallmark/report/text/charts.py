"""Descriptions of charts, for a line under the title and for readers who cannot see them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from stallmark import format
from stallmark.analysis.step_summary import StepSummary


@dataclass(frozen=True)
class Panel:
    """Steps that may be drawn on common axes: those of emulated arrays, or those of real devices."""

    steps: list[StepSummary]
    emulated: bool
    title: str


@dataclass(frozen=True)
class Metric:
    """One line of a chart: a value of every step, and its style."""

    name: str
    value: Callable[[StepSummary], float | None]
    dash: str = "solid"
    opacity: float = 1.0
    rate: bool = False  # compared by its ratios


def summary_of(parts: Sequence[Panel], metrics: Sequence[Metric], labels: dict[str, str], own_scale: bool) -> str:
    """Return the extremes of every panel and metric."""
    sentences = []
    for panel in parts:
        for metric in metrics:
            values = [(v, labels[s.key]) for s in panel.steps if known(v := metric.value(s))]
            where = f"{panel.title}: " if len(parts) > 1 else ""
            what = f"{metric.name} " if len(metrics) > 1 else ""
            sentences.append(f"{where}{what}{_extremes(values) if values else 'not measured'}.")
    if own_scale:
        sentences.append("The bare device is drawn on its own scale.")
    return " ".join(sentences)


def _extremes(values: list[tuple[float, str]]) -> str:
    """Return the lowest and the highest value, in the order of the steps."""
    numbers = [value for value, _ in values]
    if len(numbers) > 1 and format.number(min(numbers)) == format.number(max(numbers)):
        return f"{format.number(numbers[0])} at every step"
    ends = sorted({numbers.index(min(numbers)), numbers.index(max(numbers))})
    return " to ".join(f"{format.number(values[i][0])} at {values[i][1]}" for i in ends)


def reading_of(parts: Sequence[Panel], metric: Metric, labels: dict[str, str]) -> str:
    """Return one line for sighted readers: the extremes, emulated and bare."""
    texts = []
    for panel in parts:
        if values := [(v, labels[s.key]) for s in panel.steps if known(v := metric.value(s))]:
            texts.append(_extremes(values))
    return "; ".join(texts) or "Not measured."


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
