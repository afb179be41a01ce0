"""Tables of probes of raw storage: for a report on probes, and for runs that were probed before and after."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.probe.against_database import AgainstProbe
from stallmark.analysis.probe.drift import DRIFTED, UNKNOWN, Drift, DriftRow
from stallmark.analysis.probe.experiment import ProbeExperiment, ProbeRun
from stallmark.report.table import Cell, Table, percentile, percentile_notes
from stallmark.report.text import sentence
from stallmark.report.text.cautions import during
from stallmark.report.text.device import EMULATED
from stallmark.report.text.terms import term

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
            format.minute(run.result.started) + " UTC",
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


def drift_table(drifts: Sequence[tuple[Sequence[str], Drift]]) -> Table:
    """Return probes before and after, step by step. Names are of the run between two probes, or of both runs."""
    rows: list[Sequence[str | Cell]] = []
    labelled = [(during(names), drift) for names, drift in drifts]
    for label, drift in labelled:
        rows += [_drift_row(label, row) for row in drift.rows]
        if not drift.rows:
            rows.append([label, *[format.NONE] * 7, Cell(term(drift.verdict), "bad")])
    header = [
        "storage",
        "probe",
        "outstanding",
        "I/Os per s before",
        "after",
        "ms before",
        "after",
        "change",
        "verdict",
    ]
    return Table(
        header,
        rows,
        words=frozenset({0, 1, 8}),
        notes=list(dict.fromkeys(f"{label}: {sentence(drift.finding)}" for label, drift in labelled)),
    )


def _drift_row(label: str, row: DriftRow) -> Sequence[str | Cell]:
    change = format.signed_share(row.ratio - 1)
    if row.low is not None and row.high is not None:
        change += f" ({format.signed_share(row.low - 1)} to {format.signed_share(row.high - 1)})"
    return [
        label,
        row.pattern.title,
        str(row.outstanding),
        format.number(row.before_iops),
        format.number(row.after_iops),
        format.number(row.before_ms),
        format.number(row.after_ms),
        change,
        Cell(term(row.verdict), "bad" if row.verdict in (DRIFTED, UNKNOWN) else ""),
    ]


def against_database_table(found: Sequence[tuple[str, AgainstProbe]]) -> Table:
    """Return the reads of databases next to those of raw storage with as many outstanding."""
    rows: list[Sequence[str | Cell]] = [
        [
            label,
            format.number(one.reads_per_s),
            format.number(one.mb_per_s),
            format.number(one.read_ms),
            format.number(one.outstanding),
            format.number(one.raw_iops),
            format.number(one.raw_ms),
            format.share(one.share),
        ]
        for label, one in found
    ]
    return Table(
        ["run", "reads per s", "MB/s", "ms", "outstanding", "raw reads per s", "raw ms", "achieved"],
        rows,
        notes=[
            *(f"{label}: {sentence(one.finding)}" for label, one in found if one.raw_iops is None),
            *dict.fromkeys(sentence(one.caution) for _, one in found if one.caution),
        ],
    )
