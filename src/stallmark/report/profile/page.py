"""Write a profile as one HTML file that needs no network."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.report.file import write_whole
from stallmark.report.page import page
from stallmark.report.profile import tables
from stallmark.report.profile.figures import figures
from stallmark.report.text import profile as words
from stallmark.report.text import sentence


@dataclass(frozen=True)
class _Head:
    """The head of a page: its subject, as the base of all pages asks for it."""

    title: str
    findings: Sequence[Finding]
    cautions: Sequence[Finding]
    scenario: str = "profile"
    answers: str = words.QUESTION
    comparison: None = None


def title_of(found: ProfileSummary) -> str:
    server = found.manifest.server
    return f"Profile of {server.name or server.product or 'a server'}"


def write_profile_report(found: ProfileSummary, target: Path) -> Path:
    """Write the report to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render_profile(found), target)


def render_profile(found: ProfileSummary) -> str:
    """Return the report as text."""
    charts = figures(found)
    serious = [one for one in found.cautions if one.severity is not Severity.INFO]
    return page(
        "profile_report.html",
        charts,
        [],
        experiment=_Head(title_of(found), found.findings, serious),
        answer=sentence(found.findings[0]),
        picture=None,
        lead=[],
        variants=[],
        questions=[],
        banner=None,
        headline=[
            f"{found.manifest.server.product} {found.manifest.server.version}".strip() or found.manifest.source,
            f"{format.duration(found.end - found.begin)} from {format.moment(found.begin)}",
            f"{format.share(found.seen_s / (found.end - found.begin))} seen",
        ],
        profile=found,
        charts=charts,
        method=words.method(found.manifest.source, found.manifest.interval_s),
        notes=[*(sentence(one) for one in found.cautions if one.severity is Severity.INFO), *found.manifest.notes],
        tables=tables,
        words=words,
    )
