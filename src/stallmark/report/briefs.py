"""The answers of commands that write no page: past experiments, one scenario over time, predictions, a plan of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.compare.claims import RunsPlan
from stallmark.analysis.compare.settings import same_load
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import mixed_versions
from stallmark.analysis.metrics import labels, points
from stallmark.analysis.prediction import WhatIf, WhatIfs
from stallmark.analysis.thresholds import verdicts_over_steps
from stallmark.format import plural
from stallmark.record.manifest import Manifest
from stallmark.report.columns import primary_of
from stallmark.report.document import Brief, Shown, Words
from stallmark.report.table import Cell, Rows, Table, number, numbers, word
from stallmark.report.text import cause as words
from stallmark.report.text import comparison as plan_words
from stallmark.report.text import sentence, term


@dataclass(frozen=True)
class Past:
    """An experiment that was run earlier."""

    folder: Path
    begun: str
    scenario: str
    state: str
    whole: int  # number of complete runs
    planned: int | None  # number of planned runs, None if the folder holds no plan
    summary: ExperimentSummary | None


def result(past_run: Past) -> str:
    """Return the result of an experiment in a sentence: the verdict or, without one, the first finding; empty without
    both."""
    if past_run.summary is None:
        return ""
    if past_run.summary.comparison and past_run.summary.comparison.pairs:
        return sentence(past_run.summary.comparison.pairs[0].finding)
    return sentence(past_run.summary.findings[0]) if past_run.summary.findings else ""


def count_kept_thresholds(past_run: Past) -> tuple[int, int] | None:
    """Return the number of kept thresholds and the number of all thresholds, or None if the scenario has none."""
    verdicts = verdicts_over_steps(past_run.summary.thresholds) if past_run.summary else []
    return (sum(verdict.passed is True for verdict in verdicts), len(verdicts)) if verdicts else None


def trend(past: Sequence[Past]) -> Table:
    """Return a row for each experiment of one scenario and a column for each of its variants and steps: transactions
    per second. Rows whose settings are not those of the last one are marked."""
    shown = [experiment for experiment in past if experiment.summary and experiment.summary.steps]
    shown_points = [points(experiment.summary.steps) for experiment in shown if experiment.summary]
    manifests = [experiment.summary.runs[0].manifest for experiment in shown if experiment.summary]
    names = [dict(zip(labels(step_points, step_points), step_points, strict=True)) for step_points in shown_points]
    columns = list(dict.fromkeys(name for row_names in names for name in row_names))
    # Settings are compared with the latest experiment, which a reader wants to judge.
    last = shown[-1].summary if shown else None
    primary = primary_of(last) if last else None
    unit = f"{plural(primary)}/s" if primary else "TPS"
    return Rows(list(zip(shown, names, manifests, strict=True))).table(
        word(f"begun ({format.zone()})", lambda row: format.minute(row[0].begun)),
        numbers(
            columns,
            lambda column: f"{column}\n{unit}",
            lambda row, column: row[1][column].tps if column in row[1] else None,
        ),
        word("", lambda row: Cell(_unlike(row[2], manifests[-1]), "apart")),
    )


def _unlike(manifest: Manifest, last: Manifest) -> str:
    """Return the mark of a row that does not belong in one column with the last."""
    if mixed_versions([manifest, last]):
        return "other data version"
    return "" if same_load(manifest.scenario, last.scenario) else "other settings"


def predictions_in_brief(what_ifs: WhatIfs) -> Brief:
    notes = [
        *(Words(sentence(finding), "apart") for finding in what_ifs.left_out),
        Words(words.tests_of_models(what_ifs)),
        Words(words.PREDICTED_IN_BRIEF, "quiet"),
    ]
    return [
        *(
            [Words(_about(what_if), "", what_if.variant or what_if.step), Shown(_predictions(what_if))]
            for what_if in what_ifs.found
        ),
        notes,
    ]


def _about(prediction: WhatIf) -> str:
    users = f"{prediction.users} user{'s' * (prediction.users != 1)}"
    runs = f"mean of {prediction.runs} runs" if prediction.runs > 1 else "1 run"
    reads = f"reads of {format.number(prediction.read_ms)} ms by the {prediction.read_source}"
    emulated = ", EMULATED device" if prediction.emulated else ""
    return f", {users}: {format.number(prediction.tps)} TPS with {reads} ({runs}{emulated})"


def _predictions(prediction: WhatIf) -> Table:
    return Rows(prediction.predictions).table(
        number("if reads took", lambda row: f"{format.number(row.read_ms)} ms"),
        number("TPS", lambda row: row.tps),
        number("range", lambda row: f"{format.number(row.low)}–{format.number(row.high)}"),
        number("change", lambda row: row.tps / prediction.tps - 1, format.signed),
        word("limit then", lambda row: term(row.limit) if row.limit else "differs by run"),
    )


def plan_in_brief(plan: RunsPlan) -> Brief:
    """Return the differences that N runs can show, and how many runs a wanted difference needs."""
    header = ["runs of each", "show a difference of", *(["time for two variants"] if plan.run_s else [])]
    rows = [
        [str(runs), f"{plan_words.amount(least)} %", *([format.seconds(plan.run_s * runs * 2)] if plan.run_s else [])]
        for runs, least in plan.can_show
    ]
    return [
        [Words(plan_words.enough_runs(plan), "main")],
        [Shown(Table(header, list(rows), frozenset()))],
        [Words(plan_words.scatter(plan), "quiet")],
    ]
