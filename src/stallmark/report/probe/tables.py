"""The tables of a report on probes of raw storage."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.probe.experiment import ProbeExperiment, ProbeRun
from stallmark.record.probe import ProbeStep
from stallmark.report.table import Rows, Table, number, numbers, percentile_notes, percentiles, word
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED

_PERCENTILES = ("p50", "p95", "p99", "p99.9", "max")
CURVE_WIDTHS = (11, 7, 5, 7, 6, 6, 6, 6, 9)
"""Widths of the columns of `curve`, so that the tables of all patterns are aligned: 79 in all."""


def storage(experiment: ProbeExperiment) -> Table:
    """Return the probed storage, with place, file and tool."""
    return Rows(experiment.runs).table(
        word("storage", lambda run: run.variant),
        word("device", _device),
        word("place", lambda run: run.result.place),
        number("file", lambda run: run.result.file_bytes, format.size),
        word("by", lambda run: f"{run.result.tool}, {run.result.how}"),
        word("when", lambda run: format.moment(run.result.started)),
        word("record", lambda run: "incomplete" if run.incomplete_because else "complete"),
    )


def _device(run: ProbeRun) -> str:
    return f"{EMULATED} {run.result.device}" if run.result.emulated else run.result.device or format.NONE


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
    return Rows(run.result.steps).table(
        word("pattern", lambda step: step.pattern.title),
        number("outstanding", lambda step: str(step.outstanding)),
        number("I/Os per s", lambda step: step.iops),
        number("MB/s", lambda step: step.mb_per_s),
        number("mean ms", lambda step: step.mean_ms),
        percentiles(lambda step: step.latency_ms, _PERCENTILES),
        number("I/Os", lambda step: step.ios, format.count),
        number("measured", lambda step: step.seconds, format.seconds),
        notes=percentile_notes((step.latency_ms for step in run.result.steps), _PERCENTILES),
    )


def curve(steps: Sequence[ProbeStep]) -> Table:
    """Return the figures of one pattern for a terminal of 80 columns."""
    leave = {"p99": 2, "p99.9": 3}
    return Rows(steps).table(
        number("outstanding", lambda step: str(step.outstanding)),
        number("I/Os/s", lambda step: step.iops),
        number("MB/s", lambda step: step.mb_per_s, importance=1),
        number("mean ms", lambda step: step.mean_ms),
        numbers(_PERCENTILES[:-1], str, lambda step, name: step.latency_ms[name], leave),
        number("I/Os", lambda step: step.ios, format.count),
    )


def machines(experiment: ProbeExperiment) -> list[tuple[str, str]]:
    """Return the facts about the machines that the probes were made from."""
    found: dict[str, list[str]] = {}
    for run in experiment.runs:
        for name, value in run.manifest.machine.facts().items():
            text = format.size(value) if name == "memory_bytes" else str(value)
            found.setdefault(name.removesuffix("_bytes"), []).append(text)
    return [(name, ", ".join(dict.fromkeys(values))) for name, values in found.items()]
