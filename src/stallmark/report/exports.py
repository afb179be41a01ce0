"""Results for other programs: the metrics of steps as one CSV with a row for each value, and demands on an experiment
as JUnit's XML, which every CI shows as tests.

JUnit as GitLab and Jenkins read it: https://github.com/testmoapp/junitxml (read in November 2026).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO
from xml.etree import ElementTree

from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding
from stallmark.analysis.metrics import METRICS
from stallmark.analysis.thresholds import Rule, verdicts_over_steps
from stallmark.format import count
from stallmark.record.manifest.course import moment_at, seconds_at
from stallmark.redact import spreadsheet, visible
from stallmark.report.sections.validity import failures
from stallmark.report.text.steady import comparison_doubts, comparison_failures, run_failure

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


def experiment_cases(experiment: ExperimentSummary, load: str = "") -> Iterator[Case]:
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


def comparison_case(rule: Rule, written: str, comparison: ComparisonSummary, load: str = "") -> Case:
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
