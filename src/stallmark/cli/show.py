"""The display of experiments and documents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from stallmark.analysis.finding import Finding
from stallmark.cli.common import out
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Show
from stallmark.report.document import Document
from stallmark.report.renderers import dumped, in_terminal, write_pages
from stallmark.report.slide import write_slide
from stallmark.report.text import experiment, sentence


# The display of commands that run experiments: what the experiment tells as facts, in sentences.
class ShowInSentences(Show):
    """A display that has words for findings and estimates."""

    def tell(self, finding: Finding) -> None:
        self.say(sentence(finding))

    def expect(self, expected: Estimate) -> None:
        super().expect(expected)
        runs, sooner = len(expected.runs_s), expected.ends_sooner
        many = f"{'at most ' * expected.chooses}{runs} run{'s' * (runs > 1)}"
        whole = experiment.takes(
            expected.total_s, expected.build_s, at_most=sooner, asks=expected.asks, longest_s=expected.longest_s
        )
        self.say(experiment.before_the_load(many, runs * expected.load_s, whole, at_most=sooner))


# The way in which every command shows its result: a page in a file, and words in the terminal or JSON.

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
        say_where(target, name)
        say_where(slide, "summary")


def say_where(target: Path | None, name: str = "report") -> None:
    if target:
        out.print(f"{name.capitalize()}: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
