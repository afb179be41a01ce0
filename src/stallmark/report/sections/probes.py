"""The tables of probes of the raw storage that were made before and after runs."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.probe.against_database import AgainstProbe
from stallmark.analysis.probe.drift import DRIFTED, UNKNOWN, Drift, DriftRow
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table, named_rows, number
from stallmark.report.text import sentence
from stallmark.report.text.cautions import during
from stallmark.report.text.terms import term


def against_probe(experiment: ExperimentSummary) -> Table | None:
    """Return every step's reads next to those of the raw storage before its run; None where nothing was probed."""
    labels = step_labels(experiment)
    rows = [(labels[step.key], step.storage.probe) for step in experiment.steps if step.storage.probe]
    return against_database_table(rows) if rows else None


def drift_of_runs(experiment: ExperimentSummary) -> Table | None:
    """Return the drift of raw storage over the runs of every variant and between them; None without two probes."""
    return drift_table(experiment.drifts) if experiment.drifts else None


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
    change = format.signed(row.ratio - 1)
    if row.low is not None and row.high is not None:
        change += f" ({format.signed(row.low - 1)} to {format.signed(row.high - 1)})"
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
    return named_rows("run", found).table(
        number("reads per s", lambda reads: reads.reads_per_s),
        number("MB/s", lambda reads: reads.mb_per_s),
        number("ms", lambda reads: reads.read_ms),
        number("outstanding", lambda reads: reads.outstanding),
        number("raw reads per s", lambda reads: reads.raw_iops),
        number("raw ms", lambda reads: reads.raw_ms),
        number("achieved", lambda reads: reads.share, format.share),
        notes=[
            *(f"{label}: {sentence(one.finding)}" for label, one in found if one.raw_iops is None),
            *dict.fromkeys(sentence(one.caution) for _, one in found if one.caution),
        ],
    )
