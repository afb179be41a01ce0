"""The report's tables of the raw storage beside the database: what the database had of it, and whether it drifted."""

from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.labels import emulated_label, step_labels
from stallmark.report.probe import tables as probe_tables
from stallmark.report.table import Table


def against_probe(experiment: ExperimentSummary) -> Table | None:
    """Every step's reads beside what the raw storage gave before its run; None where nothing was probed."""
    labels = step_labels(experiment)
    rows = [(emulated_label(step, labels), step.raw) for step in experiment.steps if step.raw]
    return probe_tables.beside_table(rows) if rows else None


def drift_of_runs(experiment: ExperimentSummary) -> Table | None:
    """Of every variant, before against after its runs and from one to the next; None where there were no two probes."""
    return probe_tables.drift_table(experiment.drifts) if experiment.drifts else None
