"""Write a comparison as one HTML file that needs no network: the verdict first, then its evidence."""

from pathlib import Path

from stallmark.analysis.compare.summary import ComparisonSummary
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.points import Point
from stallmark.report.comparison import figures as comparison_charts
from stallmark.report.comparison import tables as comparison_tables
from stallmark.report.figures import Figure
from stallmark.report.file import write_whole
from stallmark.report.page import banner, page
from stallmark.report.picture import picture_from
from stallmark.report.sections import environment
from stallmark.report.sections.active_set import active_figures
from stallmark.report.style import KeyItem, looks
from stallmark.report.text import comparison as comparison_words


def write_comparison(experiment: ExperimentSummary, found: ComparisonSummary, target: Path) -> Path:
    """Write the report to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render_comparison(experiment, found), target)


def render_comparison(experiment: ExperimentSummary, found: ComparisonSummary) -> str:
    """Return the report as text. `experiment` is the summary of the runs that `found` compares."""
    bars = comparison_charts.bar_figure(experiment, found)
    over_time = comparison_charts.time_figure(experiment, found)
    emulated = {side.name: side.emulated for side in found.sides}
    ratios = [
        comparison_charts.ratio_figure(pair, number, emulated[pair.a] or emulated[pair.b])
        for number, pair in enumerate(found.pairs)
        if pair.primary.ratio is not None
    ]
    active = active_figures(experiment)
    figures: list[Figure] = [bars, *([over_time] if over_time else []), *ratios, *active]
    return page(
        "comparison.html",
        figures,
        _key(found),
        experiment=experiment,
        answer=comparison_words.headline(found),
        picture=picture_from(
            experiment,
            [(g.label, g.side, Point(tuple(g.steps))) for g in comparison_charts.groups(experiment, found)],
            {pair.b for pair in found.pairs if not pair.claim.comparable},
        ),
        lead=[],
        questions=experiment.questions,
        comparison=found,
        headline=_headline(experiment, found),
        banner=banner(experiment),
        bars=bars,
        over_time=over_time,
        ratios=ratios,
        active=active,
        key_items=_key(found),
        tables=comparison_tables,
        words=comparison_words,
        methods=comparison_words.METHODS,
        environment=environment,
    )


def _headline(experiment: ExperimentSummary, found: ComparisonSummary) -> list[str]:
    manifest = experiment.runs[0].manifest
    runs = sum(len(side.runs) for side in found.sides)
    return [
        text
        for text in (
            f"{manifest.server.product} {manifest.server.version}".strip(),
            f"{manifest.workload.name} workload" if manifest.workload.name else "",
            f"{len(found.sides)} sides, {runs} runs",
            f"baseline {found.baseline}",
            f"primary metric {found.pairs[0].primary.name}",
        )
        if text
    ]


def _key(found: ComparisonSummary) -> list[KeyItem]:
    seen = looks([side.name for side in found.sides])
    return [KeyItem(side.name, seen[side.name].colour, None, "bar") for side in found.sides]
