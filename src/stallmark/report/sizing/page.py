"""Write a sizing as one HTML file that needs no network: the answer first, on one page for the one who signs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.finding import Finding
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.report.file import write_whole
from stallmark.report.page import page
from stallmark.report.sizing import tables
from stallmark.report.sizing.figures import latency_figure
from stallmark.report.text import sentence
from stallmark.report.text import sizing as words


@dataclass(frozen=True)
class _Head:
    """The head of a page: its subject, as the base of all pages asks for it."""

    findings: Sequence[Finding]
    cautions: Sequence[Finding]
    title: str = words.TITLE
    scenario: str = "sizing"
    answers: str = words.QUESTION
    comparison: None = None


def write_sizing_report(found: SizingSummary, target: Path) -> Path:
    """Write the report to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render_sizing(found), target)


def render_sizing(found: SizingSummary) -> str:
    """Return the report as text."""
    chart = latency_figure(found)
    return page(
        "sizing_report.html",
        [chart] if chart else [],
        [],
        experiment=_Head(found.findings, found.cautions),
        answer=sentence(found.answers[0]),
        picture=None,
        lead=[],
        variants=[],
        questions=[],
        banner=words.EMULATED_CANDIDATES if found.emulated else None,
        headline=headline(found),
        sizing=found,
        chart=chart,
        tables=tables,
        words=words,
    )


def headline(found: SizingSummary) -> list[str]:
    """Return the parts of the line under the title."""
    level = found.service_level
    return [
        text
        for text in (
            words.service_level(level),
            words.need(found.need.per_s, found.need.multiple),
            f"profile of {format.duration(found.profile.end - found.profile.begin)}" if found.profile else "",
        )
        if text
    ]
