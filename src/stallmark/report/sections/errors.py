"""The tables of errors: calls that failed, and consistency conditions that do not hold."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.format import spoken
from stallmark.report.document import Block, Section, Title, Words, shown
from stallmark.report.labels import step_rows
from stallmark.report.sections.blocking import deadlocks
from stallmark.report.table import Cell, Table, number, word
from stallmark.report.text import read as read_words
from stallmark.report.text import reading, sentence


def errors(experiment: ExperimentSummary) -> Table | None:
    """Return the failed calls by class and code; None when no call failed in any measured interval."""
    bursts = step_rows(experiment, lambda step: step.validity.bursts)
    return step_rows(experiment, lambda step: step.validity.errors).table_if_any(
        word("transaction", lambda error: spoken(error.transaction) or format.NONE),
        word("class", lambda error: error.error_class),
        word("code", lambda error: error.code),
        number("failed calls", lambda error: error.attempts, format.count),
        number("most in 1 s", lambda error: error.most_in_a_second, format.count),
        number("given up", lambda error: error.given_up, format.count),
        word("first message", lambda error: error.message),
        notes=[
            read_words.TRIED_AGAIN,
            *(f"{step}: {sentence(burst)}" for step, burst in zip(bursts.names, bursts.items, strict=True)),
        ],
    )


def brief(experiment: ExperimentSummary) -> str:
    """Return the number of failed calls, and of conditions that hold, in a line."""
    failed = sum(one.attempts for step in experiment.steps for one in step.validity.errors)
    checked = [one.holds for run in experiment.runs for one in run.conditions]
    said = [f"{failed:,} failed calls" if failed else "no call failed"]
    return ", ".join([*said, *([f"{checked.count(True)} of {len(checked)} conditions hold"] if checked else [])])


def consistency(experiment: ExperimentSummary) -> Table | None:
    """Return the conditions that do not hold or were refused, runs of the same result together; None without any."""
    found: dict[tuple[str, bool | None, int, str], list[RunSummary]] = {}
    for run in experiment.runs:
        for one in run.conditions:
            if one.holds:
                continue
            what = (one.name, one.holds, one.offending, one.refused or one.detail)
            found.setdefault(what, []).append(run)
    rows: list[Sequence[str | Cell]] = []
    for (name, holds, offending, detail), runs in found.items():
        verdict = Cell("refused", "none") if holds is None else Cell("BROKEN", "bad")
        rows.append([name, verdict, format.count(offending), _which(experiment, runs), detail])
    if not rows:
        return None
    return Table(["condition", "result", "offending rows", "runs", "detail"], rows, frozenset({0, 1, 3, 4}))


def held(experiment: ExperimentSummary) -> str:
    """Return how many conditions held, with their names; empty where none did."""
    names = [one.name for run in experiment.runs for one in run.conditions if one.holds]
    checked = sum(len(run.conditions) for run in experiment.runs)
    if not names:
        return ""
    return reading.conditions_held(len(names), checked, list(dict.fromkeys(names)))


def _which(experiment: ExperimentSummary, runs: Sequence[RunSummary]) -> str:
    if len(runs) == len(experiment.runs):
        return f"all {len(runs)}" if len(runs) > 1 else "the only one"
    return ", ".join(r.title for r in runs)


def section(experiment: ExperimentSummary, failed: Sequence[Block]) -> Section:
    """Return what `failed`, and whether the data stayed consistent."""
    blocks = [*failed, Title("Consistency of the data after the runs"), *consistency_blocks(experiment)]
    return Section("errors", "Errors and consistency", blocks, brief(experiment))


def failed_calls(experiment: ExperimentSummary) -> list[Block]:
    calls = shown(errors(experiment), "Failed calls") or [Words(reading.NO_CALL_FAILED)]
    return [*calls, *shown(deadlocks(experiment), "Deadlocks, by their shape", "Deadlocks")]


def consistency_blocks(experiment: ExperimentSummary) -> list[Block]:
    names = held(experiment)
    broken = shown(consistency(experiment), "Consistency conditions that do not hold")
    return [*([Words(names)] if names else []), *broken] or [Words(reading.NOT_CHECKED)]
