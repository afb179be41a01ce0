"""`stallmark report`: write the report of run records, from the records alone."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallmark import capabilities
from stallmark.cli.command import Command
from stallmark.cli.exit_codes import VERDICT
from stallmark.cli.options import json_option, junit_option, markdown_option, runs_argument, timezone_option
from stallmark.cli.output import STANDARD_OUTPUT, Outputs, err, escape, page_file, print_markup
from stallmark.errors import StallmarkError, as_reason, as_sentence

if TYPE_CHECKING:
    from stallmark.analysis.thresholds import Rule
    from stallmark.record.reader import Record
    from stallmark.report.exports import Case


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
    """Write the report of run records, a server's profile or a sizing, from the records alone."""
    from stallmark.analysis.thresholds import fail_rule
    from stallmark.record.reader import other_kind
    from stallmark.report.exports import FAIL_IF

    failing = None if rule is None else fail_rule(rule, of_runs=True)
    name = "report.html" if len(runs) == 1 else "report-of-several.html"  # the first has one of its own
    page = target or page_file(runs[0], name, for_machines=as_json or markdown == STANDARD_OUTPUT)
    outputs = Outputs(page, as_json, slide, markdown, junit)
    outputs.refuse()
    for run in runs:
        if kind := other_kind(run):
            if failing or junit:
                raise StallmarkError(
                    f"{'--fail-if' if failing else '--junit'} is of runs, and this is a {kind}: leave it out."
                )
            if slide:
                raise StallmarkError(f"A {kind} has no summary for a slide.")
            _show_other_kind(kind, run, runs, outputs)
            return
    cases = show_report(runs, outputs, failing, rule or "")
    outputs.write_junit(cases)
    if failed := [case.reason for case in cases if case.group == FAIL_IF and not case.passed]:
        print_markup(err, f"[bold red]Failed:[/] {escape('; '.join(failed))}.")
        sys.exit(VERDICT)


def _show_other_kind(kind: str, folder: Path, runs: Sequence[Path], outputs: Outputs) -> None:
    """Show a record in `folder`, one of `runs`, that is not a run. Raise StallmarkError if its kind is unknown."""
    if kind == "profile":
        if len(runs) > 1:
            raise StallmarkError(f"{folder} is a profile: name it alone.")
        show_profile(folder, outputs)
    elif show := capabilities.part(kind, "report"):
        show(runs, outputs)
    else:
        raise StallmarkError(
            f"{folder} is a {kind}, which this installation does not support: report it with a complete installation."
        )


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
    from stallmark.analysis.experiment import summarise
    from stallmark.analysis.loads import has_loads, summarise_loads
    from stallmark.cli.summaries import on_all_cores
    from stallmark.record.reader import find_records
    from stallmark.report.experiment import experiment_document, experiment_in_json
    from stallmark.report.exports import experiment_cases, run_case
    from stallmark.report.loads import loads_document, loads_in_json
    from stallmark.report.text.experiment import NO_SLIDE

    records = find_records(runs)
    # Runs with a search may have several loads and still have a ceiling.
    searched = any(record.manifest.search for record in records)
    is_probe = any(record.is_probe for record in records)
    if failing and (is_probe or (has_loads(records) and not searched)):
        raise StallmarkError(
            "--fail-if applies to memory curves and ceilings, and these runs have neither: leave it out."
        )
    if outputs.slide and is_probe:
        raise StallmarkError("A probe has no summary for a slide: it has no transactions.")
    if outputs.slide and all(record.manifest.kind == "queries" for record in records):
        raise StallmarkError(NO_SLIDE)
    if is_probe:
        _show_probes(records, outputs)
        return []
    if has_loads(records):
        loads = on_all_cores(records, summarise_loads)
        outputs.show(loads, loads_document, loads_in_json)
        cases = [case for name, view in loads.loads.items() for case in experiment_cases(view, name)]
        findings = [finding for view in loads.loads.values() for finding in view.findings]
    else:
        summary = on_all_cores(records, summarise)
        outputs.show(summary, experiment_document, experiment_in_json)
        cases, findings = list(experiment_cases(summary)), summary.findings
    return [*cases, *([run_case(failing, written, findings)] if failing else [])]


def _show_probes(records: Sequence["Record"], outputs: Outputs) -> None:
    from stallmark.analysis.probe import summarise_probes
    from stallmark.report.probe import probe_document, probes_in_json

    outputs.show(summarise_probes(records), probe_document, probes_in_json)


def show_profile(folder: Path, outputs: Outputs) -> None:
    """Show the report of a profile."""
    from stallmark.analysis.profile import summarise_profile
    from stallmark.report.profile import profile_document, profile_in_json

    outputs.show(summarise_profile(folder), profile_document, profile_in_json)
