"""The table of streams of queries that were there beside the users: how many ended, and how long each took."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.queries.comparison import in_order
from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.labels import emulated_label, step_labels
from stallmark.report.table import Cell, Table

NOTES = [
    "Queries per hour: of all streams together, those that ended within the measured interval; no TPC figure. "
    "A query's time is the geometric mean of its executions (how many: in brackets), in seconds."
]


def table(experiment: ExperimentSummary) -> Table | None:
    """A column for each step that had streams; None where none had."""
    labels = step_labels(experiment)
    steps = [(step, step.beside) for step in experiment.steps if step.beside]
    if not steps:
        return None
    names = sorted({query.name for _, beside in steps for query in beside.queries}, key=in_order)
    rows: list[Sequence[str | Cell]] = [
        ["streams", *(format.count(beside.streams) for _, beside in steps)],
        ["queries per hour", *(format.number(beside.per_hour) for _, beside in steps)],
        ["failed", *(format.count(beside.failed) for _, beside in steps)],
    ]
    for name in names:
        found = [next((one for one in beside.queries if one.name == name), None) for _, beside in steps]
        rows.append([name, *(f"{format.number(one.seconds)} ({one.done})" if one else format.NONE for one in found)])
    return Table(["", *(emulated_label(step, labels) for step, _ in steps)], rows, notes=NOTES)
