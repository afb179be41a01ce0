"""The report's tables of the raw storage beside the database: what the database had of it, and whether it drifted."""

from stallmark.analysis.compare.storage import drifts, probes_of
from stallmark.analysis.points import group
from stallmark.analysis.probe.beside_database import achieved_of, beside
from stallmark.analysis.summary import ExperimentSummary
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.report.labels import emulated_label, step_labels
from stallmark.report.probe import tables as probe_tables
from stallmark.report.table import Table
from stallmark.report.text.cautions import during


def against_probe(experiment: ExperimentSummary) -> Table | None:
    """Every step's reads beside what the raw storage gave before its run; None where nothing was probed."""
    labels = step_labels(experiment)
    rows = [
        (
            emulated_label(step, labels),
            beside(probe, achieved, emulated=is_data_emulated(run.manifest), dram_bytes=dram_of(run.manifest)),
        )
        for run in experiment.runs
        if (probe := probes_of(run).get("before"))
        for step in run.steps
        if (achieved := achieved_of(step))
    ]
    return probe_tables.beside_table(rows) if rows else None


def drift_of_runs(experiment: ExperimentSummary) -> Table | None:
    """Of every variant, before against after its runs and from one to the next; None where there were no two probes."""
    by_variant = group(experiment.runs, lambda run: run.manifest.variant.name)
    rows = [(during(between), one) for same in by_variant for between, one in drifts(same)]
    return probe_tables.drift_table(rows) if rows else None
