"""How a load reads, in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark.analysis.locality.summary import Locality
from stallmark.report.locality import tables
from stallmark.report.locality.page import headline, shown_tables, title_of
from stallmark.report.table import InTerminal, listed
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def locality_table(found: Locality) -> RenderableType:
    """Return findings, tables and cautions for a terminal."""
    parts: list[RenderableType] = [Text(title_of(found), style="bold"), Text(", ".join(headline(found)), style="dim")]
    if found.experiment.emulated:
        parts.append(Text(EMULATED, style="bold yellow"))
    parts += [Text(""), listed([("•", sentence(one)) for one in found.findings])]
    for title, make in shown_tables(found):
        parts += [Text(""), Text(title, style="italic"), InTerminal(make(found))]
    if found.published:
        parts += [Text(""), InTerminal(tables.published(found))]
    if found.cautions:
        parts += [Text(""), *(Text(f"• {sentence(one)}", style="yellow") for one in found.cautions)]
    return Group(*parts)
