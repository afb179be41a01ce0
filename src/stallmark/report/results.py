"""Results without a page: the answers of commands that write none, and results for other programs."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.analysis.compare.settings import same_load
from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding, mixed_versions
from stallmark.analysis.metrics import METRICS, labels, points
from stallmark.analysis.prediction import WhatIf, WhatIfs
from stallmark.analysis.rules import Rule, verdicts_over_steps
from stallmark.format import count, plural
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import moment_at, seconds_at
from stallmark.redact import spreadsheet, visible
from stallmark.report.columns import primary_of
from stallmark.report.document import Brief, Shown, Words
from stallmark.report.sections.validity import failures
from stallmark.report.table import Cell, Rows, Table, number, numbers, word
from stallmark.report.text import cause as words
from stallmark.report.text import comparison as plan_words
from stallmark.report.text import sentence, term
from stallmark.report.text.steady import comparison_doubts, comparison_failures, run_failure


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


# Results for other programs: the metrics of steps as one CSV with a row for each value, and demands on an experiment
# as JUnit's XML, which every CI shows as tests.
#
# JUnit as GitLab and Jenkins read it: https://github.com/testmoapp/junitxml (read in November 2026).

HEADER = ("time", "run", "variant", "repeat", "load", "step", "metric", "unit", "value")


def write_flat(experiments: Mapping[str, ExperimentSummary], file: TextIO) -> None:
    """Write the CSV of experiments by the name of their load, empty for a single load. `time` is the beginning of the
    step's interval in UTC, `step` its number in the run. Values that were not measured have no row."""
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(HEADER)
    for load, experiment in experiments.items():
        rows.writerows(_rows(experiment, load))


def _rows(experiment: ExperimentSummary, load: str) -> Iterator[list[str]]:
    for run in experiment.runs:
        began_s = seconds_at(run.started)
        for step in run.steps:
            about = [run.folder, step.variant, str(run.manifest.repeat), load, str(step.step)]
            moment = moment_at(began_s + step.interval.begin_s)
            for metric in METRICS.values():
                if (value := metric.value(step)) is not None:
                    yield [moment, *map(spreadsheet, about), metric.key, metric.unit, f"{value:.12g}"]


COMPLETE, CONSISTENT, THRESHOLDS, FAIL_IF = "complete", "consistency", "thresholds", "fail-if"


@dataclass(frozen=True)
class Case:
    """A demand as a test case: it passed, it failed, or (None) it could not be judged, with the reason."""

    group: str
    name: str
    passed: bool | None
    reason: str = ""


def experiment_cases(experiment: ExperimentSummary, load: str) -> Iterator[Case]:
    """Yield the demands on the runs of an experiment, or on one of its loads: that each is complete and its data are
    consistent, and the thresholds of the scenario."""
    before = f"{load}: " if load else ""
    for run in experiment.runs:
        because = run.incomplete_because
        yield Case(COMPLETE, f"{before}{run.folder}", because is None, because or "")
        for condition in run.conditions:
            if condition.holds is not None:
                reason = (
                    "" if condition.holds else f"{count(condition.offending)} {condition.counted}, {condition.detail}"
                )
                yield Case(CONSISTENT, f"{before}{run.folder}: {condition.name}", condition.holds, reason)
    reasons = iter(failures(experiment))
    for verdict in verdicts_over_steps(experiment.thresholds):
        reason = "" if verdict.passed else f"{before}{next(reasons)}"
        yield Case(THRESHOLDS, f"{before}{verdict.text}", verdict.passed, reason)


def run_case(rule: Rule, written: str, findings: Sequence[Finding]) -> Case:
    """Return a rule of --fail-if, as it was `written`, for all runs of a report."""
    reason = run_failure(rule, findings)
    return Case(FAIL_IF, written, reason is None, reason or "")


def comparison_case(rule: Rule, written: str, comparison: ComparisonSummary, load: str) -> Case:
    """Return a rule of --fail-if, as it was `written`, for all pairs of a comparison."""
    failed, open_ = comparison_failures(rule, comparison), comparison_doubts(rule, comparison)
    passed = False if failed else None if open_ else True
    before = f"{load}: " if load else ""
    return Case(FAIL_IF, before + written, passed, "; ".join(f"{before}{reason}" for reason in failed or open_))


def in_junit(cases: Iterable[Case]) -> str:
    """Return the cases as an XML document: one test suite for each group. A case without a verdict is an error."""
    root = ElementTree.Element("testsuites", name="stallmark")
    suites: dict[str, ElementTree.Element] = {}
    for case in cases:
        if case.group not in suites:
            suites[case.group] = ElementTree.SubElement(root, "testsuite", name=case.group)
        test = ElementTree.SubElement(
            suites[case.group], "testcase", classname=f"stallmark.{case.group}", name=visible(case.name)
        )
        if case.passed is not True:
            kind = "error" if case.passed is None else "failure"
            ElementTree.SubElement(test, kind, message=visible(case.reason)).text = visible(case.reason)
    for element in (root, *suites.values()):
        element.set("tests", str(len(element.findall(".//testcase"))))
        element.set("failures", str(len(element.findall(".//failure"))))
        element.set("errors", str(len(element.findall(".//error"))))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
