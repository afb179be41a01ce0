"""`stallmark report`: make the report of run records, from the records alone."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallmark import capabilities
from stallmark.cli.command import Command
from stallmark.cli.common import err, escape, json_option, page_file, print_markup, runs_argument, timezone_option
from stallmark.cli.exit_codes import VERDICT
from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from stallmark.analysis.finding import Finding
    from stallmark.record.reader import Record
    from stallmark.rules import Rule


@click.command(cls=Command)
@runs_argument
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="The HTML file [default: report.html in RUN, none with --json].",
)  # fmt: skip
@click.option("--summary", "slide", type=click.Path(path_type=Path), help="Also one page for a slide, as .svg or .png.")
@click.option(
    "--fail-if",
    "rule",
    metavar="RULE",
    help="Exit with 5 if “enough above 4GiB” (of memory), or “ceiling below 200 users”; also if neither is shown.",
)
@timezone_option()
@json_option
def report(
    runs: tuple[Path, ...], target: Path | None, slide: Path | None, rule: str | None, as_json: bool
) -> None:  # fmt: skip
    """Make the report of run records, a server's profile or a sizing, from what was recorded alone."""
    from stallmark.analysis.thresholds import fail_rule
    from stallmark.record.reader import other_kind
    from stallmark.report.renderers import refuse_target

    failing = None if rule is None else fail_rule(rule, of_runs=True)
    if target:
        refuse_target(target)
    if slide:
        from stallmark.report.slide import refuse_slide

        refuse_slide(slide)
    name = "report.html" if len(runs) == 1 else "report-of-several.html"  # the first has one of its own
    target = target or page_file(runs[0], name, for_machines=as_json)
    for run in runs:
        if kind := other_kind(run):
            if failing:
                raise StallmarkError(
                    f"--fail-if is of a curve of memory or a ceiling of runs, and this is a {kind}: omit it."
                )
            if slide:
                raise StallmarkError(f"A {kind} has no summary for a slide.")
            _show_other_kind(kind, run, runs, target, as_json)
            return
    show_report(runs, target, as_json, slide, failing)


def _show_other_kind(kind: str, folder: Path, runs: Sequence[Path], target: Path | None, as_json: bool) -> None:
    """Show the record of another kind than a run in a folder, one of `runs`. Raise StallmarkError if that cannot be."""
    if kind == "profile":
        if len(runs) > 1:
            raise StallmarkError(f"{folder} is a profile: make a report of it alone.")
        show_profile(folder, target, as_json)
    elif show := capabilities.part(kind, "report"):
        show(runs, target, as_json)
    else:
        raise StallmarkError(f"{folder} is a {kind}, which this Stallmark lacks: make its report with one that has it.")


def show_report(
    runs: Sequence[Path], target: Path | None, as_json: bool, slide: Path | None = None, failing: "Rule | None" = None
) -> list[str]:
    """Write the report of the records in `runs` to `target` and one page to `slide`, each if given; print its table,
    or JSON. Exit where the `failing` rule says so.

    Return why thresholds were not kept; empty if all were.
    """
    from stallmark.analysis.experiment import summarise
    from stallmark.analysis.loads.summary import has_loads, summarise_loads
    from stallmark.cli.document import show
    from stallmark.cli.summaries import on_all_cores
    from stallmark.record.reader import find_records
    from stallmark.report.experiment import experiment_document, experiment_in_json
    from stallmark.report.loads.document import loads_document, loads_in_json
    from stallmark.report.sections.validity import failures
    from stallmark.report.text.experiment import NO_SLIDE

    records = find_records(runs)
    searched = any(record.manifest.search for record in records)
    is_probe = any(record.is_probe for record in records)
    if failing and (is_probe or (has_loads(records) and not searched)):
        raise StallmarkError("--fail-if is of a curve of memory or a ceiling, and these runs have none: leave it out.")
    if slide and is_probe:
        raise StallmarkError("A probe has no summary for a slide: it has no transactions.")
    if slide and all(record.manifest.kind == "queries" for record in records):
        raise StallmarkError(NO_SLIDE)
    if is_probe:
        _show_probes(records, target, as_json)
        return []
    if has_loads(records):
        loads = on_all_cores(records, summarise_loads)
        show(loads, loads_document, loads_in_json, target, as_json, slide)
        _fail(failing, [finding for view in loads.loads.values() for finding in view.findings])
        return [f"{name}: {reason}" for name, view in loads.loads.items() for reason in failures(view)]
    summary = on_all_cores(records, summarise)
    show(summary, experiment_document, experiment_in_json, target, as_json, slide)
    _fail(failing, summary.findings)
    return failures(summary)


def _fail(failing: "Rule | None", findings: Sequence["Finding"]) -> None:
    """Exit where the rule says so."""
    from stallmark.report.text.steady import run_failure

    if failing and (reason := run_failure(failing, findings)):
        print_markup(err, f"[bold red]Failed:[/] {escape(reason)}.")
        sys.exit(VERDICT)


def _show_probes(records: Sequence["Record"], target: Path | None, as_json: bool) -> None:
    from stallmark.analysis.probe.experiment import summarise_probes
    from stallmark.cli.document import show
    from stallmark.report.probe.document import probe_document, probes_in_json

    show(summarise_probes(records), probe_document, probes_in_json, target, as_json)


def show_profile(folder: Path, target: Path | None, as_json: bool) -> None:
    """Write the report of a profile to `target`, if any, and print its tables, or JSON."""
    from stallmark.analysis.profile.summary import summarise_profile
    from stallmark.cli.document import show
    from stallmark.report.profile import profile_document, profile_in_json

    show(summarise_profile(folder), profile_document, profile_in_json, target, as_json)
