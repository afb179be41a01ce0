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
    from stallmark.scenarios.target import server_url

    if url and typed and _PASSWORD.search(unquote(url)):
        raise StallmarkError(
            "A password on the command line can be read by everybody on this machine: leave it out of --server, "
            "and put it into PGPASSWORD, ~/.pgpass or SQLCMDPASSWORD, or the whole URL into STALLMARK_SERVER or a file "
            "that only you can read (--server @FILE)."
        )
    return server_url(url) if url else None


def _target_options(command: Callable) -> Callable:
    @click.option(
        "--server",
        envvar="STALLMARK_SERVER",
        metavar="URL",
        callback=_no_password,
        help="A server of yours, mssql://user@host:1433/database or postgresql://user@host:5432/database; @FILE holds "
        "one (or STALLMARK_SERVER). Without it: the embedded PostgreSQL.",
    )
    @click.option(
        "--drop-caches", is_flag=True, help="A cold start may empty the caches of everybody on the server."
    )
    @click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the embedded database.")
    @click.option("--wal-dir", type=click.Path(path_type=Path), help="Folder of its WAL, on another device.")
    @click.option("--port", type=click.IntRange(1, 65535), help="Also listen on 127.0.0.1 at this port.")
    @wraps(command)
    def with_target(server, data_dir, wal_dir, port, drop_caches, **others):
        from stallmark.scenarios.target import Target

        return command(target=Target(server, data_dir, wal_dir, port, drop_caches), **others)

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
    with target.engine(model.workload, model) as engine:
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


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format", type=click.Choice(["perfmon", "iostat", "sar", "csv"]), help="[default: told from content]"
)
@click.option("--timezone", "zone", metavar="ZONE", help="Of local times: Europe/Berlin, UTC, +01:00.")
@click.option(
    "--offset", default="0s", show_default=True, metavar="TIME",
    help="Added to the file's times: 2.5s where its clock is slow, -2.5s where it is fast.",
)  # fmt: skip
@click.option("--time-column", metavar="NAME", help="The column of times of a CSV.")
@click.option("--counter", "counters", multiple=True, metavar="PATTERN", help="Only these: 'Disk*sec/Read'.")
@click.option("--name", help="What the report calls it [default: the host the file names, or the file].")
@click.option("--replace", is_flag=True, help="Instead of what was attached under this name.")
@_json
def attach(
    runs: tuple[Path, ...], file: Path, format: str | None, zone: str | None, offset: str, time_column: str | None,
    counters: tuple[str, ...], name: str | None, replace: bool, as_json: bool,
) -> None:  # fmt: skip
    """Add measurements from elsewhere to a RUN: a FILE of Perfmon, iostat, sar or a storage array.

    RUN is a run's folder, or one that holds several: every run that the file overlaps gets its share.
    """
    from stallmark.driver.foreign.attach import Request
    from stallmark.driver.foreign.measurements import Wanted
    from stallmark.scenarios import attach as attaching

    request = Request(name, format, zone, attaching.offset(offset), replace)
    attached = attaching.attach_file(runs, Wanted(file, counters, time_column), request)
    if as_json:
        click.echo(json.dumps([vars(one) for one in attached], indent=2))
        return
    for one in attached:
        for sentence in attaching.sentences(one):
            _tell(out, _escape(sentence))


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


@main.group()
def server() -> None:
    """A SQL Server of your own in a container: up, list, down."""


