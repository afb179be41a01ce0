"""`stallmark build` and `check`: build a database, or complete an interrupted build, and check a database."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.exit_codes import CONDITION_BROKEN
from stallmark.cli.options import json_option, parsing, quiet_option, target_options, workload_options
from stallmark.cli.output import item, out, print_markup, print_plain, progress_console
from stallmark.errors import StallmarkError, WrongOption
from stallmark.experiment.progress import Show, show_build

if TYPE_CHECKING:
    from stallmark.engines.base import Engine
    from stallmark.experiment.target import Target
    from stallmark.loaders import BatchShare
    from stallmark.loaders.ledger import Entry
    from stallmark.scenarios.model import WorkloadChoice
    from stallmark.transactions.checks import ConditionResult


@parsing
def _share(text: str) -> "BatchShare":
    from stallmark.loaders import BatchShare

    return BatchShare.parse(text)


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
    "--part", "share", metavar="K/N", callback=_share,
    help="Share to load on this machine, such as 1/3, when several machines load the database.",
)  # fmt: skip
@quiet_option
@json_option
def build(
    choice, scenario, target, workers: int | None, share: "BatchShare | None", quiet: bool, as_json: bool
) -> None:
    """Build a database, or complete one whose build was interrupted.

    WORKLOAD is {workloads}. bank+mail is several workloads in one database, and bank,mail one database for each. Or it
    is a scenario: its database is built with the placement that the scenario sets.
    """
    from stallmark.experiment.target import arrangement, locations
    from stallmark.loaders import databases, ledger
    from stallmark.report.text import depth
    from stallmark.schema.deploy import telling_blockers
    from stallmark.transactions import find_workload

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
    history = choice.history
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


_MARKS = {True: "[green]holds   [/]", False: "[red]BROKEN  [/]", None: "[yellow]left out[/]"}
_REFUSED = "[red]REFUSED [/]"


@click.command(cls=Command)
@workload_options(as_built=True)
@target_options
@click.option("--quick", is_flag=True, help="Skip conditions that read large tables completely.")
@click.option(
    "--answers", "with_answers", is_flag=True,
    help="Also compare the answers of the warehouse's queries with DuckDB's.",
)  # fmt: skip
@json_option
def check(choice, scenario, target, quick: bool, with_answers: bool, as_json: bool) -> None:
    """Check that a database is complete and consistent.

    WORKLOAD is {workloads}. bank+mail is several workloads in one database, and bank,mail one database for each. Or it
    is a scenario, whose database is checked.
    """
    from stallmark.loaders import databases, ledger
    from stallmark.schema.deploy import telling_blockers
    from stallmark.transactions import checks, find_workload

    workload = find_workload(choice.name)
    # Without a scale or a place, the only database of this workload is meant.
    if not (choice.scale or target.url or target.data_dir or workload.is_given):
        choice = _only_built(choice, target)
    if target.is_absent(choice):
        raise _absent(choice)
    with target.engine(choice, scenario, make=False) as engine, telling_blockers(engine, print_plain):
        if not (choice.scale or workload.is_given):
            choice = _as_built(choice, ledger.read(engine))
        state = databases.recognise(engine, workload, choice.scale, choice.seed)
        if state.state != "complete":
            raise StallmarkError(f"{choice} is {state}: run `stallmark build` first.")
        entry = databases.read_entry(engine, workload)
        # Conditions of a freshly loaded database are skipped if load was driven against it since.
        findings = checks.run(engine, workload, entry.identity.scale, driven=entry.driven, scans=not quick)
        # The keys that a user's own tables should have are unknown.
        if not workload.is_given:
            findings.insert(0, checks.keys(engine, workload))
        if with_answers:
            findings += answers(engine.database_of("warehouse"), choice)
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        show_findings(findings)
    if any(finding.holds is False for finding in findings):
        sys.exit(CONDITION_BROKEN)
    # After a broken condition: lost data is the graver result, with its own exit code.
    if refused := [finding.name for finding in findings if finding.refused]:
        raise StallmarkError(f"The server refused {len(refused)} of {len(findings)} conditions, in the words above.")


def _absent(choice: "WorkloadChoice") -> StallmarkError:
    return StallmarkError(f"{choice} is absent: run `stallmark build` first.")


def _as_built(choice: "WorkloadChoice", entry: "Entry | None") -> "WorkloadChoice":
    """Return the choice with the database's scale, and with its seed unless `--seed` is given."""
    if entry is None:
        raise _absent(choice)
    if entry.identity.workload != choice.name:
        raise StallmarkError(f"The database holds {entry.identity.workload}, not {choice}: check that.")
    seed = choice.seed if _is_seed_asked() else entry.identity.seed
    return choice.model_copy(update={"scale": dict(entry.identity.scale), "seed": seed})


