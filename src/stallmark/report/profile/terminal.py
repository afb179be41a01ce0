"""A profile in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.finding import Severity
from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.report.profile import tables
from stallmark.report.profile.page import title_of
from stallmark.report.table import InTerminal, listed
from stallmark.report.text import sentence


def profile_table(found: ProfileSummary) -> RenderableType:
    """Return findings, percentiles, I/O, windows, waits and cautions for a terminal."""
    server = found.manifest.server
    seen = f"{format.duration(found.seen_s)} seen from {format.moment(found.begin)}"
    about = f"{server.product} {server.version}, {seen}".strip(" ,")
    parts: list[RenderableType] = [Text(title_of(found), style="bold"), Text(about, style="dim"), Text("")]
    parts.append(listed([("•", sentence(one)) for one in [*found.findings, *found.memory]]))
    shown = [tables.percentiles(found), tables.classes(found)]
    shown += [tables.peaks(found), tables.windows(found)] if found.windows else []
    shown += [tables.waits(found.wait_classes)] if found.wait_classes else []
    for one in shown:
        if one.rows:
            parts += [Text(""), InTerminal(one)]
    if serious := [one for one in found.cautions if one.severity is not Severity.INFO]:
        parts += [Text(""), *(Text(f"• {sentence(one)}", style="yellow") for one in serious)]
    others = [sentence(one) for one in found.cautions if one.severity is Severity.INFO]
    if others := [*others, *found.manifest.notes]:
        parts += [Text(""), *(Text(f"• {one}", style="dim") for one in others)]
    return Group(*parts)
