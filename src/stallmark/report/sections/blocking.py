"""The tables of users who blocked one another: whose rows they waited for, who blocked whom, and the deadlocks."""

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report.document import Block, Section, Words, shown
from stallmark.report.labels import step_rows
from stallmark.report.table import Table, named_rows, number, word
from stallmark.report.text import reading
from stallmark.report.text import server as words


def row_waits(experiment: ExperimentSummary) -> Table | None:
    """Return the waits for rows and pages by table; None where they were not sampled, no rows where nobody waited."""
    if all(step.waits.row_waits is None for step in experiment.steps):
        return None
    rows = step_rows(experiment, lambda step: [(wait, step.users) for wait in step.waits.row_waits or []])
    counted = any(wait.waits_per_s is not None for wait, _ in rows.items)
    return rows.table(
        word("table", lambda row: row[0].table),
        number("sessions waiting", lambda row: row[0].waiting),
        number("per user", lambda row: row[0].waiting / row[1] if row[1] else None, format.share),
        number("waits/s", lambda row: row[0].waits_per_s, when=counted),
        number("ms each", lambda row: row[0].wait_ms, when=counted),
        number("for latches", lambda row: row[0].latched, when=counted),
        number("for reads", lambda row: row[0].reading, when=counted),
        notes=[words.ROW_WAITS + words.ROW_WAITS_COUNTED * counted],
    )


def blocked(experiment: ExperimentSummary) -> Table | None:
    """Return who blocked whom in every step; None where nobody was seen blocked."""
    return step_rows(experiment, lambda step: step.waits.blocked).table_if_any(
        word("blocked in", lambda pair: pair.blocked),
        word("by one in", lambda pair: pair.blocker),
        word("wait", lambda pair: pair.wait_type),
        number("sessions", lambda pair: pair.sessions),
        notes=[words.BLOCKED],
    )


def deadlocks(experiment: ExperimentSummary) -> Table | None:
    """Return the deadlocks of every run by their shape; None without any."""
    rows = named_rows("run", ((run.title, deadlock) for run in experiment.runs for deadlock in run.deadlocks))
    return rows.table_if_any(
        number("times", lambda deadlock: deadlock.times, format.count),
        word("victim in", lambda deadlock: deadlock.victim),
        word("others in", lambda deadlock: deadlock.others),
        word("victim’s isolation", lambda deadlock: deadlock.isolation),
        word("locks", lambda deadlock: deadlock.resources),
        word("graph of the first", lambda deadlock: deadlock.graph or ""),
        notes=[words.DEADLOCKS],
    )


def section(experiment: ExperimentSummary) -> Section:
    """Return whose rows were waited for, and who blocked whom."""
    waits = row_waits(experiment)
    by_table: list[Block] = shown(waits, "Sessions waiting for rows, by table")
    if waits and not waits.rows:
        by_table = [Words(reading.NO_ROW_WAITS)]
    pairs = shown(blocked(experiment), "Sessions that waited for another one", "Blocked sessions and their blockers")
    blocks = [*by_table, *pairs]
    return Section("rows", "Waiting for rows", blocks, "")
