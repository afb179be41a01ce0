"""A document as one HTML file that needs no network."""

import base64
import json
import zlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stallmark.report import style
from stallmark.report.document import Document
from stallmark.report.file import write_whole
from stallmark.report.style import plain
from stallmark.report.text import reading
from stallmark.report.text.device import EMULATED

TEMPLATES = Path(__file__).parent / "templates"


def write_page(document: Document, target: Path) -> Path:
    """Write the page to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render(document), target)


def render(document: Document) -> str:
    """Return the page as text, with everything in it that it needs without a network."""
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
        .get_template("document.html")
        .render(
            document=document,
            figures=Markup(packed(json.dumps({"figures": charts, "template": style.template().to_plotly_json()}))),
            plotly=Markup(_plotly()),
            style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
        )
    )


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("stallmark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["kind"] = lambda block: type(block).__name__
    found.globals |= {"reading": reading, "emulated_word": EMULATED}
    return found


def packed(text: str) -> str:
    """Return `text` deflated, as characters that HTML leaves as they are. `report.js` unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def _plotly() -> str:
    return packed((TEMPLATES / "plotly-basic.min.js").read_text(encoding="utf-8"))
