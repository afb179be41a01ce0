"""The report of a server's profile: its sections, the parts that a terminal shows, and its JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from stallmark import format
from stallmark.analysis.finding import Severity
from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.report.document import (
    Block,
    Bullets,
    Codes,
    Document,
    Facts,
    Fold,
    Pairs,
    Section,
    Shown,
    Words,
    bullets,
    shown,
)
from stallmark.report.in_json import in_json
from stallmark.report.profile import tables
from stallmark.report.profile.figures import figures
from stallmark.report.sections import findings
from stallmark.report.table import Table
from stallmark.report.text import profile as words
from stallmark.report.text import sentence


def profile_document(found: ProfileSummary) -> Document:
    server, source = found.manifest.server, found.manifest.source
    title = f"Profile of {server.name or server.product or 'a server'}"
    product = f"{server.product} {server.version}".strip()
    serious = [one for one in found.cautions if one.severity is not Severity.INFO]
    notes = [*(sentence(one) for one in found.cautions if one.severity is Severity.INFO), *found.manifest.notes]
    seen = f"{format.duration(found.seen_s)} seen from {format.moment(found.begin)}"
    return Document(
        title=title,
        kind="profile",
        question=words.QUESTION,
        headline=[
            product or source,
            f"{format.duration(found.end - found.begin)} from {format.moment(found.begin)}",
            f"{format.share(found.seen_s / (found.end - found.begin))} seen",
        ],
        answer=sentence(found.findings[0]),
        lead=[tables.heat(found)],
        no_slide=words.NO_SLIDE,
        cautions=serious,
        sections=[findings.section(found.findings), *_sections(found), _environment(found, notes)],
        brief=[
            [Words(title, "main"), Words(", ".join(filter(None, [product, seen])), "quiet")],
            bullets([*found.findings, *found.memory]),
            *([Shown(table)] for table in _brief_tables(found) if table.rows),
            bullets(serious, "apart"),
            [Bullets(notes, "quiet")] if notes else [],
        ],
    )


def _sections(found: ProfileSummary) -> Iterator[Section]:
    def section(id: str, title: str, lead: str, *blocks: Block) -> Section:
        return Section(id, title, [Words(lead, "lead"), *blocks])

    yield section("over-time", "Over time", words.OVER_TIME, *figures(found))
    minutes = "Percentiles of minutes"
    yield section("minutes", minutes, words.PERCENTILES, Shown(tables.percentiles(found), minutes))
    if found.peaks:
        yield section("peaks", "Peaks by measure", words.PEAKS, Shown(tables.peaks(found), "Peaks by measure"))
    if found.windows:
        busiest = "The busiest windows"
        yield section("windows", busiest, words.WINDOWS, Shown(tables.windows(found), busiest))
    if found.classes:
        yield section("io", "I/O by class of file", words.CLASSES, Shown(tables.classes(found), "I/O by class of file"))
    if found.wait_classes:
        types = Fold("By type", shown(tables.waits(found.wait_types), "Waits by type"))
        yield section("waits", "Waits", words.WAITS, Shown(tables.waits(found.wait_classes), "Waits by class"), types)
    if found.memory:
        yield section("memory", "More memory", words.MEMORY, *bullets(found.memory))
    if found.unseen:
        yield section("unseen", "Gaps and restarts", words.UNSEEN, Shown(tables.unseen(found), "Gaps and restarts"))


def _environment(found: ProfileSummary, notes: list[str]) -> Section:
    method = words.method(found.manifest.source, found.manifest.interval_s)
    facts = Facts([Pairs(tables.facts(found), "Profile")])
    footnotes = [Words(text, "footnote") for text in [*notes, method]]
    record = Codes("Record", [found.folder.name])
    return Section("environment", "Environment", [facts, *footnotes, record], "server and profile")


def _brief_tables(found: ProfileSummary) -> Iterator[Table]:
    yield tables.percentiles(found)
    yield tables.classes(found)
    if found.windows:
        yield tables.peaks(found)
        yield tables.windows(found)
    if found.wait_classes:
        yield tables.waits(found.wait_classes)


def profile_in_json(found: ProfileSummary) -> dict[str, Any]:
    """Return everything that the report shows; times in UTC, ISO 8601."""
    return {
        "kind": "profile",
        "folder": str(found.folder),
        "manifest": in_json(found.manifest),
        "begin": _iso(found.begin),
        "end": _iso(found.end),
        "seen_s": found.seen_s,
        "means": in_json(found.means),
        "percentiles_of_minutes": in_json(found.percentiles),
        "hours": tables.hours_in_json(found),
        "busiest_windows": [in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)} for one in found.windows],
        "peaks": {
            str(name): in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)}
            for name, one in found.peaks.items()
        },
        "files": in_json(found.classes),
        "waits": {"classes": in_json(found.wait_classes), "types": in_json(found.wait_types)},
        "unseen": [in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)} for one in found.unseen],
        "findings": in_json(found.findings),
        "memory": in_json(found.memory),
        "cautions": in_json(found.cautions),
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
