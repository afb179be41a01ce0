"""The renderers of documents, which know nothing but documents: HTML files, terminals, Markdown, JSON."""

import base64
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.text import Text

from stallmark.analysis.finding import Finding
from stallmark.analysis.step_summary import (
    Bottleneck,
    Latency,
    ServerFigures,
    StepInterval,
    StepValidity,
    StorageFigures,
    Throughput,
    WaitFigures,
)
from stallmark.analysis.validity_gates import Gate
from stallmark.format import NBSP
from stallmark.record.devices import DeviceLabel
from stallmark.redact import markdown
from stallmark.report import figures, refuse_target, write_whole
from stallmark.report.document import Block, Brief, Bullets, Document, Note, Notes, Shown, Title, Verdict, Words
from stallmark.report.figures import plain
from stallmark.report.picture import svg
from stallmark.report.table import STYLES, Cell, InTerminal, in_markdown, listed
from stallmark.report.text import reading, sentence, validity
from stallmark.report.text.device import EMULATED, labelled

# Summaries for machines (`--json`): every value of the analysis, and with each finding its sentence.

GROUPS: dict[type, dict[str, str]] = {
    StepInterval: {},
    Throughput: {},
    Latency: {"mean_ms": "latency_mean_ms", "percentiles_ms": "latency_ms", "judged_ms": "judged_latency_ms"},
    StorageFigures: {
        "data": "data_io",
        "wal": "wal_io",
        "data_device": "device_io",
        "wal_device": "wal_device_io",
        "busy_share": "device_busy_share",
        "late_share": "device_late_share",
        "probe": "raw",
    },
    ServerFigures: {"state": "server_state"},
    WaitFigures: {"share": "wait_share", "top": "top_waits"},
    StepValidity: {},
    Bottleneck: {"is_device": "device_is_bottleneck"},
}
"""The groups of a step's figures, shown at the same level as the step's own. A figure has a longer key if its name is
too general without the group."""


def dumped(value: Any) -> str:
    """Return JSON of what this module made, as every strict reader takes it."""
    return json.dumps(value, allow_nan=False, default=str)


def in_json(value: Any) -> Any:
    """Return a value of the analysis as dicts, lists, texts and numbers, without arrays; None for NaN, which JSON
    lacks."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, DeviceLabel):
        return labelled(value)
    if isinstance(value, Finding):
        facts = in_json(value.facts)
        return {"kind": value.kind, "severity": value.severity, "facts": facts, "sentence": sentence(value)}
    if isinstance(value, Gate):
        words: dict[str, Any] = {"name": value.name, "asks": validity.asks(value), "figure": validity.figure(value)}
        words |= {"allowed": validity.allowed(value), "sentence": sentence(value.failure) if value.failure else None}
        return words | _fields_in_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_in_json(value)
    if isinstance(value, Mapping):
        return {key: in_json(item) for key, item in value.items() if not isinstance(item, np.ndarray)}
    if isinstance(value, list | tuple | set | frozenset):
        return [in_json(item) for item in value]
    # NumPy numbers are not JSON.
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fields_in_json(value: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    keys = GROUPS.get(type(value), {})
    for name in (field.name for field in fields(value)):
        field_value = getattr(value, name)
        result |= (
            _fields_in_json(field_value)
            if type(field_value) in GROUPS
            else in_json({keys.get(name, name): field_value})
        )
    return result


# A document as one HTML file that needs no network.

TEMPLATES = Path(__file__).parent / "templates"


def write_pages(document: Document, target: Path) -> list[Path]:
    """Write the page to `target` (created with its folders, replaced whole), those of `pages` beside it; return all."""
    # All targets are checked before the first file is written.
    beside = {name: page_beside(target, name) for name in document.pages}
    for path in beside.values():
        refuse_target(path)
    links = {name: path.name for name, path in beside.items()}
    own = write_whole(render(document, links), target)
    return [own, *(write_whole(render(document.pages[name]), path) for name, path in beside.items())]


def page_beside(target: Path, name: str) -> Path:
    """Return the file of a page beside another: report-bank.html beside report.html."""
    return target.with_name(f"{target.stem}-{'-'.join(re.findall(r'[a-z0-9]+', name.lower()))}{target.suffix}")


def render(document: Document, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the page as text, with everything in it that it needs without a network. `links` are the files of `pages`,
    by name."""
    charts = {
        f"chart-{figure.id}": figure.plotly
        | {
            "title": plain(figure.title),
            "key": [[plain(item.text), item.colour] for item in figure.key or document.key],
            "columns": figure.columns,
        }
        for figure in document.figures()
    }
    return (
        _templates()
        .get_template("page.html")
        .render(
            document=document,
            links=links,
            figures=Markup(packed(json.dumps({"figures": charts, "template": figures.chart_template()}))),
            plotly=Markup(_plotly()),
            style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
        )
    )


