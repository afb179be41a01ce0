"""`stallmark plan`: say how many runs a wanted difference needs."""

from pathlib import Path

import click

from stallmark.cli.common import Command, json_option, out, runs_argument
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option("--difference", default="5%", show_default=True, metavar="PERCENT", help="What is to be shown.")
@json_option
def plan(runs: tuple[Path, ...], difference: str, as_json: bool) -> None:
    """Say how many runs show a wanted difference, from how much the RUNs scatter.

    With the probability of 80 % (power), by the test at 5 %, two-sided, that `compare` uses for such runs.
    """
    from stallmark.analysis.compare.plan import plan_runs
    from stallmark.cli.summaries import summarise_folders
    from stallmark.report.comparison.terminal import planned
    from stallmark.report.in_json import dumped, in_json

    wanted = _share(difference)
    found = plan_runs(summarise_folders(runs).runs, wanted)
    if as_json:
        click.echo(dumped(in_json(found)))
    else:
        out.print(planned(found))


def _share(text: str) -> float:
    from stallmark.quantities import parse_share

    try:
        return parse_share(text)
    except ValueError:
        raise StallmarkError(f"--difference {text!r} is no difference: write it as 5% or 2.5%, above zero.") from None
