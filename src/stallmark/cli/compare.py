"""`stallmark compare`: judge the variants of runs already made."""

import sys
from pathlib import Path

import click

from stallmark.cli.common import VERDICT, Command, err, escape, json_option, out, runs_argument, tell
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option("--baseline", metavar="NAME", help="What others are held against [default: the first that ran].")
@click.option(
    "--between", type=click.Choice(["variants", "experiments"]),
    help="What the sides are [default: variants, where there are several].",
)  # fmt: skip
@click.option(
    "--out", "target", type=click.Path(path_type=Path), help="The HTML file [default: comparison.html in RUN]."
)
@click.option("--markdown", metavar="FILE", help="Also a summary for a ticket; - for standard output.")
@click.option(
    "--fail-if", "rule", metavar="RULE",
    help="Exit with 5 if a side is “worse”, “worse by 5 %”, “not better” or “not better by 10 %”, or has no verdict.",
)  # fmt: skip
@json_option
def compare(
    runs: tuple[Path, ...], baseline: str | None, between: str | None, target: Path | None, markdown: str | None,
    rule: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare variants over their runs: better, worse, no difference shown, or why that cannot be said.

    RUN is a run's folder or an experiment's; several are taken together. A verdict needs 3 runs of each side.
    """
    from stallmark.analysis.compare.verdicts import compare_runs
    from stallmark.cli.fail_if import FailIf
    from stallmark.cli.summaries import summarise_folders
    from stallmark.report.comparison.markdown import summary_for_a_ticket
    from stallmark.report.comparison.page import write_comparison
    from stallmark.report.comparison.terminal import verdicts
    from stallmark.report.file import refuse_target
    from stallmark.report.in_json import dumped, in_json

    if as_json and markdown == "-":
        raise StallmarkError("--json and --markdown - both want standard output: give --markdown a file.")
    failing = FailIf.parse(rule) if rule is not None else None
    if target:
        refuse_target(target)
    ticket = Path(markdown) if markdown is not None and markdown != "-" else None
    if ticket:
        refuse_target(ticket, replace=False)
    experiment = summarise_folders(runs)
    found = compare_runs(experiment.runs, between, baseline)  # type: ignore[arg-type]
    target = target or runs[0] / "comparison.html"
    write_comparison(experiment, found, target)
    if markdown == "-":
        click.echo(summary_for_a_ticket(found))
    elif ticket:
        ticket.parent.mkdir(parents=True, exist_ok=True)
        ticket.write_text(summary_for_a_ticket(found) + "\n", encoding="utf-8")
    if as_json:
        click.echo(dumped(in_json(found) | {"report": str(target.resolve())}))
    elif markdown != "-":
        out.print(verdicts(found))
        out.print(f"Report: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
    if failing:
        for doubt in filter(None, map(failing.doubt, found.pairs)):
            tell(err, escape(doubt))
        if reasons := failing.reasons(found):
            tell(err, f"[bold red]Failed:[/] {escape('; '.join(reasons))}.")
            sys.exit(VERDICT)
