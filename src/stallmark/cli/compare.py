"""`stallmark compare`: judge the variants of runs already made."""

import sys
from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import err, escape, json_option, out, page_file, print_markup, runs_argument, timezone_option
from stallmark.cli.exit_codes import INCONCLUSIVE, VERDICT
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option("--baseline", metavar="NAME", help="What others are held against [default: the first that ran].")
@click.option(
    "--between", type=click.Choice(["variants", "experiments"]),
    help="What the sides are [default: variants, where there are several].",
)  # fmt: skip
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="The HTML file [default: comparison.html in RUN, none with --json or --markdown -].",
)  # fmt: skip
@click.option("--markdown", metavar="FILE", help="Also a summary for a ticket; - for standard output.")
@click.option(
    "--fail-if", "rule", metavar="RULE",
    help="Exit with 5 if a side is “worse”, “worse by 5 %”, “not better”, “not better by 10 %” or “not within 5 %”, or "
    "has no verdict; with 6 if these runs cannot tell.",
)  # fmt: skip
@timezone_option()
@json_option
def compare(
    runs: tuple[Path, ...], baseline: str | None, between: str | None, target: Path | None, markdown: str | None,
    rule: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare variants over their runs: better, worse, no difference shown, or why that cannot be said.

    RUN is a run's folder or an experiment's; several are taken together. A verdict needs 3 runs of each side.
    """
    from stallmark.analysis.compare.verdicts import compare_runs
    from stallmark.analysis.thresholds import fail_rule
    from stallmark.cli.document import print_path
    from stallmark.cli.summaries import make_each, summarise_each
    from stallmark.report.comparison.document import comparison_document, summary_for_a_ticket
    from stallmark.report.renderers import dumped, in_json, in_terminal, page_beside, refuse_target, write_pages
    from stallmark.report.text.steady import comparison_doubts, comparison_failures

    if as_json and markdown == "-":
        raise StallmarkError("--json and --markdown - both want standard output: give --markdown a file.")
    failing = fail_rule(rule, of_runs=False) if rule is not None else None
    if target:
        refuse_target(target)
    ticket = Path(markdown) if markdown is not None and markdown != "-" else None
    if ticket:
        refuse_target(ticket, replace=False)
    experiments = summarise_each(runs)
    compared, failed = make_each(experiments, lambda experiment: compare_runs(experiment.runs, between, baseline))  # type: ignore[arg-type]
    for name, error in failed.items():
        print_markup(err, escape(f"{name}: {error}"))
    target = target or page_file(runs[0], "comparison.html", for_machines=as_json or markdown == "-")
    pages = {name: page_beside(target, name) if name else target for name in compared} if target else {}
    documents = {name: comparison_document(experiments[name], compared[name]) for name in pages}
    for name, page in pages.items():
        write_pages(documents[name], page)
    text = "\n\n".join(summary_for_a_ticket(comparison, name) for name, comparison in compared.items())
    if markdown == "-":
        click.echo(text)
    elif ticket:
        ticket.parent.mkdir(parents=True, exist_ok=True)
        ticket.write_text(text + "\n", encoding="utf-8")
    if as_json:
        where = {name: str(page.resolve()) for name, page in pages.items()}
        documents_by_name = {
            name: in_json(comparison) | {"report": where.get(name)} for name, comparison in compared.items()
        }
        click.echo(dumped(documents_by_name.get("", {"loads": documents_by_name})))
    elif markdown != "-":
        for name, document in documents.items():
            out.print(*([f"[bold]{escape(name)}[/]\n"] if name else []), in_terminal(document.brief), sep="")
            print_path(pages[name])
    if failing:
        reasons_by_name = {name: comparison_failures(failing, comparison) for name, comparison in compared.items()}
        reasons_by_name |= {name: ["it was not compared"] for name in failed}
        doubts = {name: comparison_doubts(failing, comparison) for name, comparison in compared.items()}
        for word, code, by_name in (("Failed", VERDICT, reasons_by_name), ("Inconclusive", INCONCLUSIVE, doubts)):
            if reasons := [
                f"{name}: {reason}" if name else reason
                for name, reasons_of_name in by_name.items()
                for reason in reasons_of_name
            ]:
                print_markup(err, f"[bold red]{word}:[/] {escape('; '.join(reasons))}.")
                sys.exit(code)
