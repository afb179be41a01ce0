"""The report of a sizing: its sections, the parts that a terminal shows, and its JSON. The answer comes first, for the
person who signs."""

from collections.abc import Iterator
from typing import Any

from stallmark import format
from stallmark.analysis.finding import Finding, Severity
from stallmark.report.document import (
    Document,
    Facts,
    Note,
    Notes,
    Pairs,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    table_blocks,
)
from stallmark.report.renderers import in_json
from stallmark.report.sections.summary import findings_section
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


def sizing_document(sizing: SizingSummary) -> Document:
    headline = [
        text
        for text in (
            words.service_level(sizing.service_level),
            words.need(sizing.need.per_s, sizing.need.multiple),
            f"profile of {format.duration(sizing.profile.end - sizing.profile.begin)}" if sizing.profile else "",
        )
        if text
    ]
    answers = [sentence(answer) for answer in sizing.answers]
    chart = latency_figure(sizing)
    candidates = tables.candidates_table(sizing)
    # A peak that was not played makes the answer open, so it is marked.
    played = [Note(Cell("•", _mark(finding)), sentence(finding)) for finding in sizing.played]
    return Document(
        title=words.TITLE,
        kind="sizing",
        question=words.QUESTION,
        headline=headline,
        banner=words.EMULATED_CANDIDATES if sizing.emulated else None,
        answer=answers[0],
        lead=[
            *(Words(answer, "answer") for answer in answers[1:]),
            *table_blocks(candidates, "Candidates"),
            *([Title(words.PLAYED), *bullets(sizing.played)] if sizing.played else []),
            *([chart] if chart else []),
            Words(words.CANDIDATES, "footnote"),
        ],
        cautions=sizing.cautions,
        sections=list(_sections(sizing)),
        brief=[
            [Words(", ".join(headline), "quiet"), *([Words(EMULATED, "emulated")] if sizing.emulated else [])],
            [
                Words(answer, _STYLES[candidate.standing])
                for candidate, answer in zip(sizing.candidates, answers, strict=True)
            ],
            [Shown(candidates)],
            [Title(words.PLAYED), Notes(played)] if played else [],
            bullets([*sizing.findings, *sizing.memory]),
            *(
                [Shown(table)]
                for table in (tables.windows_table(sizing), tables.quantities_table(sizing))
                if table.rows
            ),
            bullets(sizing.cautions, "apart"),
            [Title(words.NOT_TESTED), *bullets(sizing.untested)],
        ],
    )


def _mark(finding: Finding) -> str:
    return "" if finding.severity is Severity.INFO else "apart"


def _sections(sizing: SizingSummary) -> Iterator[Section]:
    yield Section("untested", words.NOT_TESTED, [Words(words.UNTESTED, "lead"), *bullets(sizing.untested)])
    if sizing.findings:
        yield findings_section(sizing.findings)
    matched = tables.quantities_table(sizing)
    reached = table_blocks(
        matched if matched.rows else None, "Required and reached", "Required and reached", words.MATCHED
    )
    windows = Shown(tables.windows_table(sizing), "The demand")
    yield Section("demand", "The demand", [Words(words.DEMAND, "lead"), windows, *reached])
    if sizing.memory:
        yield Section("memory", "Memory", bullets(sizing.memory))
    if levels := tables.level_tables(sizing):
        blocks = [block for name, table in levels for block in table_blocks(table, f"Levels of {name}", name)]
        lead = Words(words.LEVELS, "lead")
        yield Section("levels", "Levels of the replay", [lead, *blocks], "every tried load")
    facts = Facts([Pairs(pairs, name) for name, pairs in tables.facts_of_candidates(sizing)])
    yield Section("environment", "Environment", [facts], "servers and records")


def sizing_in_json(sizing: SizingSummary) -> dict[str, Any]:
    """Return everything that the report shows."""
    return {
        "kind": "sizing",
        "need": in_json(sizing.need),
        "demand": in_json(sizing.demand),
        "service_level": in_json(sizing.service_level),
        "carried": sizing.any_carries,
        "candidates": [
            _candidate(candidate) | {"answer": in_json(finding)}
            for candidate, finding in zip(sizing.candidates, sizing.answers, strict=True)
        ],
        "today": _candidate(sizing.today) if sizing.today else None,
        "profile": str(sizing.profile.folder) if sizing.profile else None,
        "findings": in_json(sizing.findings),
        "memory": in_json(sizing.memory),
        "cautions": in_json(sizing.cautions),
        "played": in_json(sizing.played),
        "untested": in_json(sizing.untested),
    }


def _candidate(answer: CandidateAnswer) -> dict[str, Any]:
    own = answer.sizing.candidate
    units = {"cost": own.cost, "watts": own.watts, "rack_units": own.rack_units}
    return {
        "name": answer.name,
        "folder": str(answer.folder),
        "status": answer.sizing.status,
        **{name: in_json(getattr(answer, name)) for name in _FIGURES},
        **units,
        **{f"per_s_per_{name}": answer.per_s_of(unit) for name, unit in units.items()},
        "matched": in_json(answer.sizing.stand_in.matched) if answer.sizing.stand_in else None,
    }
