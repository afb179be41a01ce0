"""Experiments and comparisons as pages, on slides and in terminals."""

from collections import defaultdict
from pathlib import Path

from rich.console import RenderableType

from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report import picture as slides
from stallmark.report import renderers
from stallmark.report.comparison import comparison_document, comparison_in_brief
from stallmark.report.document import Document
from stallmark.report.experiment import experiment_document
from stallmark.report.figures import Figure
from stallmark.report.queries import query_document
from stallmark.report.renderers import in_terminal


def _document(experiment: ExperimentSummary) -> Document:
    return query_document(experiment) if experiment.queries else experiment_document(experiment)


def render(experiment: ExperimentSummary) -> str:
    return renderers.render(_document(experiment))


def write_report(experiment: ExperimentSummary, target: Path) -> Path:
    [page] = renderers.write_pages(_document(experiment), target)
    return page


def charts(experiment: ExperimentSummary) -> dict[str, list[Figure]]:
    """The charts of a page by the id of their section; the first ones are those of "answer"."""
    document = _document(experiment)
    lead = [block for block in document.lead if isinstance(block, Figure)]
    return defaultdict(list, {"answer": lead} | {one.id: list(one.figures()) for one in document.sections})


def slide(experiment: ExperimentSummary) -> str:
    return slides.slide(_document(experiment))


def write_slide(experiment: ExperimentSummary, target: Path) -> Path:
    return slides.write_slide(_document(experiment), target)


def table(experiment: ExperimentSummary) -> RenderableType:
    """Return an experiment as a terminal shows it."""
    return in_terminal(_document(experiment).brief)


def render_comparison(experiment: ExperimentSummary, found: ComparisonSummary) -> str:
    return renderers.render(comparison_document(experiment, found))


def write_comparison(experiment: ExperimentSummary, found: ComparisonSummary, target: Path) -> Path:
    [page] = renderers.write_pages(comparison_document(experiment, found), target)
    return page


def verdicts(found: ComparisonSummary) -> RenderableType:
    """Return a comparison as a terminal shows it."""
    return in_terminal(comparison_in_brief(found))
