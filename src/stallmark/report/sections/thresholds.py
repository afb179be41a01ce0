"""The scenario's thresholds as a table: each with the step that kept it least."""

import math

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.thresholds import UNITS, Threshold, over_steps
from stallmark.report.document import Section, shown
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Rows, Table, word
from stallmark.report.text import reading
from stallmark.report.text.rules import GIVEN_UP, missed, not_known, why_not_judged

_PASSED = {True: Cell("passed"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def thresholds(experiment: ExperimentSummary) -> Table | None:
    """Return a row for each threshold; None where the scenario has none."""
    names = step_labels(experiment)
    return Rows(over_steps(experiment.thresholds)).table_if_any(
        word("verdict", lambda verdict: _PASSED[verdict.passed]),
        word("threshold", lambda verdict: verdict.text),
        word("measured", lambda verdict: _measured(verdict.steps, names)),
    )


def failures(experiment: ExperimentSummary) -> list[str]:
    """Return why each threshold that does not hold in every step makes the run fail; empty if all hold."""
    names, steps = step_labels(experiment), {step.key: step for step in experiment.steps}
    incomplete = {step.key: run.incomplete_because for run in experiment.runs for step in run.steps}
    reasons = []
    for verdict in over_steps(experiment.thresholds):
        first = verdict.steps[0]
        if verdict.passed is False:
            reasons.append(missed(verdict.text, _measured(verdict.steps, names)))
        elif verdict.passed is None:
            why = why_not_judged(steps[first.step], first.value is not None, incomplete[first.step])
            reasons.append(not_known(verdict.text, names[first.step], why, len(verdict.steps)))
    return reasons


def _measured(judged: list[Threshold], names: dict[str, str]) -> str:
    return "; ".join(f"{_value(threshold)} in {names[threshold.step]}" for threshold in judged)


def _value(threshold: Threshold) -> str:
    if threshold.value == math.inf:
        return GIVEN_UP
    unit, written = UNITS[threshold.metric], format.number(threshold.value)
    return format.share(threshold.value) if unit == "share" else f"{written} ms" if unit == "ms" else written


def section(experiment: ExperimentSummary) -> Section:
    blocks = shown(thresholds(experiment), "Thresholds", lead=reading.THRESHOLDS)
    return Section("thresholds", "Thresholds", blocks)
