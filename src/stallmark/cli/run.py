"""`stallmark run` and `probe`: run a scenario, and measure raw storage without a database."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from stallmark.cli.command import Command, Extensible, set_by_variables
from stallmark.cli.exit_codes import CONDITION_BROKEN, INCOMPLETE, VERDICT
from stallmark.cli.options import (
    FiniteRange,
    as_bytes,
    json_option,
    junit_option,
    markdown_option,
    out_option,
    parsing,
    quiet_option,
    target_options,
    timezone_option,
)
from stallmark.cli.output import Outputs, ShowInSentences, err, escape, print_markup, progress_console
from stallmark.cli.report import report_if_possible, reporting, show_report
from stallmark.errors import CallFailed, StallmarkError, as_sentence, in_words
from stallmark.experiment import Follower, LoadByHand, LoadMachines, OwnExperiment, QuickScenario
from stallmark.experiment.progress import Phase, Show
from stallmark.stopping import StopSignal

if TYPE_CHECKING:
    from stallmark.experiment.target import Target
    from stallmark.scenarios.model import AnyScenario, ProbeScenario, ScenarioFile


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
    from stallmark.scenarios.model import ProbeScenario, on_devices
    from stallmark.scenarios.read import LoadOptions, read_any_scenario, read_document

    outputs = Outputs(None, as_json, markdown=markdown, junit=junit)
    outputs.refuse()
    options = LoadOptions(users, duration, rate)
    show, begun = ShowInSentences(progress_console(quiet)), None
    model: ScenarioFile
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
    if (markdown or junit) and (own or isinstance(model, ProbeScenario)):
        raise StallmarkError(
            f"{model.name} has no limits for --junit and --markdown: leave them out, and make its summary by "
            "`stallmark report --markdown`."
        )
    # A capability's own experiment has its own runs: options about ours do not apply.
    if own:
        if devices or followers or by_hand:
            raise StallmarkError(
                f"{model.name} is of one place and has no page: leave --device, --web and --locust-web out."
            )
        own[0].run(model, target, out_dir, show, machines, as_json)
        return
    if isinstance(model, ProbeScenario):
        if devices:
            raise StallmarkError(f"{model.name} probes storage: its variants name their folders, not --device.")
        run_probe_scenario(model, target, out_dir, show, as_json, others=bool(machines or followers or by_hand))
        return
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
    print_markup(err, escape(experiment.go_on(command(folder, model.contents, made))))


# `stallmark probe`, and the scenarios of probes that `run` runs.


@parsing
def _depths(text: str) -> tuple[int, ...]:
    from stallmark.storage.fio import MOST_OUTSTANDING

    parts = re.split(r"[,\s]+", text.strip())
    if not all(part.isdecimal() and 1 <= int(part) <= MOST_OUTSTANDING for part in parts):
        raise ValueError(f"{text!r}: write numbers from 1 to {MOST_OUTSTANDING}, as in 1,2,4,8")
    return tuple(sorted({int(part) for part in parts}))


@click.command(cls=Command)
@click.argument("place", type=click.Path(path_type=Path))
@click.option(
    "--size", "size_bytes", default="4GiB", show_default=True, callback=as_bytes, help="Size of the test file."
)
@click.option(
    "--pattern", "names", multiple=True, metavar="NAME",
    help="Run only this pattern, such as 8k-random-read; repeatable [default: all].",
)  # fmt: skip
@click.option(
    "--outstanding", "depths", default="1,2,4,8,16,32", show_default=True, callback=_depths,
    help="Numbers of outstanding I/Os, a step for each.",
)  # fmt: skip
@click.option("--seconds", type=FiniteRange(1, 86_400), default=10.0, show_default=True, help="Duration of each step.")
@click.option("--i-know", is_flag=True, help="Allow PLACE to be an existing file or device, which is only read.")
@out_option("Folder for the record.")
@timezone_option()
@quiet_option
@json_option
def probe(
    place: Path, size_bytes: int, names: tuple[str, ...], depths: tuple[int, ...], seconds: float, i_know: bool,
    out_dir: Path, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Measure raw storage without a database, as SQLIO does, with fio (Windows: diskspd).

    PLACE is a folder on that storage. A file is made there and filled, then read and written in every pattern from few
    to many outstanding I/Os, and removed. Nothing else is ever written: an existing file or device is only read, and
    only with --i-know.
    """
    from stallmark.experiment.runner import shown_file, step_callback
    from stallmark.record.files import refuse_unwritable
    from stallmark.record.manifest.course import Scenario, Variant
    from stallmark.record.manifest.storage import Asked
    from stallmark.record.writer import experiment_folder
    from stallmark.storage.fio import find_patterns, steps_of
    from stallmark.storage.probe import ProbePlace, now, record_probe, refuse_memory
    from stallmark.storage.probe_file import existing_file
    from stallmark.storage.programs import find_tool

    show = Show(progress_console(quiet))
    # Not created: a forgotten mount would make us measure the disk under the mount point.
    if not place.exists():
        raise StallmarkError(f"The folder {place} does not exist: name a folder on the storage to measure.")
    # Checked before gigabytes are written in vain.
    refuse_unwritable(out_dir, "name another folder for the record with --out")
    find_tool(emulated=False)
    refuse_memory(place)
    patterns = find_patterns(names)
    is_folder = place.is_dir()
    if not is_folder:
        patterns = _only_reads(place, patterns, named=bool(names))
    steps: tuple[Asked, ...] = steps_of(patterns, depths)
    opened = shown_file(show, str(place), place, size_bytes) if is_folder else existing_file(place, size_bytes, i_know)
    folder = experiment_folder(out_dir, "probe")
    # Steps measured before Ctrl-C are shown as well.
    with (
        reporting(
            lambda: show_report([folder], Outputs(folder / "report.html", as_json)),
            (folder / "manifest.json").exists,
            show.say,
        ),
        opened as file,
        show.bar(f"{place}: probing", seconds * len(steps)),
    ):
        made = ProbePlace(folder.name, 1, Scenario(name="probe"), Variant(name=file.place))
        record_probe(folder, made, file, steps, seconds, now(), None, step_callback(show, seconds))


