"""The tables of errors: calls that failed, and consistency conditions that do not hold."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.format import spoken
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import read as read_words
from stallmark.report.text import reading, sentence


def errors(experiment: ExperimentSummary) -> Table | None:
    """Return the failed calls by class and code; None when no call failed in any measured interval."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[s.key],
            spoken(e.transaction) or format.NONE,
            e.error_class,
            e.code,
            format.count(e.attempts),
            format.count(e.most_in_a_second),
            format.count(e.given_up),
            e.message,
        ]
        for s in experiment.steps
        for e in s.validity.errors
    ]
    if not rows:
        return None
    header = [*("step", "transaction", "class", "code", "failed calls", "most in 1 s", "given up", "first message")]
    bursts = [f"{labels[s.key]}: {sentence(burst)}" for s in experiment.steps for burst in s.validity.bursts]
    tried = read_words.TRIED_AGAIN
    return Table(header, rows, frozenset({0, 1, 2, 3, 7}), [tried, *bursts])


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
