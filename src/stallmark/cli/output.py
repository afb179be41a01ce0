"""The output of commands: words on a terminal, and the result as a page in a file, in words, Markdown or JSON."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from stallmark.errors import WrongOption, as_reason, as_sentence
from stallmark.experiment.progress import Show
from stallmark.redact import visible

# A run checks its outputs before it begins, but imports the libraries that write them only at its end.
if TYPE_CHECKING:
    from stallmark.analysis.finding import Finding
    from stallmark.experiment.estimate import Estimate
    from stallmark.report.document import Document
    from stallmark.report.results import Case

T = TypeVar("T")

STANDARD_OUTPUT = "-"


class Terminal(Console):
    """A console that shows every character of any text: none moves the cursor or changes the colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        # rich would exit with 1, our code for inconsistent data; `one_sentence` exits with 141.
        raise


out = Terminal(emoji=False)  # ":x:" in a path is no picture
err = Terminal(stderr=True, emoji=False)


def progress_console(quiet: bool) -> Terminal:
    """Return the console for progress: standard error, or none."""
    return Terminal(quiet=True) if quiet else err


def print_markup(console: Console, markup: str) -> None:
    """Print a sentence: broken between words on a terminal, in one line in a file or a pipe."""
    console.print(markup, highlight=False, soft_wrap=not console.is_terminal)


def print_plain(sentence: str) -> None:
    """Print plain words on standard error."""
    print_markup(err, escape(sentence))


def item(mark: str, markup: str) -> None:
    """Print a sentence beside its mark; on a terminal it stays there when it takes several lines."""
    # Files and pipes get one line for each item, so that grep finds whole sentences.
    if not out.is_terminal:
        return print_markup(out, f"{mark} {markup}")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(mark, markup)
    out.print(grid, highlight=False)


def page_file(folder: Path, name: str, *, for_machines: bool) -> Path | None:
    """Return the file of a page about `folder` that no option names, or None if the output is for machines."""
    # No folder: what reads it says so, and a page in it would be refused for itself.
    if for_machines or not folder.is_dir():
        return None
    # A run's folder is not changed after the run, so its page is written next to it.
    if (folder / "manifest.json").exists():
        return folder.resolve().with_name(f"{folder.resolve().name}-{name}")
    return folder / name


@dataclass(frozen=True)
class Outputs:
    """The forms of a command's result: words in the terminal, and each other form that it was asked for."""

    page: Path | None = None
    as_json: bool = False
    slide: Path | None = None
    markdown: str | None = None
    """A file, or - for standard output."""
    junit: Path | None = None

    def refuse(self) -> None:
        """Raise StallmarkError for forms that cannot be written, before the work."""
        from stallmark.report import refuse_slide, refuse_target

        if self.as_json and self.markdown == STANDARD_OUTPUT:
            raise WrongOption("--json and --markdown - both want standard output: give --markdown a file.")
        if self.page:
            refuse_target(self.page)
        if self.slide:
            refuse_slide(self.slide)
        if self.markdown is not None and self.markdown != STANDARD_OUTPUT:
            refuse_target(Path(self.markdown), replace=False)
        if self.junit:
            refuse_target(self.junit)

    @property
    def in_words(self) -> bool:
        """Return True if standard output is free for words: neither JSON nor Markdown goes there."""
        return not self.as_json and self.markdown != STANDARD_OUTPUT

    def show(
        self, summary: T, make: "Callable[[T], Document]", values: Callable[[T], dict[str, Any]], name: str = "report"
    ) -> None:
        """Write the document of a summary in every requested form. `name` is the command's word for its page."""
        from stallmark.report.picture import write_slide
        from stallmark.report.renderers import document_in_markdown, dumped, in_terminal, write_pages

        has_document = self.in_words or self.page or self.slide or self.markdown or step_summary()
        document = make(summary) if has_document else None
        if document and self.slide:
            write_slide(document, self.slide)
        pages = write_pages(document, self.page) if document and self.page else []
        if document:
            self.write_markdown(document_in_markdown(document))
        if self.as_json:
            own, *others = [str(page.resolve()) for page in pages] or [""]
            beside = {f"{name}s": dict(zip(document.pages, others, strict=True))} if document and others else {}
            click.echo(dumped(values(summary) | {name: own or None} | beside))
        elif document and self.in_words:
            out.print(in_terminal(document.brief))
            print_path(self.page, name)
            print_path(self.slide, "summary")

    def write_markdown(self, text: str) -> None:
        """Write Markdown to the file or standard output that was asked for, and to the summary of a job on GitHub."""
        if self.markdown == STANDARD_OUTPUT:
            click.echo(text)
        elif self.markdown:
            # Not replaced as a whole file would be: the target may be a pipe or a device.
            target = Path(self.markdown)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"{text}\n", encoding="utf-8")
        if summary := step_summary():
            try:
                # Appended, because other steps of the CI job write to this file too.
                with summary.open("a", encoding="utf-8") as file:
                    file.write(f"{text}\n\n")
            except OSError as error:
                # No option asked for this file, so its loss does not fail a command that has its results.
                print_plain(
                    f"The job's summary (GITHUB_STEP_SUMMARY) lacks this result: {as_sentence(as_reason(error))}"
                )

    def write_junit(self, cases: "Sequence[Case]") -> None:
        """Write the demands on the result to the file that was asked for."""
        from stallmark.report import write_whole
        from stallmark.report.results import in_junit

        if self.junit:
            write_whole(in_junit(cases), self.junit)


def step_summary() -> Path | None:
    """Return the file of a job's summary on GitHub (Actions sets GITHUB_STEP_SUMMARY), or None elsewhere."""
    return Path(name) if (name := os.environ.get("GITHUB_STEP_SUMMARY")) else None


def print_path(target: Path | None, name: str = "report") -> None:
    if target:
        out.print(f"{name.capitalize()}: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)


class ShowInSentences(Show):
    """A display that has words for findings and estimates."""

    def tell(self, finding: "Finding") -> None:
        from stallmark.report.text import sentence

        self.say(sentence(finding))

    def expect(self, expected: "Estimate") -> None:
        from stallmark.report.text import experiment

        super().expect(expected)
        runs, sooner = len(expected.runs_s), expected.ends_sooner
        many = f"{'at most ' * expected.chooses}{runs} run{'s' * (runs > 1)}"
        whole = experiment.takes(
            expected.total_s, expected.build_s, at_most=sooner, asks=expected.asks, longest_s=expected.longest_s
        )
        self.say(experiment.work_and_duration(many, runs * expected.load_s, whole, at_most=sooner))