def run_probe_scenario(
    scenario: "ProbeScenario", target: "Target", out_dir: Path, show: Show, as_json: bool, *, others: bool
) -> None:
    """Run a scenario about raw storage. `others` is True if options that do not apply to it were given."""
    from stallmark.experiment.estimate import estimate
    from stallmark.experiment.runner import RawRunner
    from stallmark.experiment.target import home
    from stallmark.report.text import experiment

    typed = click.get_current_context().get_parameter_source("server") is ParameterSource.COMMANDLINE
    # STALLMARK_SERVER may be set for other commands, so only a URL on the command line is an error.
    if others or typed or replace(target, url=None) != type(target)():
        raise StallmarkError(
            f"{scenario.name} probes raw storage: only --set, --out and --json of `run` apply; "
            "name a folder on real storage with `stallmark probe FOLDER`, or as a variant's `folder`."
        )
    show.say(f"{scenario.title or scenario.name}: {scenario.answers}")
    expected, many = estimate(scenario), len(scenario.variants)
    text = experiment.takes(expected.total_s, 0.0)
    show.say(experiment.work_and_duration(f"{many} probe{'s' * (many > 1)}", many * expected.load_s, text))
    runner = RawRunner(scenario, home(), out_dir, show)
    with reporting(
        lambda: show_report([runner.folder], Outputs(runner.folder / "report.html", as_json)),
        lambda: any(runner.folder.glob("*/manifest.json")),
        show.say,
    ):
        runner.run()


def _only_reads(place: Path, patterns: list, *, named: bool) -> list:
    reads = [pattern for pattern in patterns if pattern.reads]
    if named and len(reads) < len(patterns):
        raise StallmarkError(
            f"{place} exists, and a probe writes only to files that it made: leave the write patterns out, or name "
            "a folder on that storage."
        )
    return reads
