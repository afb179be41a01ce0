"""Runs of queries in a terminal: the figures of each variant, and every query's run time relative to the baseline."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.queries.summary import QueryCell, QueryComparison
from stallmark.analysis.read.queries import PHASES
from stallmark.report.columns import marks
from stallmark.report.labels import step_labels
from stallmark.report.queries.tables import compared, times
from stallmark.report.sections.steadiness import outcomes
from stallmark.report.table import Cell, InTerminal, Rows, Table, emulated_devices, listed, number, word
from stallmark.report.text import queries as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def table(experiment: ExperimentSummary) -> RenderableType:
    """Return the figures for a terminal of any width; text that does not fit is wrapped, and no digit is lost."""
    found = compared(experiment)
    return Group(
        Text(experiment.title, style="bold"),
        Text(experiment.answers, style="dim"),
        Text(""),
        InTerminal(_variants(found)),
        Text(words.figures_in_brief(PHASES[found.phase], found.baseline), style="dim"),
        Text(""),
        InTerminal(_queries(found)),
        *([Text(""), listed(levels)] if (levels := outcomes(experiment)) else []),
        *_below(experiment, found),
    )


def _variants(found: QueryComparison) -> Table:
    return Rows(found.variants).table(
        word("variant", lambda variant: f"{variant.name} {EMULATED}" if variant.emulated else variant.name),
        number("pool", lambda variant: variant.buffer_pool_bytes, format.size),
        number("power", lambda variant: variant.power),
        number("throughput", lambda variant: variant.throughput),
        number("composite", lambda variant: variant.composite),
        number(
            "relative", lambda variant: "baseline" if variant is found.baseline_variant else times(variant.relative)
        ),
    )


def _queries(found: QueryComparison) -> Table:
    """Return the run times. Letters stand for variants, whose names are too long for columns."""
    letters = [chr(ord("A") + number) for number in range(len(found.variants))]
    rows: list[Sequence[str | Cell]] = []
    for query in found.names:
        asked = dict.fromkeys(cell.dop for one in found.variants for cell in one.cells if cell.query == query)
        for dop in asked:
            cells = [_seconds(variant.cell(query, dop), number) for number, variant in enumerate(found.variants)]
            rows.append([query if dop is None else f"{query}, DOP {dop}", *cells])
    return Table(["query", *([f"{letter}\ns" for letter in letters] if len(letters) > 1 else ["s"])], rows)


def _seconds(cell: QueryCell | None, number: int) -> str | Cell:
    if cell is None:
        return format.NONE
    if cell.failed:
        return Cell("failed", "bad")
    relative = f" {times(cell.relative)}" if number and cell.relative else ""
    return f"{format.number(cell.seconds)}{relative}{'*' * cell.plan_changed}"


def _below(experiment: ExperimentSummary, found: QueryComparison) -> Iterator[RenderableType]:
    if len(found.variants) > 1:
        names = [f"{chr(ord('A') + number)}: {variant.name}" for number, variant in enumerate(found.variants)]
        yield Text(words.letters(names), style="dim")
    if any(cell.plan_changed for variant in found.variants for cell in variant.cells):
        yield Text(words.OTHER_PLAN, style="dim")
    blocks = [
        *([listed([("•", sentence(one)) for one in experiment.findings])] if experiment.findings else []),
        *([listed(marked)] if (marked := _marked(experiment)) else []),
        *emulated_devices(variant.device for variant in found.variants if variant.emulated),
    ]
    for block in blocks:
        yield from (Text(""), block)


def _marked(experiment: ExperimentSummary) -> list[tuple[str | Cell, str | Text]]:
    """Return what must be known before a phase's figures are believed, each with its phase."""
    names = step_labels(experiment)
    return [
        (names[step.key], Text.assemble((mark.word, "bold"), f": {mark.sentence}"))
        for step in experiment.steps
        for mark in marks(experiment, step)
    ]