def _size(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    from pydantic import ByteSize, TypeAdapter, ValidationError

    if text is None:
        return None
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise click.BadParameter(f"{text!r} is no size: write it as 4GiB or 200MB", context, option) from None


@server.command()
@click.option(
    "--version", type=click.Choice(["2017", "2019", "2022", "2025"]), default="2022", show_default=True
)
@click.option("--name", default="stallmark", show_default=True, help="Of the container.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=1433, show_default=True, help="On 127.0.0.1 only."
)
@click.option(
    "--memory", default="4GiB", show_default=True, callback=_size, help="Of the container; 80 % SQL Server's."
)
@click.option("--cpus", type=click.FloatRange(0, min_open=True), help="Cores it may use [default: all].")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder for all it writes [default: a Docker volume]."
)
@click.option(
    "--log", type=click.Path(path_type=Path), help="Folder for transaction logs, on another device."
)
@click.option(
    "--device-read-iops", type=click.IntRange(1), metavar="N", help="At most, on each disk under the folders."
)
@click.option("--device-write-iops", type=click.IntRange(1), metavar="N", help="The same for writes.")
@click.option("--device-read-bps", callback=_size, metavar="SIZE", help="Bytes per second: 200MB.")
@click.option("--device-write-bps", callback=_size, metavar="SIZE", help="The same for writes.")
@click.option("--edition", help="MSSQL_PID [default: the Developer edition].")
@click.option("--accept-eula", is_flag=True, help="You have read Microsoft's licence and accept it.")
@_json
def up(
    accept_eula: bool, as_json: bool, memory: int, device_read_iops, device_write_iops, device_read_bps,
    device_write_bps, **wishes,
) -> None:  # fmt: skip
    """Start Microsoft's SQL Server in a container, and wait until it takes a login."""
    from stallmark.scenarios import server
    from stallmark.scenarios.container import DeviceLimits
    from stallmark.scenarios.server_order import Order

    limits = DeviceLimits(device_read_iops, device_write_iops, device_read_bps, device_write_bps)
    order = Order(memory_bytes=memory, limits=limits, **wishes)
    ready = server.up(order, Show(err), accept_eula=accept_eula)
    if as_json:
        click.echo(
            json.dumps(
                {"name": order.name, "server": str(ready.identity), "url": ready.url}
                | {"url_file": str(ready.url_file), "password_file": str(ready.password_file)}
            )
        )
        return
    _tell(out, f"{ready.identity} takes logins on 127.0.0.1:{order.port}.")
    _tell(
        out,
        f"The password of sa is in {_escape(str(ready.password_file))}, which only you can read. Use it so:",
    )
    _tell(out, f"  stallmark doctor --server @{_escape(str(ready.url_file))}")
    _tell(
        out,
        f"  SQLCMDPASSWORD=$(cat {_escape(str(ready.password_file))}) stallmark doctor --server '{ready.url}'",
    )


@server.command()
@click.argument("name", default="stallmark")
@click.option("--remove-data", is_flag=True, help="Remove its databases and its password as well.")
def down(name: str, remove_data: bool) -> None:
    """Stop a server and remove its container; its data stays unless you say otherwise."""
    from stallmark.scenarios import server

    for sentence in server.down(name, remove_data=remove_data):
        _tell(out, _escape(sentence))


@server.command(name="list")
@_json
def list_servers(as_json: bool) -> None:
    """List the servers that `up` made on this machine."""
    from stallmark.scenarios import server

    found = server.servers()
    if as_json:
        click.echo(json.dumps(found))
        return
    for each in found:
        memory = humanize.naturalsize(each["memory_bytes"], binary=True)
        _tell(
            out,
            f"[bold]{each['name']}[/]  SQL Server {each['version']}, {each['state']}, 127.0.0.1:{each['port']}, "
            f"{memory}, data in {_escape(str(each['data']))}",
        )
    if not found:
        _tell(out, "None: `stallmark server up` starts one.")


@main.command()
@_target_options
@click.option(
    "--out", "out_dir", type=click.Path(path_type=Path), default=Path("stallmark-runs"), show_default=True,
    help="Where the run record goes.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.IntRange(1), default=30, show_default=True, help="How long users are driven."
)
@click.option("--keep", is_flag=True, help="Leave the database that it built.")
@_json
def selftest(target, out_dir: Path, seconds: int, keep: bool, as_json: bool) -> None:
    """Try everything on a server, in a few minutes, and say what worked.

    The database named must exist and be empty. The output names no host and holds no password: paste it into an issue.
    """
    from stallmark.scenarios import selftest

    result = selftest.selftest(target, out_dir, Show(err), seconds=seconds, keep=keep)
    if as_json:
        checks = [vars(check) for check in result.checks]
        click.echo(json.dumps({"facts": dict(result.facts), "checks": checks, "record": str(result.record)}))
    else:
        for name, fact in result.facts.items():
            click.echo(f"- {name}: {fact}")
        click.echo("\n| check | result | |\n|---|---|---|")
        for check in result.checks:
            click.echo(f"| {check.what} | {check.state} | {check.said.replace('|', '/')} |")
        click.echo("")
    sys.exit(result.exit_code)


if __name__ == "__main__":
    main()
