"""`stallmark run`: run a scenario."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark.cli.command import Extensible, set_by_variables
from stallmark.cli.exit_codes import CONDITION_BROKEN, INCOMPLETE, VERDICT
from stallmark.cli.options import (
    FiniteRange,
    json_option,
    junit_option,
    markdown_option,
    out_option,
    parsing,
    quiet_option,
    target_options,
    timezone_option,
)
from stallmark.cli.output import Outputs, ShowInSentences, err, print_markup, progress_console
from stallmark.cli.report import report_if_possible, show_report
from stallmark.errors import CallFailed, StallmarkError, WrongOption, as_sentence, in_words
from stallmark.experiment import Follower, LoadByHand, LoadMachines, OwnExperiment, QuickScenario
from stallmark.experiment.progress import Phase
from stallmark.stopping import StopSignal

if TYPE_CHECKING:
    from stallmark.scenarios import Titled
    from stallmark.scenarios.model import AnyScenario


@parsing
def as_duration(text: str) -> float:
    """Parse a duration option; a bare number is in seconds, as pgbench has it."""
    from stallmark.quantities import parse_seconds

    seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_seconds(text)
    if seconds < 1:
        raise ValueError(f"{text} is not a measured time: write 1s or more")
    return seconds


@click.command(cls=Extensible)
@click.argument("scenario", required=False)
@target_options
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the scenario, such as measure=60s; repeatable.",
)
@click.option(
    "--device", "devices", multiple=True, metavar="NAME=FOLDER[,LOG]",
    help="Device to run the variants on, such as new=/mnt/new/db; repeatable.",
)  # fmt: skip
@click.option("-c", "--users", type=click.IntRange(1, 10_000), help="Number of virtual users [--sql, -f: 10].")
@click.option(
    "-T", "--duration", callback=as_duration, metavar="TIME", help="Measured time of each step [--sql, -f: 60s]."
)
@click.option(
    "-R", "--rate", type=FiniteRange(0, min_open=True), metavar="PER_S",
    help="Arrival rate of transactions, independent of the server's response times.",
)  # fmt: skip
@out_option("Folder for the run records.")
@click.option(
    "--resume", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="RUNS/…",
    help="Continue an experiment that ended early: execute its missing runs.",
)  # fmt: skip
@quiet_option
@markdown_option
@junit_option
@timezone_option()
@json_option
def run(
    scenario: str | None, target, overrides: tuple[str, ...], devices: tuple[str, ...], users: int | None,
    duration: float | None, rate: float | None, out_dir: Path, resume: Path | None, quiet: bool, markdown: str | None,
    junit: Path | None, as_json: bool,
    added: Sequence[Follower | LoadByHand | LoadMachines | OwnExperiment | QuickScenario],
) -> None:  # fmt: skip
    """Run a SCENARIO: one of `stallmark list`, or your own YAML file."""
    from stallmark.experiment.remaining_runs import EarlierExperiment, order_of
    from stallmark.experiment.runner import Runner
    from stallmark.experiment.storage_work import carry_out_at_end
    from stallmark.scenarios.model import AnyScenario, on_devices
    from stallmark.scenarios.read import LoadOptions, read_any_scenario, read_document

    outputs = Outputs(None, as_json, markdown=markdown, junit=junit)
    outputs.refuse()
    options = LoadOptions(users, duration, rate)
    show, begun = ShowInSentences(progress_console(quiet)), None
    model: Titled
    quick = next((addition for addition in added if isinstance(addition, QuickScenario)), None)
    # --sql and -f build a scenario themselves, so there must not be a second one.
    if quick and (scenario or resume):
        variables = set_by_variables("folder", "scripts")
        raise click.UsageError(
            f"A scenario specifies its own load: leave out --sql and -f{variables}, or the scenario."
        )
    if resume:
        if scenario or overrides or devices or options != LoadOptions():
            variables = set_by_variables("overrides", "devices", "users", "duration", "rate")
            raise click.UsageError(
                "--resume continues with the earlier runs' scenario: leave out SCENARIO and options that change it"
                f"{variables}."
            )
        begun = EarlierExperiment.read(resume)
        model = begun.scenario
    elif scenario:
        model = read_any_scenario(scenario, overrides, options)
    elif quick:
        model = read_document(quick.document, overrides, options)
    else:
        raise click.UsageError("Name a scenario (`stallmark list`), or --resume RUNS/… an experiment.")
    machines = next((addition for addition in added if isinstance(addition, LoadMachines)), None)
    by_hand = next((addition for addition in added if isinstance(addition, LoadByHand)), None)
    followers = [addition for addition in added if isinstance(addition, Follower)]
    own = [addition for addition in added if isinstance(addition, OwnExperiment) and addition.takes(model)]
    if (markdown or junit) and own:
        raise WrongOption(
            f"{model.name} has no limits for --junit and --markdown: leave them out, and make its summary by "
            "`stallmark report --markdown`."
        )
    # A capability's own experiment has its own runs: options about ours do not apply.
    if own:
        if devices or followers or by_hand:
            raise WrongOption(
                f"{model.name} names its own places and has no page: leave --device, --web and --locust-web out."
            )
        own[0].run(model, target, out_dir, show, machines, as_json)
        return
    assert isinstance(model, AnyScenario)
    # Without --device a user may place the database, and compare with an experiment on another device.
    is_placed = target.url or target.data_dir or target.wal_dir or any(variant.place for variant in model.variants)
    if not begun and len(devices) < (wanted := model.devices or 0) and (devices or not is_placed):
        noun = "device" if wanted == 1 else "devices"
        raise WrongOption(f"{model.name} needs {wanted} {noun}: name each by --device NAME=FOLDER.")
    if devices:
        model = on_devices(model, devices)
    show.say(": ".join(filter(None, (model.title or model.name, model.answers))))
    if begun:
        made = [record.manifest for record in begun.records.values()]
        show.say(f"{len(begun.records)} of {len(order_of(model, made))} runs are there; going on in {begun.folder}")
    runner, state, because = None, "stopped", "Stallmark ended unexpectedly"
    try:
        with target.engine(model.contents, model) as engine:
            runner = Runner(model, engine, out_dir, show, machines, begun, by_hand)
            for follower in followers:
                follower.begin(runner.folder, model, show)
            try:
                finished = runner.run()
            except (StopSignal, StallmarkError, CallFailed, OSError) as error:
                because = in_words(error)
                # Hours of runs before the error are still worth a report.
                if any(runner.folder.glob("*/manifest.json")):
                    show.enter(Phase.REPORTING)
                    report_if_possible(lambda: _report(runner.folder, outputs), show.say)
                    _print_resume_hint(runner.folder, model)
                raise
        because = finished.incomplete_because or ""
        state = "incomplete" if because else "complete"
        show.enter(Phase.REPORTING)
        if because:
            report_if_possible(lambda: _report(runner.folder, outputs), show.say)
        else:
            broken = _report(runner.folder, outputs)
    except StopSignal as stopped:
        because = because if state == "complete" else str(stopped)
        raise
    finally:
        # Also after Ctrl-C: the command may have to release a machine.
        if model.at_end and runner:
            carry_out_at_end(model.at_end, runner.folder, state, because, show)
        for follower in followers:
            follower.end(state == "complete", because)
    if because:
        print_markup(err, f"[bold red]Incomplete:[/] {escape(as_sentence(because))}")
        _print_resume_hint(runner.folder, model)
        sys.exit(INCOMPLETE)
    if not finished.conditions_hold:
        print_markup(err, "[bold red]Failed:[/] the data are wrong: the report names the condition that does not hold.")
        sys.exit(CONDITION_BROKEN)
    if broken:
        print_markup(err, f"[bold red]Failed:[/] {escape('; '.join(broken))}.")
        sys.exit(VERDICT)


def _report(folder: Path, outputs: Outputs) -> list[str]:
    """Write the report of an experiment; return a reason for each threshold that was not met."""
    from stallmark.report.results import THRESHOLDS

    cases = show_report([folder], replace(outputs, page=folder / "report.html"))
    outputs.write_junit(cases)
    return [case.reason for case in cases if case.group == THRESHOLDS and not case.passed]


def _print_resume_hint(folder: Path, model: "AnyScenario") -> None:
    from stallmark.experiment.remaining_runs import command, with_records
    from stallmark.record.reader import find_records
    from stallmark.report.text import experiment

    try:
        made = [record.manifest for record in find_records(with_records(folder))]
    except StallmarkError:  # one is damaged, which must not take the place of why the experiment ended
        return
    if not made:  # somebody has removed them
        return
    print_markup(err, escape(experiment.go_on(command=command(folder, model.contents, made))))