def _only_built(choice: "WorkloadChoice", target: "Target") -> "WorkloadChoice":
    """Return the choice with scale and seed of the one embedded database of the workload in its usual place.

    Raise StallmarkError unless there is exactly one.
    """
    from stallmark.engines.postgres.embedded_engine import find
    from stallmark.experiment.target import home
    from stallmark.schema import parts_of

    built = []
    for database in find(home() / "embedded"):
        own = [held for held in database.holds if held.get("workload") in (choice.name, *parts_of(choice.name))]
        scale = {measure: number for held in own for measure, number in held.get("scale", {}).items()}
        seed = max((held.get("seed", 0) for held in own), default=0)  # 0 if it decides nothing
        candidate = choice.model_copy(update={"scale": scale, "seed": seed})
        is_of_seed = seed in (0, choice.seed) or not _is_seed_asked()
        if own and is_of_seed and target.folder(candidate) == database.folder:
            built.append(candidate)
    if not built:
        raise _absent(choice)
    if len(built) > 1:
        raise StallmarkError(
            f"There are {len(built)} databases of {choice}: add {' or '.join(map(_as_options, built))}."
        )
    return built[0]


def _as_options(choice: "WorkloadChoice") -> str:
    scale = ",".join(f"{measure}={number}" for measure, number in choice.scale.items())
    return f"--scale {scale}" + (f" --seed {choice.seed}" if choice.seed > 1 else "")


def _is_seed_asked() -> bool:
    return click.get_current_context().get_parameter_source("seed") is ParameterSource.COMMANDLINE


def answers(engine: "Engine", choice: "WorkloadChoice") -> Iterator["ConditionResult"]:
    """Check the answer of each query. Raise StallmarkError if the workload has no queries, or DuckDB's data are
    missing.
    """
    from stallmark.schema import parts_of
    from stallmark.transactions.checks import EXAMPLES, ConditionResult
    from stallmark.transactions.warehouse.oracle import validate

    if "warehouse" not in parts_of(choice.name):
        raise WrongOption(f"{choice.name} has no queries whose answers are known: leave out --answers.")
    began = time.monotonic()
    for query, differences in validate(engine, choice.scale["factor"]):
        ended = time.monotonic()
        yield ConditionResult(
            name=f"Q{query} answers as DuckDB does",
            statistical=False,
            cost="scan",
            holds=not differences,
            offending=len(differences),
            seconds=round(ended - began, 3),
            detail=" | ".join(differences[:EXAMPLES]),
            counted="differences",
        )
        began = ended


def show_findings(findings: Sequence["ConditionResult"]) -> None:
    """Print a line for each condition, exact ones first, with its cost: cheap, or a scan of large tables."""
    _part("Exact", [f for f in findings if not f.statistical])
    _part("Statistical, each with the tolerance that its SQL states", [f for f in findings if f.statistical])
    if any(finding.holds is None and not finding.refused for finding in findings):
        print_markup(out, "Left out is what holds for a database as it was loaded: transactions have run on this one.")


def _part(title: str, findings: Sequence["ConditionResult"]) -> None:
    if findings:
        print_markup(out, f"[bold]{title}[/]")
    for finding in findings:
        took = "" if finding.holds is None else f" ({finding.seconds:.1f} s)"
        detail = f": {finding.offending:,} {finding.counted}, {finding.detail}" if finding.holds is False else ""
        if finding.refused:
            detail = f": {finding.refused}"
        mark = _REFUSED if finding.refused else _MARKS[finding.holds]
        item(f"{mark} {finding.cost:5}", f"{escape(finding.name + detail)}{took}")
