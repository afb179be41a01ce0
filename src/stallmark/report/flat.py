"""The metrics of every measured step as one CSV with a row for each value, for spreadsheets, pandas and Grafana."""

import csv
from collections.abc import Iterator, Mapping
from typing import TextIO

from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.metrics import METRICS
from stallmark.record.manifest.course import moment_at, seconds_at
from stallmark.redact import spreadsheet

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
