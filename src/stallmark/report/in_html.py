"""A document as one HTML file that needs no network."""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stallmark.report import style
from stallmark.report.document import Document
from stallmark.report.file import refuse_target, write_whole
from stallmark.report.style import plain
from stallmark.report.svg import svg
from stallmark.report.text import reading
from stallmark.report.text.device import EMULATED

TEMPLATES = Path(__file__).parent / "templates"


def write_pages(document: Document, target: Path) -> list[Path]:
    """Write the page to `target` (created with its folders, replaced whole), those of `pages` beside it; return all."""
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
    found.globals |= {"reading": reading, "emulated_word": EMULATED, "svg": svg}
    return found


def packed(text: str) -> str:
    """Return `text` deflated, as characters that HTML leaves as they are. `report.js` unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def _plotly() -> str:
    return packed((TEMPLATES / "plotly-basic.min.js").read_text(encoding="utf-8"))