def _with_units(value: Any) -> Any:
    """Return a value for a template, without a line break between a number and its percent sign."""
    return value.replace(" %", f"{NBSP}%") if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("stallmark.report", "templates"),
        autoescape=True,
        # A misspelt name in a template must be an error and not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_with_units,
    )
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.globals |= {"reading": reading, "emulated_word": EMULATED, "svg": svg}
    return environment


def packed(text: str) -> str:
    """Return `text` deflated, as characters that HTML leaves as they are. `report.js` unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def _plotly() -> str:
    return packed((TEMPLATES / "plotly-basic.min.js").read_text(encoding="utf-8"))


# A document in a terminal: as the window gets narrower its tables drop columns, never digits.

_VERDICTS = {
    "better": "bold green",
    "worse": "bold red",
    "no_difference_shown": "bold",
    "indicative_only": "bold yellow",
    "not_comparable": "bold yellow",
}


def in_terminal(brief: Brief) -> RenderableType:
    """Return the parts of a document for any width from about 50 columns, an empty line between them."""
    made: list[RenderableType] = []
    for part in brief:
        if renderables := [renderable for block in part for renderable in _renderables(block)]:
            made += [*([Text("")] if made else []), *renderables]
    return Group(*made)


def _renderables(block: Block) -> Iterator[RenderableType]:
    match block:
        case Words():
            style = STYLES.get(block.kind, "")
            yield Text.assemble((block.strong, "bold"), (block.text, style))
        case Title():
            yield Text(block.text, "bold")
        case Shown():
            if block.table.rows:
                yield InTerminal(block.table, block.one_line, block.widths, block.header)
        case Bullets():
            style = STYLES.get(block.kind, "")
            yield listed([(Cell("•", block.kind), Text(text, style)) for text in block.texts])
        case Notes():
            yield listed([(note.mark, _text(note)) for note in block.items])
        case Verdict():
            yield Text.assemble((block.word.upper(), _VERDICTS[block.value]), "  ", block.text)
        case _:
            raise TypeError(f"A terminal shows no {type(block).__name__}.")


def _text(note: Note) -> Text:
    return Text.assemble((note.word, "bold"), f": {note.text}") if note.word else Text(note.text)


# A document in Markdown, for the summary page of a CI job, a ticket or a pull request.


def document_in_markdown(document: Document) -> str:
    """Return the answer of a document, and the document's parts for a terminal."""
    paragraphs = [f"## {markdown(f'Stallmark: {document.title}')}"]
    if document.banner:
        paragraphs.append(f"**{markdown(document.banner)}**")
    if document.answer:
        paragraphs.append(f"**{markdown(document.answer)}**")
    shown = {document.title, document.answer}
    for block in (block for part in document.brief for block in part):
        if not (isinstance(block, Words) and block.text in shown):
            paragraphs += ["\n".join(lines)] if (lines := list(_markdown_lines(block))) else []
    return "\n\n".join(paragraphs)


def _markdown_lines(block: Block) -> Iterator[str]:
    match block:
        case Words():
            yield (f"**{markdown(block.strong)}** " if block.strong else "") + markdown(block.text)
        case Title():
            yield f"### {markdown(block.text)}"
        case Shown():
            if block.table.rows:
                yield from in_markdown(block.table)
        case Bullets():
            yield from (f"- {markdown(text)}" for text in block.texts)
        case Notes():
            for note in block.items:
                words = f"{note.word}: {note.text}" if note.word else note.text
                yield f"- **{markdown(str(note.mark))}** {markdown(words)}"
        case Verdict():
            yield f"**{markdown(block.word.upper())}** {markdown(block.text)}"
            yield from (f"- {markdown(text)}" for text in block.notes)
        case _:
            raise TypeError(f"Markdown shows no {type(block).__name__}.")
