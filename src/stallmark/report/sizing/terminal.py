"""A sizing in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark.analysis.finding import Severity
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.report.sizing import tables
from stallmark.report.sizing.page import headline
from stallmark.report.table import InTerminal, listed
from stallmark.report.text import sentence
from stallmark.report.text import sizing as words
from stallmark.report.text.device import EMULATED

_STYLES = {"carries": "bold green", "carries_not": "bold red", "open": "bold yellow", "unknown": "bold yellow"}


def sizing_table(found: SizingSummary) -> RenderableType:
    """Return the answers, the candidates, what the stand-in matched, and what was not tested, for a terminal."""
    parts: list[RenderableType] = [Text(", ".join(headline(found)), style="dim")]
    if found.emulated:
        parts.append(Text(EMULATED, style="bold yellow"))
    answers = zip(found.candidates, found.answers, strict=True)
    parts += [Text(""), *(Text(sentence(said), style=_STYLES[one.standing]) for one, said in answers), Text("")]
    parts += [InTerminal(tables.candidates(found)), Text("")]
    played = [Text(sentence(one), style="" if one.severity is Severity.INFO else "yellow") for one in found.played]
    if played:
        parts += [Text(words.PLAYED, style="bold"), listed([("•", one) for one in played]), Text("")]
    parts += [listed([("•", sentence(one)) for one in [*found.findings, *found.memory]])]
    for one in (tables.windows(found), tables.matched(found)):
        if one.rows:
            parts += [Text(""), InTerminal(one)]
    if found.cautions:
        parts += [Text(""), *(Text(f"• {sentence(one)}", style="yellow") for one in found.cautions)]
    parts += [Text(""), Text(words.NOT_TESTED, style="bold"), listed([("•", sentence(one)) for one in found.untested])]
    return Group(*parts)
