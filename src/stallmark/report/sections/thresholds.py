"""The scenario's thresholds as a table: each with the step that kept it least."""

import math

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.points import group
from stallmark.analysis.thresholds import MILLISECONDS, SHARES, Threshold, over_steps
from stallmark.report.document import Section, shown
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Rows, Table, word
from stallmark.report.text import reading
from stallmark.report.text.thresholds import GIVEN_UP, missed, not_known, why_not_judged

_PASSED = {True: Cell("passed"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def thresholds(experiment: ExperimentSummary) -> Table | None:
    """Return a row for each threshold; None where the scenario has none."""
    names = step_labels(experiment)
    return Rows(over_steps(experiment.thresholds)).table_if_any(
        word("verdict", lambda verdict: _PASSED[verdict.passed]),
        word("threshold", lambda verdict: verdict.text),
        word("measured", lambda verdict: "; ".join(f"{_value(one)} in {names[one.step]}" for one in verdict.steps)),
    )


def failures(experiment: ExperimentSummary) -> list[str]:
    """Return why each threshold that does not hold in every step makes the run fail; empty if all hold."""
    names, steps = step_labels(experiment), {step.key: step for step in experiment.steps}
    incomplete = {step.key: run.incomplete_because for run in experiment.runs for step in run.steps}
    found = []
    for same in group(experiment.thresholds, lambda one: one.text):
        broken = [one for one in same if one.holds is False]
        unknown = [one for one in same if one.holds is None]
        if broken:
            found.append(missed(same[0].text, "; ".join(f"{_value(one)} in {names[one.step]}" for one in broken)))
        elif unknown:
            first = unknown[0]
            why = why_not_judged(steps[first.step], first.value is not None, incomplete[first.step])
            found.append(not_known(first.text, names[first.step], why, len(unknown)))
    return found


def _value(one: Threshold) -> str:
    if one.value == math.inf:
        return GIVEN_UP
    if one.metric in SHARES:
        return format.share(one.value)
    return f"{format.number(one.value)} ms" if one.metric in MILLISECONDS else format.number(one.value)


def section(experiment: ExperimentSummary) -> Section:
    blocks = shown(thresholds(experiment), "Thresholds", lead=reading.THRESHOLDS)
    return Section("thresholds", "Thresholds", blocks)
