"""The scenario's thresholds as a table: each with the step that kept it least."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.thresholds import MILLISECONDS, SHARES, Threshold, over_steps
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table

_PASSED = {True: Cell("passed"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def thresholds(experiment: ExperimentSummary) -> Table | None:
    """Return a row for each threshold; None where the scenario has none."""
    names, steps = step_labels(experiment), {step.key: step for step in experiment.steps}
    rows: list[Sequence[str | Cell]] = []
    for verdict in over_steps(experiment.thresholds):
        measured = "; ".join(f"{_value(one)} in {names[steps[one.step].key]}" for one in verdict.steps)
        rows.append([_PASSED[verdict.passed], verdict.text, measured])
    return Table(["verdict", "threshold", "measured"], rows, frozenset(range(3))) if rows else None


def _value(one: Threshold) -> str:
    if one.metric in SHARES:
        return format.share(one.value)
    return f"{format.number(one.value)} ms" if one.metric in MILLISECONDS else format.number(one.value)
