"""The report's tables of the raw storage beside the database: what the database had of it, and whether it drifted."""

from stallmark.driver.analysis.compare_storage import drifts, probes_of
from stallmark.driver.analysis.devices import dram_of
from stallmark.driver.analysis.io import is_data_emulated
from stallmark.driver.analysis.points import group
from stallmark.driver.analysis.probe_beside import achieved_of, beside
from stallmark.driver.analysis.summary import ExperimentSummary
from stallmark.driver.report import probe_tables
from stallmark.driver.report.charts import emulated_label
from stallmark.driver.report.labels import step_labels
from stallmark.driver.report.tables import Table


def against_probe(experiment: ExperimentSummary) -> Table | None:
    """Every step's reads beside what the raw storage gave before its run; None where nothing was probed."""
    labels = step_labels(experiment)
    rows = [
        (
            emulated_label(step, labels),
            beside(
                probe,
                achieved,
                emulated=is_data_emulated(run.manifest),
                dram_bytes=dram_of(run.manifest),
            ),
        )
        for run in experiment.runs
        if (probe := probes_of(run).get("before"))
        for step in run.steps
        if (achieved := achieved_of(step))
    ]
    return probe_tables.beside_table(rows) if rows else None


def drift_of_runs(experiment: ExperimentSummary) -> Table | None:
    """Of every variant, before against after its runs and from one to the next; None where there were no two probes."""
    by_variant = group(experiment.runs, lambda run: (run.manifest.get("variant") or {}).get("name"))
    rows = [one for same in by_variant for one in drifts(same)]
    return probe_tables.drift_table(rows) if rows else None
