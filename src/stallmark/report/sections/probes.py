"""The tables of probes of the raw storage that were made before and after runs."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.probe.against_database import AgainstProbe
from stallmark.analysis.probe.drift import DRIFTED, UNKNOWN, Drift, DriftRow, DriftVerdict
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table, named_rows, number, word
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
    labelled = [(during(names), drift) for names, drift in drifts]
    rows = [(label, (drift, row)) for label, drift in labelled for row in drift.rows or (None,)]
    return named_rows("storage", rows).table(
        word("probe", lambda pair: pair[1].pattern.title if pair[1] else format.NONE),
        number("outstanding", lambda pair: str(pair[1].outstanding) if pair[1] else None),
        number("I/Os per s before", lambda pair: pair[1].before_iops if pair[1] else None),
        number("after", lambda pair: pair[1].after_iops if pair[1] else None),
        number("ms before", lambda pair: pair[1].before_ms if pair[1] else None),
        number("after", lambda pair: pair[1].after_ms if pair[1] else None),
        number("change", lambda pair: _change(pair[1]) if pair[1] else None),
        word("verdict", lambda pair: _verdict((pair[1] or pair[0]).verdict)),
        notes=dict.fromkeys(f"{label}: {sentence(drift.finding)}" for label, drift in labelled),
    )


def _change(row: DriftRow) -> str:
    change = format.signed(row.ratio - 1)
    if row.low is None or row.high is None:
        return change
    return f"{change} ({format.signed(row.low - 1)} to {format.signed(row.high - 1)})"


def _verdict(verdict: DriftVerdict) -> Cell:
    return Cell(term(verdict), "bad" if verdict in (DRIFTED, UNKNOWN) else "")


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
