"""Several loads in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark.analysis.loads.summary import LoadsSummary
from stallmark.report.loads import tables
from stallmark.report.sections.thresholds import thresholds
from stallmark.report.table import Cell, InTerminal, emulated_devices, listed
from stallmark.report.text import sentence


def loads_table(found: LoadsSummary) -> RenderableType:
    """Return the figures of every load, together against alone, cells, findings and emulated arrays."""
    whole = found.whole
    shown = [tables.figures(found), tables.together(found), tables.cells(found), tables.whole(found)]
    parts: list[RenderableType] = [Text(whole.title, style="bold"), Text(whole.answers, style="dim")]
    for one in filter(None, shown):
        parts += [Text(""), InTerminal(one, one_line=True)]
    if whole.findings:
        parts += [Text(""), listed([("•", sentence(one)) for one in whole.findings])]
    if doubts := tables.doubts_of(found.points):
        parts += [Text(""), listed([(Cell("doubt", "bad"), one) for one in doubts])]
    for name, view in found.loads.items():
        if kept := thresholds(view):
            parts += [Text(""), Text(name, style="bold"), InTerminal(kept, header=False)]
    devices = emulated_devices([step.device for step in whole.steps if step.emulated])
    return Group(*parts, *([Text("")] if devices else []), *devices)
