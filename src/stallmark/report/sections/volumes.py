"""The table of volumes as Windows counts them, beside what the server saw of its files."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import server as words


def volumes(experiment: ExperimentSummary) -> Table | None:
    """Return queue, rates and times of every volume; None where the driver did not run on the server's Windows."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            one.volume,
            *map(format.number, (one.queue, one.reads_per_s, one.read_ms, one.writes_per_s, one.write_ms)),
        ]
        for step in experiment.steps
        for one in step.server.volumes
    ]
    if not rows:
        return None
    header = ["step", "volume", "queue", "reads/s", "ms per read", "writes/s", "ms per write"]
    note = words.VOLUMES
    return Table(header, rows, frozenset({0, 1}), [note])
