"""The way in which every command shows its result: a page in a file, and words in the terminal or JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from stallmark.cli.common import out
from stallmark.report.document import Document
from stallmark.report.in_html import write_page
from stallmark.report.in_json import dumped
from stallmark.report.in_terminal import in_terminal

T = TypeVar("T")


def show(
    summary: T,
    document: Callable[[T], Document],
    values: Callable[[T], dict[str, Any]],
    target: Path | None,
    as_json: bool,
    name: str = "report",
) -> None:
    """Write the document of a summary to `target`, if any, and print it, or its values as JSON. `name` is what the
    command calls its page."""
    made = document(summary) if target or not as_json else None
    if made and target:
        write_page(made, target)
    if as_json:
        click.echo(dumped(values(summary) | {name: target and str(target.resolve())}))
    elif made:
        out.print(in_terminal(made.brief))
        say_where(target, name)


def say_where(target: Path | None, name: str) -> None:
    if target:
        out.print(f"{name.capitalize()}: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
