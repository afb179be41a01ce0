"""`stallmark characterise`: show how a load reads."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.exit_codes import CONDITION_BROKEN, INCOMPLETE
from stallmark.cli.options import (
    as_seconds,
    choice_of,
    json_option,
    out_option,
    quiet_option,
    target_options,
    timezone_option,
)
from stallmark.cli.output import Outputs, ShowInSentences, err, page_file, print_markup, progress_console
from stallmark.errors import StallmarkError, WrongOption, as_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stallmark.scenarios.model import Scenario

USERS, WARM_UP_S, MEASURE_S = 16, 30.0, 120.0
POOL_SHARE = 0.02


@click.command(cls=Command)
@click.argument("load", nargs=-1, required=True, metavar="WORKLOAD|SCENARIO|RUN...")
@click.option(
    "--scale", default="", metavar="MEASURE=N[,…]", help="Size of the database, such as customers=1000,days=40."
)
@click.option("--seed", type=click.IntRange(0), default=None, help="Seed of the generated data [default: 1].")
@click.option("--users", type=click.IntRange(1), default=None, help=f"Number of virtual users [default: {USERS}].")
@click.option(
    "--pool", "pools", multiple=True, metavar="SIZE",
    help="Buffer-pool size, such as 64MiB or 2 % of the data; repeatable [default: 2 %, at least 8MiB].",
)  # fmt: skip
@click.option("--warm-up", callback=as_seconds, metavar="TIME", help=f"Warm-up time [default: {WARM_UP_S:g}s].")
@click.option("--measure", callback=as_seconds, metavar="TIME", help=f"Measured time [default: {MEASURE_S:g}s].")
@target_options
@out_option("Folder for the run records.")
@click.option(
    "--page", type=click.Path(path_type=Path),
    help="HTML file to write [default: locality.html in RUN, none with --json].",
)  # fmt: skip
@timezone_option()
@quiet_option
@json_option
def characterise(
    load: tuple[str, ...], scale: str, seed: int | None, users: int | None, pools: tuple[str, ...],
    warm_up: float | None, measure: float | None, target, out_dir: Path, page: Path | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show how a load reads: by size of memory, across the data, by table and by transaction.

    A workload, or the load of a scenario, is run on the embedded PostgreSQL while all its I/Os are traced. Of existing
    RUNs, the page shows what their records contain: everything if their scenario has `observe: [io_trace]`. If a
    folder of runs has the name of a workload, write it as ./bank.
    """
    from stallmark.report import refuse_target
    from stallmark.scenarios.read import shipped
    from stallmark.transactions import WORKLOADS

    if page:
        refuse_target(page)
    given: dict[str, int | str] = {} if users is None else {"users": users}
    given |= {
        name: f"{seconds}s" for name, seconds in (("warm_up", warm_up), ("measure", measure)) if seconds is not None
    }
    records = [Path(path) for path in load]
    # A name of ours wins over a folder of the same name, as in all commands.
    is_named = load[0] in (*WORKLOADS, *shipped())
    if len(load) > 1 or (records[0].is_dir() and not is_named):
        if scale or seed is not None or pools or given:
            raise click.UsageError("Options of a load do not apply to existing runs: leave them out.")
        page = page or page_file(records[0], "locality.html", for_machines=as_json)
        Outputs(page, as_json).refuse()
        show_locality(records, page, as_json)
        return
    if target.url:
        raise WrongOption(
            "Only the embedded PostgreSQL can be traced. For others, use `stallmark run buffer-pool --server …` and "
            "then `stallmark characterise` with its records, which shows the reads by size of memory."
        )
    scenario = scenario_for(load[0], scale, seed, list(dict.fromkeys(pools)), given)
    folder, holds = _run(scenario, target, out_dir, quiet)
    show_locality([folder], page or folder / "locality.html", as_json)
    if not holds:
        sys.exit(CONDITION_BROKEN)


def scenario_for(
    name: str, scale: str, seed: int | None, pools: "Sequence[str]", given: "Mapping[str, int | str]"
) -> "Scenario":
    """Return a scenario that traces a workload, or the load of a scenario, at each size of the pool."""
    from pydantic import ValidationError

    from stallmark.errors import mistake
    from stallmark.scenarios.model import Scenario
    from stallmark.scenarios.read import read_scenario
    from stallmark.transactions import WORKLOADS

    # A scenario in memory: the runner knows no other input, and a run's record has it whole.
    document: dict = {"users": USERS, "ramp": "1s", "warm_up": f"{WARM_UP_S}s", "measure": f"{MEASURE_S}s"}
    if name in WORKLOADS:
        choice = choice_of(name, scale, 1 if seed is None else seed)
        document["workload"] = choice.model_dump(include={"name", "scale", "seed"})
    else:
        base = read_scenario(name)
        if scale or seed is not None:
            raise WrongOption(f"{name} sets scale and seed itself: leave --scale and --seed out.")
        if not isinstance(base, Scenario) or base.search or len(base.counts) > 1:
            raise StallmarkError(f"{name} is not one load of a fixed number of users: name its workload instead.")
        choice = base.workload
        # Variants, arrays and searches of the scenario are dropped: only its load is characterised.
        kept = ("workload", "users", "ramp", "warm_up", "measure", "arrivals", "think_time", "pacing")
        document |= base.model_dump(include=set(kept), exclude_none=True, mode="json")
    sizes = pools or [_smallest_pool(choice)]
    document |= dict(given) | {
        "name": f"characterise-{choice.name}",
        "title": f"How {choice.name} reads",
        "start_cache": "prefilled",
        "observe": ["io_trace"],
        "variants": [{"name": f"pool {size}", "buffer_pool": size} for size in sizes],
    }
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        raise WrongOption(mistake(error.errors()[0])) from None


def _smallest_pool(choice) -> str:
    """Return 2 % of the data, or the server's minimum if that is more. Before the build, the size of the data is
    estimated.
    """
    from stallmark.engines.postgres import MINIMUM_POOL_BYTES
    from stallmark.loaders.load import expected_bytes
    from stallmark.transactions import find_workload

    expected = expected_bytes("postgresql", find_workload(choice.name), choice.scale)
    enough = POOL_SHARE * expected > 1.5 * MINIMUM_POOL_BYTES
    return f"{POOL_SHARE:.0%}".replace("%", " %") if enough else f"{MINIMUM_POOL_BYTES >> 20}MiB"


def _run(scenario: "Scenario", target, out_dir: Path, quiet: bool) -> tuple[Path, bool]:
    """Run the scenario; return the folder of its records, and True if the data stayed consistent."""
    from stallmark.experiment.runner import Runner

    show = ShowInSentences(progress_console(quiet))
    with target.engine(scenario.contents, scenario) as engine:
        runner = Runner(scenario, engine, out_dir, show)
        finished = runner.run()
    if finished.incomplete_because:
        print_markup(err, f"[bold red]Incomplete:[/] {escape(as_sentence(finished.incomplete_because))}")
        sys.exit(INCOMPLETE)
    return runner.folder, finished.conditions_hold


def show_locality(runs: "Sequence[Path]", page: Path | None, as_json: bool) -> None:
    """Write the page on the records' load if `page` is given, and print its tables, or JSON."""
    from stallmark.analysis.locality import characterise as summarise
    from stallmark.cli.summaries import on_all_cores
    from stallmark.record.reader import find_records
    from stallmark.report.locality import locality_document, locality_in_json

    summary = on_all_cores(find_records(runs), summarise)
    Outputs(page, as_json).show(summary, locality_document, locality_in_json, name="page")
