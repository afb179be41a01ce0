"""The command `stallmark`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
import humanize

from stallmark.cli.common import (
    CONDITION_BROKEN,
    FAILED,
    INCOMPLETE,
    err,
    escape,
    item,
    json_option,
    out,
    server_option,
    system_sentence,
    target_options,
    tell,
    workload_options,
)
from stallmark.cli.compare import compare, plan
from stallmark.cli.lab import lab
from stallmark.cli.probe import probe
from stallmark.cli.server.commands import selftest, server
from stallmark.cli.whatif import whatif
from stallmark.driver.cluster.join import MASTER_PORT, Gathering
from stallmark.errors import CallFailed, StallmarkError, in_words
from stallmark.experiment.progress import Show
from stallmark.experiment.stopping import Stopped, listen


class _Commands(click.Group):
    """Every error that is the user's to mend ends as one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        listen()
        try:
            return super().invoke(ctx)
        except (StallmarkError, CallFailed) as error:
            tell(err, f"[bold red]Error:[/] {escape(in_words(error))}")
            sys.exit(FAILED)
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, a folder without rights
            tell(err, f"[bold red]Error:[/] {escape(system_sentence(error))}")
            sys.exit(FAILED)
        except Stopped as stopped:
            left = " ".join(getattr(stopped, "__notes__", ()))
            kept = f" is kept. {left}" if left else " is kept; servers and settings are as before."
            sentence = f"{stopped}. What was done{kept}"
            tell(err, escape(sentence[0].upper() + sentence[1:]))
            sys.exit(stopped.exit_code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stallmark")
def main() -> None:
    """What storage and memory do to a real database.

    Exit codes: 0 all well, 1 a consistency condition does not hold, 2 wrong command line, 3 could not do it,
    4 the run is incomplete, 5 a comparison is as --fail-if says or could not be made, 130 stopped by Ctrl-C.
    """


@main.command()
@target_options
@json_option
def doctor(target, as_json: bool) -> None:
    """Say what works on this machine (and server), and what is missing."""
    from stallmark.cli.doctor import examine

    findings = examine(target)
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = {"ok": "[green]ok     [/]", "limited": "[yellow]limited[/]", "missing": "[red]missing[/]"}[
                finding.state
            ]
            item(mark, f"{escape(finding.what)}: {escape(finding.sentence)}")
    if any(finding.state == "missing" for finding in findings):
        sys.exit(FAILED)


@main.command()
@workload_options
@target_options
@click.option("--workers", type=click.IntRange(1, 64), default=None, help="Loader processes [default: the cores].")
@click.option("--part", metavar="K/N", help="Load only this share: one of several machines.")
@json_option
def build(choice, scenario, target, workers: int | None, part: str | None, as_json: bool) -> None:
    """Build a database, or complete one whose build was interrupted.

    WORKLOAD is bank, brokerage or warehouse, or a scenario, whose database is built where it places it.
    """
    from stallmark.experiment.build_progress import show_build
    from stallmark.experiment.placing import arrangement
    from stallmark.loaders import ledger, load
    from stallmark.loaders.plan import Part
    from stallmark.transactions import find_workload

    share = Part.parse(part) if part else None
    with target.engine(choice, scenario) as engine, show_build(Show(err), f"Building {choice}") as progress:
        result = load.build(
            engine, find_workload(choice.name), choice.scale, choice.seed,
            workers=workers or os.cpu_count() or 1, part=share, arrange=arrangement(engine, scenario),
            progress=progress,
        )  # fmt: skip
        ratio = entry.compressibility if (entry := ledger.read(engine)) else None
    if as_json:
        click.echo(json.dumps(vars(result) | {"compressibility": ratio}))
    else:
        rest = "" if result.complete else " Other parts are still to be loaded."
        pages = f" Its pages are compressible {ratio:.1f} to 1 (LZ4)." if ratio else ""
        tell(out, f"{choice}: {result.outcome}, {result.rows:,} rows in {result.seconds:.1f} s.{rest}{pages}")


@main.command()
@workload_options
@target_options
@click.option("--quick", is_flag=True, help="Leave out conditions that read whole large tables.")
@click.option(
    "--answers", "with_answers", is_flag=True,
    help="Also hold the answers of the warehouse's queries against DuckDB's.",
)  # fmt: skip
@json_option
def check(choice, scenario, target, quick: bool, with_answers: bool, as_json: bool) -> None:
    """Check that a database is whole and consistent.

    WORKLOAD is bank, brokerage or warehouse, or a scenario, whose database is checked.
    """
    from stallmark.cli.show_findings import show_findings
    from stallmark.loaders import ledger, load
    from stallmark.transactions import checks, find_workload

    workload = find_workload(choice.name)
    if target.is_absent(choice):
        raise StallmarkError(f"{choice} is absent: run `stallmark build` first.")
    with target.engine(choice, scenario) as engine:
        state = load.recognise(engine, workload, choice.scale, choice.seed)
        entry = ledger.read(engine)
        if state.state != "complete" or entry is None:
            raise StallmarkError(f"{choice} is {state}: run `stallmark build` first.")
        findings = checks.run(engine, workload, entry.identity.scale, driven=entry.driven, scans=not quick)
        findings.insert(0, checks.keys(engine, workload))
        if with_answers:
            from stallmark.cli.answers import answers

            findings += answers(engine, choice)
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        show_findings(findings)
    if any(finding.holds is False for finding in findings):
        sys.exit(CONDITION_BROKEN)


@main.command()
@click.argument("scenario")
@target_options
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change the scenario: --set measure=60s.")
@click.option(
    "--out", "out_dir", type=click.Path(path_type=Path), default=Path("stallmark-runs"), show_default=True,
    help="Where the run records go.",
)  # fmt: skip
@click.option("--web", "web_port", type=click.IntRange(1, 65535), help="Show Locust's web page on this port.")
@click.option(
    "--expect-workers", type=click.IntRange(1), metavar="N",
    help="Drive from N load machines, each of which runs `stallmark worker`. Then no users run here.",
)  # fmt: skip
@click.option("--master-bind-host", default="*", show_default=True, help="The address that load machines connect to.")
@click.option("--master-bind-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True)
@json_option
def run(
    scenario: str, target, overrides: tuple[str, ...], out_dir: Path, web_port: int | None, expect_workers: int | None,
    master_bind_host: str, master_bind_port: int, as_json: bool,
) -> None:  # fmt: skip
    """Run a SCENARIO: one of `stallmark list`, or a YAML file of yours."""
    from stallmark.experiment.runner import Runner
    from stallmark.scenarios.model import QueryScenario
    from stallmark.scenarios.raw import RawScenario
    from stallmark.scenarios.read import read_any_scenario

    model = read_any_scenario(scenario, overrides)
    show = Show(err)
    if isinstance(model, RawScenario):
        from stallmark.cli.probe import run_raw

        run_raw(model, target, out_dir, show, as_json, others=bool(web_port or expect_workers))
        return
    runs = len(model.turns())
    if isinstance(model, QueryScenario):
        how_long = ": queries, each to its end"
    else:
        at_most = "at most " if model.plan().patience else ""
        how_long = f", {at_most}{humanize.precisedelta(round(model.run_seconds()))} of load in all"
    show.say(f"{model.title}: {model.answers}")
    show.say(f"{runs} run{'s' if runs > 1 else ''}{how_long}")
    with target.engine(model.workload, model) as engine:
        gathering = Gathering(expect_workers, master_bind_host, master_bind_port) if expect_workers else None
        runner = Runner(model, engine, out_dir, show, web_port, gathering)
        try:
            finished = runner.run()
        except (Stopped, StallmarkError, CallFailed):
            if runner.folder.exists():
                _report([runner.folder], runner.folder / "report.html", as_json)
            raise
    _report([runner.folder], runner.folder / "report.html", as_json)
    if because := finished.incomplete_because:
        tell(err, f"[bold red]Incomplete:[/] {escape(because)}{'' if because.endswith('?') else '.'}")
        sys.exit(INCOMPLETE)
    if not finished.conditions_hold:
        sys.exit(CONDITION_BROKEN)


@main.command()
@server_option(required=True)
@click.option("--master-host", required=True, metavar="HOST", help="Where `stallmark run` is started.")
@click.option("--master-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True)
def worker(server: str, master_host: str, master_port: int) -> None:
    """Drive a share of the load of runs started elsewhere (`stallmark run --expect-workers N`).

    Serves run after run until Ctrl-C. The server's URL and password are given here as well: they are not sent. What is
    sent is neither encrypted nor signed, as Locust has it: keep it in a network you trust.
    """
    from stallmark.experiment.load_worker import serve

    serve(server, master_host, master_port, Show(err))


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", "target", type=click.Path(path_type=Path), help="The HTML file [default: beside the runs].")
@json_option
def report(runs: tuple[Path, ...], target: Path | None, as_json: bool) -> None:
    """Make the report of run records, from the records alone."""
    from stallmark.report.file import refuse_target

    if target:
        refuse_target(target)
    _report(list(runs), target or runs[0] / "report.html", as_json)


def _report(runs: list[Path], target: Path, as_json: bool) -> None:
    from stallmark.analysis.experiment import summarise
    from stallmark.record.reader import find_records
    from stallmark.report import write_report
    from stallmark.report.terminal import table

    records = find_records(runs)
    if any(record.is_probe for record in records):
        from stallmark.cli.probe_report import show_probes

        show_probes(records, target, as_json, out)
        return
    summary = summarise(records)
    write_report(summary, target)
    if as_json:
        click.echo(json.dumps(summary.as_json() | {"report": str(target.resolve())}, default=str))
    else:
        out.print(table(summary))
        out.print(f"Report: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(["perfmon", "iostat", "sar", "csv"]), help="[default: told from content]")
@click.option("--timezone", "zone", metavar="ZONE", help="Of local times: Europe/Berlin, UTC, +01:00.")
@click.option(
    "--offset", default="0s", show_default=True, metavar="TIME",
    help="Added to the file's times: 2.5s where its clock is slow, -2.5s where it is fast.",
)  # fmt: skip
@click.option("--time-column", metavar="NAME", help="The column of times of a CSV.")
@click.option("--counter", "counters", multiple=True, metavar="PATTERN", help="Only these: 'Disk*sec/Read'.")
@click.option("--name", help="What the report calls it [default: the host the file names, or the file].")
@click.option("--replace", is_flag=True, help="Instead of what was attached under this name.")
@json_option
def attach(
    runs: tuple[Path, ...], file: Path, format: str | None, zone: str | None, offset: str, time_column: str | None,
    counters: tuple[str, ...], name: str | None, replace: bool, as_json: bool,
) -> None:  # fmt: skip
    """Add measurements from elsewhere to a RUN: a FILE of Perfmon, iostat, sar or a storage array.

    RUN is a run's folder, or one that holds several: every run that the file overlaps gets its share.
    """
    from stallmark.cli import attach as attaching
    from stallmark.record.attach.attach import Request
    from stallmark.record.attach.measurements import Wanted

    request = Request(name, format, zone, attaching.offset(offset), replace)
    attached = attaching.attach_file(runs, Wanted(file, counters, time_column), request)
    if as_json:
        click.echo(
            json.dumps([{"run": one.run, "entry": one.entry.model_dump(mode="json")} for one in attached], indent=2)
        )
        return
    for one in attached:
        for sentence in attaching.sentences(one):
            tell(out, escape(sentence))


@main.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the scenarios: what each answers, needs and takes."""
    from stallmark.scenarios.read import read_any_scenario, shipped

    scenarios = [read_any_scenario(name) for name in shipped()]
    if as_json:
        click.echo(
            json.dumps([{k: getattr(s, k) for k in ("name", "title", "answers", "needs", "takes")} for s in scenarios])
        )
        return
    for s in scenarios:
        tell(out, f"[bold]{s.name}[/]  {escape(s.title)}")
        for label, text in (("answers", s.answers), ("needs", s.needs), ("takes", s.takes)):
            item(f"    {label:8}", escape(text))


main.add_command(compare)
main.add_command(plan)
main.add_command(lab)
main.add_command(probe)
main.add_command(whatif)
main.add_command(server)
main.add_command(selftest)


if __name__ == "__main__":
    main()
