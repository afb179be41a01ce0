"""The service level of every step in a terminal."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.labels import step_labels
from stallmark.report.text import sentence

GUTTER = 2
STYLES = {"not met": "bold red", "met": "green", "mean only": "yellow"}


def service_levels(experiment: ExperimentSummary) -> list[RenderableType]:
    """An empty line and one for each step; nothing where the scenario sets none."""
    names = step_labels(experiment)
    grid = Table.grid(padding=(0, GUTTER, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for step in experiment.steps:
        if step.slo:
            style = STYLES.get(step.slo.outcome, "dim")
            grid.add_row(
                Text(f"SLO {step.slo.outcome}", style), Text(f"{names[step.key]}: {sentence(step.slo.finding)}")
            )
    return [Text(""), grid] if grid.row_count else []
