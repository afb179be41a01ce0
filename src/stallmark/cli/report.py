"""`stallmark report`: write the report of run records, from the records alone."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.exit_codes import VERDICT
from stallmark.cli.options import json_option, junit_option, markdown_option, runs_argument, timezone_option
from stallmark.cli.output import STANDARD_OUTPUT, Outputs, err, page_file, print_markup
from stallmark.errors import StallmarkError, WrongOption, as_reason, as_sentence

if TYPE_CHECKING:
    from stallmark.analysis.rules import Rule
    from stallmark.report.results import Case


@click.command(cls=Command)
@runs_argument
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="HTML file to write [default: report.html in RUN, none with --json or --markdown -].",
)  # fmt: skip
@click.option(
    "--summary", "slide", type=click.Path(path_type=Path), help="Also write one page for a slide, as .svg or .png."
)
@markdown_option
@junit_option
@click.option(
    "--fail-if",
    "rule",
    metavar="RULE",
    help="Exit with 5 if “enough above 4GiB” (memory) or “ceiling below 200 users” applies, or cannot be decided.",
)
@timezone_option()
@json_option
def report(
    runs: tuple[Path, ...], target: Path | None, slide: Path | None, markdown: str | None, junit: Path | None,
    rule: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the report of records of any kind, from the records alone."""
    from stallmark.analysis.rules import fail_rule
    from stallmark.report.results import FAIL_IF

    failing = None if rule is None else fail_rule(rule, of_runs=True)
    name = "report.html" if len(runs) == 1 else "report-of-several.html"  # the first has one of its own
    page = target or page_file(runs[0], name, for_machines=as_json or markdown == STANDARD_OUTPUT)
    outputs = Outputs(page, as_json, slide, markdown, junit)
    outputs.refuse()
    cases = show_report(runs, outputs, failing, rule or "")
    outputs.write_junit(cases)
    if failed := [case.reason for case in cases if case.group == FAIL_IF and not case.passed]:
        print_markup(err, f"[bold red]Failed:[/] {escape('; '.join(failed))}.")
        sys.exit(VERDICT)


@contextmanager
def reporting(
    report: Callable[[], object], can_report: Callable[[], bool], say: Callable[[str], None]
) -> Iterator[None]:
    """Make a report at the end of work. Work that ends early has one if `can_report`."""
    try:
        yield
    except BaseException:
        if can_report():
            report_if_possible(report, say)
        raise
    report()


def report_if_possible(report: Callable[[], object], say: Callable[[str], None]) -> None:
    """Make the report of work that ended early. An error of the report is only shown: why the work ended matters
    more."""
    try:
        report()
    except (StallmarkError, OSError) as error:
        say(f"There is no report: {as_sentence(as_reason(error))}")


def show_report(
    runs: Sequence[Path], outputs: Outputs, failing: "Rule | None" = None, written: str = ""
) -> "list[Case]":
    """Show the report of the records in `runs`, and return its limits, including the `failing` rule with its text as
    `written`.
    """
    from stallmark.analysis.experiment import common_kind
    from stallmark.cli.summaries import on_all_cores
    from stallmark.record.reader import find_records, other_kind
    from stallmark.report.kinds import find_kind
    from stallmark.report.results import experiment_cases, run_case
    from stallmark.report.text.experiment import NO_SLIDE

    folder, other = next(((run, name) for run in runs if (name := other_kind(run))), (runs[0], None))
    records = [] if other else find_records(runs)
    name = other or common_kind(records)
    if not (kind := find_kind(name)):
        raise StallmarkError(
            f"{folder} is a {name}, which this installation does not support: report it with a complete installation."
        )
    # Runs with a search may have several loads and still have a ceiling.
    if failing and not kind.has_curves and not any(record.manifest.search for record in records):
        raise WrongOption(
            f"--fail-if applies to memory curves and ceilings, and this kind of record ({name}) has none: leave it out."
        )
    if other and outputs.junit:
        raise WrongOption(f"--junit is of runs, and this is a {name}: leave it out.")
    if outputs.slide and not kind.has_slide:
        raise WrongOption(NO_SLIDE)
    if other and len(runs) > 1:
        raise StallmarkError(f"{folder} is a {name}: {kind.alone}.")
    summary = kind.summarise(folder) if other else on_all_cores(records, kind.summarise)
    outputs.show(summary, kind.document, kind.in_json)
    experiments = kind.experiments(summary)
    cases = [case for load, experiment in experiments.items() for case in experiment_cases(experiment, load)]
    findings = [finding for experiment in experiments.values() for finding in experiment.findings]
    return [*cases, *([run_case(failing, written, findings)] if failing else [])]
