"""`stallmark build`: build a database, or complete one whose build was interrupted."""

import json
import os

import click

from stallmark.cli.command import Command
from stallmark.cli.common import (
    escape,
    json_option,
    out,
    print_markup,
    progress_console,
    quiet_option,
    target_options,
    workload_options,
)
from stallmark.experiment.progress import Show, show_build


@click.command(cls=Command)
@workload_options()
@target_options
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=None,
    help="Number of loader processes [default: the number of cores].",
)
@click.option(
    "--part", metavar="K/N", help="Share to load on this machine, such as 1/3, when several machines load the database."
)
@quiet_option
@json_option
def build(choice, scenario, target, workers: int | None, part: str | None, quiet: bool, as_json: bool) -> None:
    """Build a database, or complete one whose build was interrupted.

    WORKLOAD is {workloads}. bank+mail is several workloads in one database, and bank,mail one database for each. Or it
    is a scenario: its database is built with the placement that the scenario sets.
    """
    from stallmark.experiment.target import arrangement, locations
    from stallmark.loaders import databases, ledger
    from stallmark.loaders.plan import BatchShare
    from stallmark.record.manifest.workload import trade_history
    from stallmark.report.text.terms import depth
    from stallmark.schema.deploy import telling_blockers
    from stallmark.transactions import find_workload

    share = BatchShare.parse(part) if part else None
    show = Show(progress_console(quiet))
    with target.engine(choice, scenario) as engine:
        for sentence in locations(engine):
            show.say(sentence)
        with show_build(show, f"Building {choice}") as progress, telling_blockers(engine, show.say):
            result = databases.build(
                engine, find_workload(choice.name), choice.scale, choice.seed,
                workers=workers or os.cpu_count() or 1, part=share, arrange=arrangement(engine, scenario),
                progress=progress,
            )  # fmt: skip
        # Shown, because compressible pages would flatter arrays that compress.
        ratio = entry.compressibility if (entry := ledger.read(engine)) else None
    history = trade_history(choice.name, choice.scale)
    if as_json:
        trades = {"trades_per_account": history.trades_per_account} if history else {}
        click.echo(json.dumps(vars(result) | {"compressibility": ratio, "scale": choice.scale} | trades))
    else:
        rest = "" if result.complete else " Other parts are still to be loaded."
        pages = f" Its pages are compressible {ratio:.1f} to 1 (LZ4)." if ratio else ""
        deep = f" Its history: {depth(history.days, history.trades_per_account)}." if history else ""
        slow = f" {escape(result.caution)}" if result.caution else ""
        print_markup(
            out, f"{choice}: {result.outcome}, {result.rows:,} rows in {result.seconds:.1f} s.{rest}{pages}{deep}{slow}"
        )
