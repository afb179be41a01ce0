"""The command `stallmark`."""

import json
import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import humanize
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table

import stallmark
from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.scenarios.show import Show
from stallmark.scenarios.stopping import Stopped, listen

# Exit codes, for CI. click itself uses 2 for a wrong command line.
CONDITION_BROKEN, FAILED, INCOMPLETE = 1, 3, 4

out = Console()
err = Console(stderr=True)


class _Commands(click.Group):
    """Every error that is the user's to mend ends as one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        listen()
        try:
            return super().invoke(ctx)
        except (StallmarkError, CallFailed) as error:
            _tell(err, f"[bold red]Error:[/] {_escape(str(error))}")
            sys.exit(FAILED)
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, a folder without rights
            _tell(err, f"[bold red]Error:[/] {_escape(_sentence(error))}")
            sys.exit(FAILED)
        except Stopped as stopped:
            sentence = f"{stopped}. What was done is kept; servers and settings are as before."
            _tell(err, sentence[0].upper() + sentence[1:])
            sys.exit(stopped.exit_code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(stallmark.__version__)
def main() -> None:
    """What storage and memory do to a real database.

    Exit codes: 0 all well, 1 a consistency condition does not hold, 2 wrong command line, 3 could not do it,
    4 the run is incomplete, 130 stopped by Ctrl-C.
    """


def _tell(console: Console, markup: str) -> None:
    """Print a sentence: broken between words on a terminal, in one line in a file or a pipe."""
    console.print(markup, highlight=False, soft_wrap=not console.is_terminal)


def _item(mark: str, markup: str) -> None:
    """Print a sentence beside its mark; on a terminal it stays there when it takes several lines."""
    if not out.is_terminal:
        return _tell(out, f"{mark} {markup}")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(mark, markup)
    out.print(grid, highlight=False)


def _sentence(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}."


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


# In a URL before the host, or as a parameter: of a URL, of libpq's `key=value` form, of an ODBC string.
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|\b(ssl)?(password|pwd)\s*=", re.IGNORECASE)


def _no_password(context: click.Context, _: click.Parameter, url: str | None) -> str | None:
    typed = context.get_parameter_source("server") is ParameterSource.COMMANDLINE
    if url and typed and _PASSWORD.search(unquote(url)):
        raise StallmarkError(
            "A password on the command line can be read by everybody on this machine: leave it out of --server, "
            "and put it into PGPASSWORD or ~/.pgpass, or the whole URL into STALLMARK_SERVER."
        )
    return url


def _target_options(command: Callable) -> Callable:
    @click.option(
        "--server",
        envvar="STALLMARK_SERVER",
        metavar="URL",
        callback=_no_password,
        help="A server of yours, postgresql://user@host:5432/database (or STALLMARK_SERVER). "
        "Without it: the embedded PostgreSQL.",
    )
    @click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the embedded database.")
    @click.option("--wal-dir", type=click.Path(path_type=Path), help="Folder of its WAL, on another device.")
    @click.option("--port", type=click.IntRange(1, 65535), help="Also listen on 127.0.0.1 at this port.")
    @wraps(command)
    def with_target(server, data_dir, wal_dir, port, **others):
        from stallmark.scenarios.target import Target

        return command(target=Target(server, data_dir, wal_dir, port), **others)

    return with_target


def _workload_options(command: Callable) -> Callable:
    @click.argument("workload")
    @click.option(
        "--scale",
        "scale",
        required=True,
        metavar="MEASURE=N[,…]",
        help="How large, for example branches=100.",
    )
    @click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
    @wraps(command)
    def with_choice(workload, scale, seed, **others):
        return command(choice=_choice(workload, scale, seed), **others)

    return with_choice


def _choice(workload: str, scale: str, seed: int):
    from pydantic import ValidationError

    from stallmark.scenarios.model import WorkloadChoice
    from stallmark.transactions import WORKLOADS

    if workload not in WORKLOADS:
        raise click.BadParameter(
            f"{workload!r} is none: there is {', '.join(WORKLOADS)}", param_hint="WORKLOAD"
        )
    measures = {}
    for part in scale.split(","):
        measure, _, number = part.partition("=")
        if not number.replace(".", "", 1).isdigit():
            raise click.BadParameter(
                f"{part!r} is no measure: write --scale branches=100", param_hint="--scale"
            )
        measures[measure.strip()] = float(number) if "." in number else int(number)
    try:
        return WorkloadChoice(name=workload, scale=measures, seed=seed)
    except ValidationError as error:
        raise StallmarkError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


_json = click.option("--json", "as_json", is_flag=True, help="For machines: JSON on standard output.")


@main.command()
@_target_options
@_json
def doctor(target, as_json: bool) -> None:
    """Say what works on this machine (and server), and what is missing."""
    from stallmark.scenarios.doctor import examine

    findings = examine(target)
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = {"ok": "[green]ok     [/]", "limited": "[yellow]limited[/]", "missing": "[red]missing[/]"}[
                finding.state
            ]
            _item(mark, f"{_escape(finding.what)}: {_escape(finding.sentence)}")
    if any(finding.state == "missing" for finding in findings):
        sys.exit(FAILED)


@main.command()
@_workload_options
@_target_options
@click.option(
    "--workers", type=click.IntRange(1, 64), default=None, help="Loader processes [default: the cores]."
)
@click.option("--part", metavar="K/N", help="Load only this share: one of several machines.")
@_json
def build(choice, target, workers: int | None, part: str | None, as_json: bool) -> None:
    """Build a database, or complete one whose build was interrupted."""
    from stallmark.loaders import load
    from stallmark.loaders.plan import Part
    from stallmark.scenarios.build import show_build
    from stallmark.transactions import find_workload

    share = Part.parse(part) if part else None
    with target.engine(choice) as engine, show_build(Show(err), f"Building {choice}") as progress:
        result = load.build(
            engine, find_workload(choice.name), choice.scale, choice.seed,
            workers=workers or os.cpu_count() or 1, part=share, progress=progress,
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(vars(result)))
    else:
        rest = "" if result.complete else " Other parts are still to be loaded."
        _tell(out, f"{choice}: {result.outcome}, {result.rows:,} rows in {result.seconds:.1f} s.{rest}")


@main.command()
@_workload_options
@_target_options
@click.option("--quick", is_flag=True, help="Leave out conditions that read whole large tables.")
@_json
def check(choice, target, quick: bool, as_json: bool) -> None:
    """Check that a database is whole and consistent."""
    from stallmark.loaders import load
    from stallmark.transactions import checks, find_workload

    workload = find_workload(choice.name)
    with target.engine(choice) as engine:
        state = load.recognise(engine, workload, choice.scale, choice.seed)
        if state.state != "complete":
            raise StallmarkError(f"{choice} is {state}: run `stallmark build` first.")
        findings = checks.run(engine, workload, choice.scale, scans=not quick)
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = "[green]holds [/]" if finding.holds else "[red]BROKEN[/]"
            detail = "" if finding.holds else f": {finding.offending:,} rows, {finding.detail}"
            _item(mark, f"{_escape(finding.name + detail)} ({finding.seconds:.1f} s)")
    if not all(finding.holds for finding in findings):
        sys.exit(CONDITION_BROKEN)


@main.command()
@click.argument("scenario")
@_target_options
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change the scenario: --set measure=60s."
)
@click.option(
    "--out", "out_dir", type=click.Path(path_type=Path), default=Path("stallmark-runs"), show_default=True,
    help="Where the run records go.",
)  # fmt: skip
@click.option("--web", "web_port", type=click.IntRange(1, 65535), help="Show Locust's web page on this port.")
@_json
def run(
    scenario: str, target, overrides: tuple[str, ...], out_dir: Path, web_port: int | None, as_json: bool
) -> None:
    """Run a SCENARIO: one of `stallmark list`, or a YAML file of yours."""
    from stallmark.scenarios.read import read_scenario
    from stallmark.scenarios.runner import Runner

    model = read_scenario(scenario, overrides)
    show = Show(err)
    runs, load = len(model.variants) * model.repeats, humanize.precisedelta(round(model.run_seconds()))
    show.say(f"{model.title}: {model.answers}")
    show.say(f"{runs} run{'s' if runs > 1 else ''}, {load} of load in all")
    with target.engine(model.workload) as engine:
        runner = Runner(model, engine, out_dir, show, web_port)
        try:
            finished = runner.run()
        except (Stopped, StallmarkError, CallFailed):
            if runner.folder.exists():
                _report([runner.folder], runner.folder / "report.html", as_json)
            raise
    _report([runner.folder], runner.folder / "report.html", as_json)
    if finished.incomplete_because:
        _tell(err, f"[bold red]Incomplete:[/] {_escape(finished.incomplete_because)}.")
        sys.exit(INCOMPLETE)
    if not finished.conditions_hold:
        sys.exit(CONDITION_BROKEN)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", "target", type=click.Path(path_type=Path), help="The HTML file [default: beside the runs]."
)
@_json
def report(runs: tuple[Path, ...], target: Path | None, as_json: bool) -> None:
    """Make the report of run records, from the records alone."""
    _report(list(runs), target or runs[0] / "report.html", as_json)


def _report(runs: list[Path], target: Path, as_json: bool) -> None:
    from stallmark.driver.analysis import summarise
    from stallmark.driver.record import find_records
    from stallmark.driver.report import write_report
    from stallmark.driver.report.terminal import table

    summary = summarise(find_records(runs))
    write_report(summary, target)
    if as_json:
        click.echo(json.dumps(summary.as_json() | {"report": str(target.resolve())}, default=str))
    else:
        out.print(table(summary))
        out.print(f"Report: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)


@main.command(name="list")
@_json
def list_(as_json: bool) -> None:
    """List the scenarios: what each answers, needs and takes."""
    from stallmark.scenarios.read import read_scenario, shipped

    scenarios = [read_scenario(name) for name in shipped()]
    if as_json:
        click.echo(
            json.dumps(
                [
                    {k: getattr(s, k) for k in ("name", "title", "answers", "needs", "takes")}
                    for s in scenarios
                ]
            )
        )
        return
    for s in scenarios:
        _tell(out, f"[bold]{s.name}[/]  {_escape(s.title)}")
        for label, text in (("answers", s.answers), ("needs", s.needs), ("takes", s.takes)):
            _item(f"    {label:8}", _escape(text))


if __name__ == "__main__":
    main()
