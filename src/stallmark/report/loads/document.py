"""The report of several loads: all of them on one page, and beside it one for each load of users."""

from typing import Any

from stallmark.analysis.loads.summary import LoadsSummary
from stallmark.report.document import (
    Block,
    Brief,
    Bullets,
    Document,
    Drawn,
    Fold,
    Links,
    Note,
    Notes,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    known,
    shown,
)
from stallmark.report.experiment import experiment_document, experiment_in_json
from stallmark.report.in_json import in_json
from stallmark.report.loads import tables
from stallmark.report.loads.picture import picture_of_loads
from stallmark.report.sections import array, environment, errors, findings, server
from stallmark.report.sections.head import answer_of, banner, emulated_devices, headline
from stallmark.report.sections.thresholds import thresholds
from stallmark.report.table import Cell
from stallmark.report.text import loads as words
from stallmark.report.text import sentence


def loads_document(found: LoadsSummary) -> Document:
    whole, picture = found.whole, picture_of_loads(found)
    return Document(
        title=whole.title,
        kind=whole.scenario,
        question=whole.answers,
        headline=[text for text in headline(whole) if not text.endswith(" users")],
        banner=banner(whole),
        answer=answer_of(whole),
        lead=[
            Drawn(picture, words.PICTURE) if picture else Words(words.NO_PICTURE),
            Links(words.OWN_PAGES, list(found.loads)),
        ],
        no_slide=words.NO_SLIDE,
        cautions=whole.cautions,
        sections=known(
            Section(
                "loads",
                "Every load by step",
                shown(tables.figures(found), "Throughput, latency and reads of every load, by step"),
            ),
            Section(
                "together", "Together against alone", shown(tables.together(found), "Every load together and alone")
            ),
            Section(
                "cells",
                "By cells",
                shown(tables.cells(found), "Throughput, scaling and service level of every load by cells"),
            ),
            Section(
                "whole",
                "Device, host and reads, all loads together",
                shown(tables.whole(found), "Device, host and reads by step"),
            ),
            _findings(found),
            array.section(whole),
            server.section(whole, "the transactions"),
            Section("consistency", "Consistency", errors.consistency_blocks(whole), "the data after each run"),
            environment.section(whole),
        ),
        brief=_brief(found),
        pages={name: experiment_document(view) for name, view in found.loads.items()},
    )


def _findings(found: LoadsSummary) -> Section:
    blocks: list[Block] = []
    for name, view in found.loads.items():
        for pair in view.comparison.pairs if view.comparison else ():
            blocks += [Title(f"{name}, {pair.step}"), findings.verdict(pair)]
    verdicts = [Fold("Verdicts, load by load", blocks, printed=True)] if blocks else []
    texts = [sentence(finding) for finding in found.whole.findings]
    return Section("findings", "Findings", [*([Bullets(texts, "findings", True)] if texts else []), *verdicts])


def _brief(found: LoadsSummary) -> Brief:
    whole = found.whole
    doubts = [Note(Cell("doubt", "bad"), doubt) for doubt in tables.doubts_of(found.points)]
    kept: list[list[Block]] = [
        [Title(name), Shown(table, header=False)] for name, view in found.loads.items() if (table := thresholds(view))
    ]
    return [
        [Words(whole.title, "main"), Words(whole.answers, "quiet")],
        *(
            [Shown(table, one_line=True)]
            for table in (tables.figures(found), tables.together(found), tables.cells(found), tables.whole(found))
            if table
        ),
        bullets(whole.findings),
        [Notes(doubts)] if doubts else [],
        *kept,
        emulated_devices([step.device for step in whole.steps if step.emulated]),
    ]


def loads_in_json(found: LoadsSummary) -> dict[str, Any]:
    """Return every load of users as an experiment of its own, and what belongs to all loads."""
    points = [
        in_json(point.first) | {"runs": [in_json(run) for run in point.runs], "rate": in_json(point.rate)}
        for point in found.points
    ]
    return {
        **{name: in_json(getattr(found.whole, name)) for name in _OF_ALL},
        "loads": {name: experiment_in_json(view) for name, view in found.loads.items()},
        "overview": {
            "points": points,
            "penalties": in_json(found.penalties),
            "cells": [
                {
                    "variant": step.variant,
                    "cells": step.cells,
                    "met": step.met,
                    "loads": [
                        {"load": x.load, "rate": in_json(x.point.rate), "scaling": x.scaling} for x in step.loads
                    ],
                }
                for step in found.cells
            ],
            "steps": [in_json(run) for point in found.steps for run in point.runs],
        },
        "reports": {},
    }


_OF_ALL = ("scenario", "title", "answers", "emulated", "answer", "findings", "cautions")
