"""The experiments of a folder: what was run, when, and what came of it; and one scenario over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.compare.settings import same_load
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import mixed_versions
from stallmark.analysis.points import labels, points
from stallmark.analysis.thresholds import over_steps
from stallmark.format import plural
from stallmark.record.manifest import Manifest
from stallmark.report.columns import primary_of
from stallmark.report.table import Cell, Rows, Table, numbers, word
from stallmark.report.text import sentence


@dataclass(frozen=True)
class Past:
    """An experiment of the past. `whole` of `planned` runs were made; None if a folder holds no such plan."""

    folder: Path
    begun: str
    scenario: str
    state: str
    whole: int
    planned: int | None
    summary: ExperimentSummary | None


def result(past_run: Past) -> str:
    """Return what came of it in a sentence: the verdict, or the first finding; empty if there is neither."""
    if past_run.summary is None:
        return ""
    if past_run.summary.comparison and past_run.summary.comparison.pairs:
        return sentence(past_run.summary.comparison.pairs[0].finding)
    return sentence(past_run.summary.findings[0]) if past_run.summary.findings else ""


def count_kept_thresholds(past_run: Past) -> tuple[int, int] | None:
    """Return how many of the scenario's thresholds were kept, and how many there are; None without any."""
    verdicts = over_steps(past_run.summary.thresholds) if past_run.summary else []
    return (sum(verdict.passed is True for verdict in verdicts), len(verdicts)) if verdicts else None


def trend(past: Sequence[Past]) -> Table:
    """Return a row for each experiment of one scenario and a column for each of its variants and steps: transactions
    per second. Rows whose settings are not those of the last one are marked."""
    some = [one for one in past if one.summary and one.summary.steps]
    found = [points(one.summary.steps) for one in some if one.summary]
    manifests = [one.summary.runs[0].manifest for one in some if one.summary]
    names = [dict(zip(labels(each, each), each, strict=True)) for each in found]
    columns = list(dict.fromkeys(name for each in names for name in each))
    last = some[-1].summary if some else None
    primary = primary_of(last) if last else None
    unit = f"{plural(primary)}/s" if primary else "TPS"
    return Rows(list(zip(some, names, manifests, strict=True))).table(
        word(f"begun ({format.zone()})", lambda row: format.minute(row[0].begun)),
        numbers(
            columns,
            lambda column: f"{column}\n{unit}",
            lambda row, column: row[1][column].tps if column in row[1] else None,
        ),
        word("", lambda row: Cell(_unlike(row[2], manifests[-1]), "apart")),
    )


def _unlike(manifest: Manifest, last: Manifest) -> str:
    """Return the mark of a row that does not belong in one column with the last."""
    if mixed_versions([manifest, last]):
        return "other data version"
    return "" if same_load(manifest.scenario, last.scenario) else "other settings"
