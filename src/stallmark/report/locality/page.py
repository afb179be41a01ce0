"""Write how a load reads as one HTML file that needs no network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.finding import Finding
from stallmark.analysis.locality.summary import Locality
from stallmark.report.file import write_whole
from stallmark.report.locality import tables
from stallmark.report.locality.figures import figures
from stallmark.report.page import banner, page
from stallmark.report.sections import environment
from stallmark.report.table import Table
from stallmark.report.text import locality as words
from stallmark.report.text import sentence


@dataclass(frozen=True)
class _Head:
    """The head of a page: its subject, as the base of all pages asks for it."""

    title: str
    findings: Sequence[Finding]
    cautions: Sequence[Finding]
    scenario: str = "characterise"
    answers: str = words.QUESTION
    comparison: None = None


def title_of(found: Locality) -> str:
    return f"How {found.workload} reads"


def headline(found: Locality) -> list[str]:
    """Return the parts of the line under the title: server, scale, users, data, start."""
    manifest, step = found.manifest, found.experiment.steps[0]
    scale = ", ".join(f"{name} {format.exact(value)}" for name, value in manifest.workload.scale.items())
    return [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        scale,
        format.users(step.users),
        f"{format.size(found.data_bytes)} of data",
        format.moment(manifest.started),
    ]


def shown_tables(found: Locality) -> list[tuple[str, Callable[[Locality], Table]]]:
    """Return the tables that there are figures for, with their titles."""
    shown: list[tuple[str, Callable[[Locality], Table]]] = []
    if found.pools:
        shown.append(("Reads per transaction", tables.pools))
    if found.traced:
        shown += [("LRU flash behind the pool", tables.flash), ("Skew", tables.skew), ("Tables", tables.tables)]
    if found.by_transaction:
        shown.append(("Transactions", tables.transactions))
    if found.traced or found.io:
        shown.append(("I/O", tables.io))
    return shown


def write_locality(found: Locality, target: Path) -> Path:
    """Write the page to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render_locality(found), target)


def render_locality(found: Locality) -> str:
    """Return the page as text."""
    charts = {one.id: one for one in figures(found)}
    return page(
        "locality_report.html",
        charts.values(),
        [],
        experiment=_Head(title_of(found), found.findings[1:], found.cautions),
        answer=sentence(found.findings[0]) if found.findings else words.NO_FINDING,
        picture=None,
        lead=[],
        variants=[],
        questions=[],
        banner=banner(found.experiment),
        headline=headline(found),
        found=found,
        charts=charts,
        tables=tables,
        environment=environment,
        words=words,
    )
