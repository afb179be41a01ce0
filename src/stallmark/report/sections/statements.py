"""The table of statements: those that read, computed and waited most in each step, and by which plans."""

from collections.abc import Callable, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.server_summary import StatementSummary
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import server as words

TOP = 3
_BY: tuple[Callable[[StatementSummary], float], ...] = (
    lambda one: one.physical_reads,
    lambda one: one.cpu_ms,
    lambda one: one.waited_ms,
)


def statements(experiment: ExperimentSummary) -> Table | None:
    """Return the top statements of every step by reads, CPU and waiting; None where the server does not tell."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for step in experiment.steps:
        totals = [sum(map(by, step.server.statements)) for by in _BY]
        for one in _top(step.server.statements):
            shares = [by(one) / total if total else None for by, total in zip(_BY, totals, strict=True)]
            rows.append(
                [
                    labels[step.key],
                    one.procedure,
                    one.text,
                    f"{'' if one.whole else '≥ '}{format.number(one.executions / one.seconds)}",
                    *map(format.share, shares),
                    format.number(one.physical_reads / one.executions),
                    format.number(one.cpu_ms / one.executions),
                    format.number(one.waited_ms / one.executions),
                    Cell(", ".join(plan.removeprefix("0x").lower()[:8] for plan in one.plans)),
                ]
            )
    if not rows:
        return None
    header = [
        "step",
        "procedure",
        "statement",
        "per s",
        "reads",
        "CPU",
        "waiting",
        "reads",
        "CPU ms",
        "waited ms",
        "plans",
    ]
    return Table(
        header,
        rows,
        frozenset({0, 1, 2, 10}),
        [words.statements(TOP)],
        [("", 4), ("Share of all statements’", 3), ("Per execution", 3), ("", 1)],
    )


def _top(found: Sequence[StatementSummary]) -> list[StatementSummary]:
    best = {id(one) for by in _BY for one in sorted(found, key=by, reverse=True)[:TOP] if by(one)}
    return [one for one in found if id(one) in best]
