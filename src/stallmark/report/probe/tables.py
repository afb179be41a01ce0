"""The tables of a report on probes of raw storage."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.probe.experiment import ProbeExperiment, ProbeRun
from stallmark.report.table import Cell, Table, percentile, percentile_notes
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED

_PERCENTILES = ("p50", "p95", "p99", "p99.9", "max")


def storage(experiment: ProbeExperiment) -> Table:
    """Return the probed storage, with place, file and tool."""
    rows: list[Sequence[str | Cell]] = [
        [
            run.variant,
            f"{EMULATED} {run.result.device}" if run.result.emulated else run.result.device or format.NONE,
            run.result.place,
            format.size(run.result.file_bytes),
            f"{run.result.tool}, {run.result.how}",
            format.moment(run.result.started),
            "incomplete" if run.incomplete_because else "complete",
        ]
        for run in experiment.runs
    ]
    header = ["storage", "device", "place", "file", "by", "when", "record"]
    return Table(header, rows, words=frozenset({0, 1, 2, 4, 5, 6}))


def of_pattern(experiment: ProbeExperiment, title: str) -> list[str]:
    """Return the sentences on one pattern, for probes of several; those of a single pattern are among the findings."""
    return [
        f"{run.variant}: {sentence(found.finding)}" if len(experiment.runs) > 1 else sentence(found.finding)
        for run in experiment.runs
        for found in run.saturations
        if found.pattern.title == title and len(run.saturations) > 1
    ]


def steps(run: ProbeRun) -> Table:
    """Return every figure of one probe."""
    rows: list[Sequence[str | Cell]] = [
        [
            step.pattern.title,
            str(step.outstanding),
            format.number(step.iops),
            format.number(step.mb_per_s),
            format.number(step.mean_ms),
            *(percentile(step.latency_ms[name]) for name in _PERCENTILES),
            format.count(step.ios),
            format.seconds(step.seconds),
        ]
        for step in run.result.steps
    ]
    shown = (value for step in run.result.steps for value in step.latency_ms.values())
    header = ["pattern", "outstanding", "I/Os per s", "MB/s", "mean ms", *_PERCENTILES, "I/Os", "measured"]
    return Table(header, rows, notes=percentile_notes(shown))


def machines(experiment: ProbeExperiment) -> list[tuple[str, str]]:
    """Return the facts about the machines that the probes were made from."""
    found: dict[str, list[str]] = {}
    for run in experiment.runs:
        for name, value in run.manifest.machine.facts().items():
            text = format.size(value) if name == "memory_bytes" else str(value)
            found.setdefault(name.removesuffix("_bytes"), []).append(text)
    return [(name, ", ".join(dict.fromkeys(values))) for name, values in found.items()]
