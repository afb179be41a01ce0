"""The report of a sizing: its sections, the parts that a terminal shows, and its JSON. The answer comes first, for the
one who signs."""

from collections.abc import Iterator
from typing import Any

from stallmark import format
from stallmark.analysis.finding import Finding, Severity
from stallmark.report.document import Document, Facts, Note, Notes, Pairs, Section, Shown, Title, Words, bullets, shown
from stallmark.report.renderers import in_json
from stallmark.report.sections import summary
from stallmark.report.table import Cell
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED
from stallmark.sizing import tables
from stallmark.sizing import wording as words
from stallmark.sizing.candidate import CandidateAnswer
from stallmark.sizing.summary import SizingSummary
from stallmark.sizing.tables import latency_figure

_STYLES = {"carries": "good", "carries_not": "bad", "open": "apart", "unknown": "apart"}
_FIGURES = ("standing", "low", "high", "middle", "emulated", "memory_bytes", "per_s", "replay", "stand_in")


def sizing_document(found: SizingSummary) -> Document:
    headline = [
        text
        for text in (
            words.service_level(found.service_level),
            words.need(found.need.per_s, found.need.multiple),
            f"profile of {format.duration(found.profile.end - found.profile.begin)}" if found.profile else "",
        )
        if text
    ]
    answers = [sentence(answer) for answer in found.answers]
    chart = latency_figure(found)
    candidates = tables.candidates(found)
    played = [Note(Cell("•", _mark(finding)), sentence(finding)) for finding in found.played]
    return Document(
        title=words.TITLE,
        kind="sizing",
        question=words.QUESTION,
        headline=headline,
        banner=words.EMULATED_CANDIDATES if found.emulated else None,
        answer=answers[0],
        lead=[
            *(Words(answer, "answer") for answer in answers[1:]),
            *shown(candidates, "Candidates"),
            *([Title(words.PLAYED), *bullets(found.played)] if found.played else []),
            *([chart] if chart else []),
            Words(words.CANDIDATES, "footnote"),
        ],
        cautions=found.cautions,
        sections=list(_sections(found)),
        brief=[
            [Words(", ".join(headline), "quiet"), *([Words(EMULATED, "emulated")] if found.emulated else [])],
            [
                Words(answer, _STYLES[candidate.standing])
                for candidate, answer in zip(found.candidates, answers, strict=True)
            ],
            [Shown(candidates)],
            [Title(words.PLAYED), Notes(played)] if played else [],
            bullets([*found.findings, *found.memory]),
            *([Shown(table)] for table in (tables.windows(found), tables.matched(found)) if table.rows),
            bullets(found.cautions, "apart"),
            [Title(words.NOT_TESTED), *bullets(found.untested)],
        ],
    )


def _mark(finding: Finding) -> str:
    return "" if finding.severity is Severity.INFO else "apart"


def _sections(found: SizingSummary) -> Iterator[Section]:
    yield Section("untested", words.NOT_TESTED, [Words(words.UNTESTED, "lead"), *bullets(found.untested)])
    if found.findings:
        yield summary.findings_section(found.findings)
    matched = tables.matched(found)
    reached = shown(matched if matched.rows else None, "Wanted and reached", "Wanted and reached", words.MATCHED)
    windows = Shown(tables.windows(found), "The demand")
    yield Section("demand", "The demand", [Words(words.DEMAND, "lead"), windows, *reached])
    if found.memory:
        yield Section("memory", "Memory", bullets(found.memory))
    if levels := tables.levels(found):
        blocks = [block for name, table in levels for block in shown(table, f"Levels of {name}", name)]
        lead = Words(words.LEVELS, "lead")
        yield Section("levels", "Levels of the replay", [lead, *blocks], "every load that was tried")
    facts = Facts([Pairs(pairs, name) for name, pairs in tables.facts(found)])
    yield Section("environment", "Environment", [facts], "servers and records")


def sizing_in_json(found: SizingSummary) -> dict[str, Any]:
    """Return everything that the report shows."""
    return {
        "kind": "sizing",
        "need": in_json(found.need),
        "demand": in_json(found.demand),
        "service_level": in_json(found.service_level),
        "carried": found.carried,
        "candidates": [
            _candidate(one) | {"answer": in_json(said)}
            for one, said in zip(found.candidates, found.answers, strict=True)
        ],
        "today": _candidate(found.today) if found.today else None,
        "profile": str(found.profile.folder) if found.profile else None,
        "findings": in_json(found.findings),
        "memory": in_json(found.memory),
        "cautions": in_json(found.cautions),
        "played": in_json(found.played),
        "untested": in_json(found.untested),
    }


def _candidate(one: CandidateAnswer) -> dict[str, Any]:
    own = one.sizing.candidate
    units = {"cost": own.cost, "watts": own.watts, "rack_units": own.rack_units}
    return {
        "name": one.name,
        "folder": str(one.folder),
        "status": one.sizing.status,
        **{name: in_json(getattr(one, name)) for name in _FIGURES},
        **units,
        **{f"per_s_per_{name}": one.per_s_of(unit) for name, unit in units.items()},
        "matched": in_json(one.sizing.stand_in.matched) if one.sizing.stand_in else None,
    }
