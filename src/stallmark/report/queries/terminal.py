"""Runs of queries in a terminal: the figures of each variant, and every query's run time beside the baseline's."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stallmark import format
from stallmark.analysis.queries.summary import PHASES, QueryComparison, QueryVariant
from stallmark.analysis.summary import ExperimentSummary
from stallmark.report.labels import EMULATED
from stallmark.report.queries.tables import compared, times
from stallmark.report.terminal_service_level import service_levels
from stallmark.report.text import sentence

GUTTER = 2


def table(experiment: ExperimentSummary) -> RenderableType:
    """A renderable for any width: what does not fit is wrapped, and no digit is lost."""
    found = compared(experiment)
    return Group(
        Text(experiment.title, style="bold"),
        Text(experiment.answers, style="dim"),
        Text(""),
        _variants(found),
        Text(
            "Power, throughput and composite: derived from TPC-H, no QphH. Relative: geometric mean of run times of "
            f"the {PHASES[found.phase]} against {found.baseline}.",
            style="dim",
        ),
        Text(""),
        _queries(found),
        *service_levels(experiment),
        *_below(experiment, found),
    )


def _variants(found: QueryComparison) -> Table:
    result = _table("variant", "pool", "power", "throughput", "composite", "relative")
    for variant in found.variants:
        result.add_row(
            _named(variant),
            format.size(variant.buffer_pool_bytes),
            format.number(variant.power),
            format.number(variant.throughput),
            format.number(variant.composite),
            "baseline" if variant is found.baseline_variant else times(variant.relative),
        )
    return result


def _queries(found: QueryComparison) -> Table:
    """Letters stand for variants: names are too long for columns."""
    letters = [chr(ord("A") + number) for number in range(len(found.variants))]
    several = len(letters) > 1
    result = _table("query", *((f"{letter}\ns" for letter in letters) if several else ["s"]))
    for query in found.names:
        for dop in dict.fromkeys(
            cell.dop for variant in found.variants for cell in variant.cells if cell.query == query
        ):
            cells = [variant.cell(query, dop) for variant in found.variants]
            words: list[str] = []
            for number, cell in enumerate(cells):
                if cell is None:
                    words.append(format.NONE)
                elif cell.failed:
                    words.append("failed")
                else:
                    relative = f" {times(cell.relative)}" if number and cell.relative else ""
                    words.append(f"{format.number(cell.seconds)}{relative}{'*' if cell.plan_changed else ''}")
            result.add_row(query if dop is None else f"{query}, DOP {dop}", *words)
    return result


def _below(experiment: ExperimentSummary, found: QueryComparison) -> Iterator[RenderableType]:
    if len(found.variants) > 1:
        names = [f"{chr(ord('A') + number)}: {variant.name}" for number, variant in enumerate(found.variants)]
        yield Text("; ".join(names) + ". Beside the seconds: relative to A.", style="dim")
    if any(cell.plan_changed for variant in found.variants for cell in variant.cells):
        yield Text("* its plan is another one than in A.", style="dim")
    if experiment.findings:
        yield Text("")
    for finding in experiment.findings:
        yield _item("•", sentence(finding))
    emulated = [variant.device.removeprefix(EMULATED).strip() for variant in found.variants if variant.emulated]
    if emulated:
        yield Text("")
        devices = "; ".join(dict.fromkeys(emulated))
        yield Text.assemble(
            (EMULATED, "bold yellow"), f": {devices}. Service times were injected; no product was measured."
        )


def _table(first: str, *others: str) -> Table:
    result = Table(box=None, padding=(0, GUTTER, 0, 0), pad_edge=False, header_style="bold")
    result.add_column(first, overflow="fold", vertical="bottom")
    for name in others:
        result.add_column(name, justify="right", vertical="bottom")
    return result


def _named(variant: QueryVariant) -> Text:
    return Text.assemble(variant.name, (f" {EMULATED}", "yellow") if variant.emulated else "")


def _item(mark: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(mark, Text(text))
    return grid
