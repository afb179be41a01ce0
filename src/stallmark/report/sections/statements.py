"""The table of statements: those that read, computed and waited most in each step, and by which plans."""

from collections.abc import Callable, Iterator, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.server_summary import StatementSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.labels import step_rows
from stallmark.report.table import Table, group, number, word
from stallmark.report.text import server as words

TOP = 3
_BY: tuple[Callable[[StatementSummary], float], ...] = (
    lambda one: one.physical_reads,
    lambda one: one.cpu_ms,
    lambda one: one.waited_ms,
)


def statements(experiment: ExperimentSummary) -> Table | None:
    """Return the top statements of every step by reads, CPU and waiting; None where the server does not tell."""
    return step_rows(experiment, _with_shares).table_if_any(
        word("procedure", lambda row: row[0].procedure),
        word("statement", lambda row: row[0].text),
        number("per s", lambda row: _rate(row[0])),
        group(
            "Share of all statements’",
            number("reads", lambda row: row[1][0], format.share),
            number("CPU", lambda row: row[1][1], format.share),
            number("waiting", lambda row: row[1][2], format.share),
        ),
        group(
            "Per execution",
            number("reads", lambda row: row[0].physical_reads / row[0].executions),
            number("CPU ms", lambda row: row[0].cpu_ms / row[0].executions),
            number("waited ms", lambda row: row[0].waited_ms / row[0].executions),
        ),
        word("plans", lambda row: ", ".join(plan.removeprefix("0x").lower()[:8] for plan in row[0].plans)),
        notes=[words.statements(TOP)],
    )


def _rate(statement: StatementSummary) -> str:
    return f"{'' if statement.whole else '≥ '}{format.number(statement.executions / statement.seconds)}"


def _with_shares(step: StepSummary) -> Iterator[tuple[StatementSummary, list[float | None]]]:
    """Yield the top statements of a step, each with its shares of reads, CPU and waiting."""
    totals = [sum(map(by, step.server.statements)) for by in _BY]
    for statement in _top(step.server.statements):
        yield statement, [by(statement) / total if total else None for by, total in zip(_BY, totals, strict=True)]


def _top(found: Sequence[StatementSummary]) -> list[StatementSummary]:
    best = {id(one) for by in _BY for one in sorted(found, key=by, reverse=True)[:TOP] if by(one)}
    return [one for one in found if id(one) in best]
