"""`stallmark plan`: show how many runs are needed to show a difference."""

from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import err, escape, json_option, out, print_markup, runs_argument
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option("--difference", default="5%", show_default=True, metavar="PERCENT", help="Difference to be shown.")
@json_option
def plan(runs: tuple[Path, ...], difference: str, as_json: bool) -> None:
    """Show how many runs are needed to show a difference, given the variation between RUNs.

    The number of runs gives a power of 80 % in the two-sided test at the 5 % level that `compare` uses.
    """
    from stallmark.analysis.compare.plan import plan_runs
    from stallmark.cli.summaries import make_each, summarise_each_alike
    from stallmark.report.comparison import plan_in_brief
    from stallmark.report.renderers import dumped, in_json, in_terminal

    wanted = _share(difference)
    plans, failed = make_each(summarise_each_alike(runs), lambda experiment: plan_runs(experiment.runs, wanted))
    for name, error in failed.items():
        print_markup(err, escape(f"{name}: {error}"))
    if as_json:
        click.echo(dumped(in_json(plans.get("", {"loads": plans}))))
        return
    for name, plan in plans.items():
        out.print(*([f"[bold]{escape(name)}[/]\n"] if name else []), in_terminal(plan_in_brief(plan)), sep="")


def _share(text: str) -> float:
    from stallmark.quantities import parse_share

    try:
        return parse_share(text)
    except ValueError:
        raise StallmarkError(
            f"--difference {text!r} is not a difference: write it as 5% or 2.5%, above zero."
        ) from None
