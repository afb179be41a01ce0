"""The tables of users who blocked one another: whose rows they waited for, who blocked whom, and the deadlocks."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import server as words


def row_waits(experiment: ExperimentSummary) -> Table | None:
    """Return the waits for rows and pages by table; None where they were not sampled, no rows where nobody waited."""
    labels = step_labels(experiment)
    looked = [step for step in experiment.steps if step.waits.row_waits is not None]
    if not looked:
        return None
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            wait.table,
            format.number(wait.waiting),
            format.share(wait.waiting / step.users) if step.users else format.NONE,
            format.number(wait.waits_per_s),
            format.number(wait.wait_ms),
            format.number(wait.latched),
            format.number(wait.reading),
        ]
        for step in looked
        for wait in step.waits.row_waits or []
    ]
    counted = any(wait.waits_per_s is not None for step in looked for wait in step.waits.row_waits or [])
    width = 8 if counted else 4
    header = ["step", "table", "sessions waiting", "per user", "waits/s", "ms each", "for latches", "for reads"]
    note = words.ROW_WAITS
    if counted:
        note += words.ROW_WAITS_COUNTED
    return Table(header[:width], [row[:width] for row in rows], frozenset({0, 1}), [note])


def blocked(experiment: ExperimentSummary) -> Table | None:
    """Return who blocked whom in every step; None where nobody was seen blocked."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [labels[step.key], one.blocked, one.blocker, one.wait_type, format.number(one.sessions)]
        for step in experiment.steps
        for one in step.waits.blocked
    ]
    if not rows:
        return None
    note = words.BLOCKED
    return Table(["step", "blocked in", "by one in", "wait", "sessions"], rows, frozenset({0, 1, 2, 3}), [note])


def deadlocks(experiment: ExperimentSummary) -> Table | None:
    """Return the deadlocks of every run by their shape; None without any."""
    rows: list[Sequence[str | Cell]] = [
        [run.title, format.count(one.times), one.victim, one.others, one.isolation, one.resources, one.graph or ""]
        for run in experiment.runs
        for one in run.deadlocks
    ]
    if not rows:
        return None
    note = words.DEADLOCKS
    header = ["run", "times", "victim in", "others in", "victim’s isolation", "locks", "graph of the first"]
    return Table(header, rows, frozenset({0, 2, 3, 4, 5, 6}), [note])
