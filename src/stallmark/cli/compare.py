"""`stallmark compare`: judge the variants of runs already made."""

import sys
from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import (
    err,
    escape,
    json_option,
    junit_option,
    markdown_option,
    out,
    page_file,
    print_markup,
    runs_argument,
    timezone_option,
)
from stallmark.cli.document import STANDARD_OUTPUT, Outputs, print_path
from stallmark.cli.exit_codes import INCONCLUSIVE, VERDICT
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option("--baseline", metavar="NAME", help="Side to compare the others with [default: the first that ran].")
@click.option(
    "--between", type=click.Choice(["variants", "experiments"]),
    help="Kind of the sides to compare [default: variants if there are several].",
)  # fmt: skip
@click.option(
    "--varied", multiple=True, metavar="SETTING",
    help="Server setting that was changed by hand between the sides, by its name in the report.",
)  # fmt: skip
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="HTML file to write [default: comparison.html in RUN, none with --json or --markdown -].",
)  # fmt: skip
@markdown_option
@junit_option
@click.option(
    "--fail-if", "rule", metavar="RULE",
    help="Exit with 5 if a side is “worse”, “worse by 5 %”, “not better”, “not better by 10 %” or “not within 5 %”, or "
    "has no verdict; with 6 if these runs cannot decide.",
)  # fmt: skip
@timezone_option()
@json_option
def compare(
    runs: tuple[Path, ...], baseline: str | None, between: str | None, varied: tuple[str, ...], target: Path | None,
    markdown: str | None, junit: Path | None, rule: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare variants over their runs: better, worse, no difference shown, or not comparable.

    RUN is a run's folder or an experiment's; several are combined. A verdict requires 3 runs of each side.
    """
    from stallmark.analysis.compare.verdicts import compare_runs
    from stallmark.analysis.thresholds import fail_rule
    from stallmark.cli.summaries import make_each, summarise_each
    from stallmark.report.comparison import comparison_document, summary_for_a_ticket
    from stallmark.report.junit import FAIL_IF, Case, comparison_case
    from stallmark.report.renderers import dumped, in_json, in_terminal, page_beside, write_pages

    if junit and rule is None:
        raise StallmarkError("--junit has nothing that could fail: name a rule with --fail-if.")
    failing = fail_rule(rule, of_runs=False) if rule is not None else None
    for_machines = as_json or markdown == STANDARD_OUTPUT
    target = target or page_file(runs[0], "comparison.html", for_machines=for_machines)
    outputs = Outputs(target, as_json, markdown=markdown, junit=junit)
    outputs.refuse()
    experiments = summarise_each(runs)
    compared, failed = make_each(
        experiments,
        lambda experiment: compare_runs(experiment.runs, between, baseline, varied),  # type: ignore[arg-type]
    )
    # One load that cannot be compared does not hide the others; it fails the rule below.
    for name, error in failed.items():
        print_markup(err, escape(f"{name}: {error}"))
    pages = {name: page_beside(target, name) if name else target for name in compared} if target else {}
    documents = {name: comparison_document(experiments[name], compared[name]) for name in pages}
    for name, page in pages.items():
        write_pages(documents[name], page)
    outputs.write_markdown("\n\n".join(summary_for_a_ticket(comparison, name) for name, comparison in compared.items()))
    if as_json:
        where = {name: str(page.resolve()) for name, page in pages.items()}
        documents_by_name = {
            name: in_json(comparison) | {"report": where.get(name)} for name, comparison in compared.items()
        }
        click.echo(dumped(documents_by_name.get("", {"loads": documents_by_name})))
    elif outputs.in_words:
        for name, document in documents.items():
            out.print(*([f"[bold]{escape(name)}[/]\n"] if name else []), in_terminal(document.brief), sep="")
            print_path(pages[name])
    if rule is None or failing is None:
        return
    cases = [comparison_case(failing, rule, comparison, name) for name, comparison in compared.items()]
    cases += [Case(FAIL_IF, f"{name}: {rule}", False, f"{name}: it was not compared") for name in failed]
    outputs.write_junit(cases)
    for word, code, passed in (("Failed", VERDICT, False), ("Inconclusive", INCONCLUSIVE, None)):
        if reasons := [case.reason for case in cases if case.passed is passed]:
            print_markup(err, f"[bold red]{word}:[/] {escape('; '.join(reasons))}.")
            sys.exit(code)
