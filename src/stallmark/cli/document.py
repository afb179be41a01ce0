"""The way in which every command shows its result: a page in a file, and words in the terminal or JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from stallmark.cli.common import out
from stallmark.report.document import Document
from stallmark.report.renderers import dumped, in_terminal, write_pages
from stallmark.report.slide import write_slide

T = TypeVar("T")


def show(
    summary: T,
    make: Callable[[T], Document],
    values: Callable[[T], dict[str, Any]],
    target: Path | None,
    as_json: bool,
    slide: Path | None = None,
    name: str = "report",
) -> None:
    """Write the document of a summary to `target` and its picture to `slide`, each if given, and print it, or its
    values as JSON. `name` is what the command calls its page."""
    document = make(summary) if target or slide or not as_json else None
    if document and slide:
        write_slide(document, slide)
    pages = write_pages(document, target) if document and target else []
    if as_json:
        own, *others = [str(page.resolve()) for page in pages] or [""]
        beside = {f"{name}s": dict(zip(document.pages, others, strict=True))} if document and others else {}
        click.echo(dumped(values(summary) | {name: own or None} | beside))
    elif document:
        out.print(in_terminal(document.brief))
        print_path(target, name)
        print_path(slide, "summary")


def print_path(target: Path | None, name: str = "report") -> None:
    if target:
        out.print(f"{name.capitalize()}: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
