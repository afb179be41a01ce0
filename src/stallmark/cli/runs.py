"""`stallmark runs` and `status`: past experiments with their results, and the progress of one."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.markup import escape

from stallmark import capabilities, format
from stallmark.cli.command import Command
from stallmark.cli.options import experiment_options, json_option, out_option, timezone_option
from stallmark.cli.output import err, item, out, print_markup
from stallmark.errors import StallmarkError, in_words

if TYPE_CHECKING:
    from stallmark.experiment.status import Status
    from stallmark.report.results import Past


@click.command(cls=Command)
@click.argument("scenario", required=False)
@out_option("Folder of the experiments.")
@timezone_option()
@json_option
def runs(scenario: str | None, out_dir: Path, as_json: bool) -> None:
    """List past experiments; with a SCENARIO, its throughput over time."""
    from stallmark.report.results import count_kept_thresholds, result, trend
    from stallmark.report.table import InTerminal

    everything = list(_past(out_dir))
    past = [experiment for experiment in everything if scenario in (None, experiment.scenario)]
    if not past:
        # A typing error in the name is the likely cause.
        near = difflib.get_close_matches(scenario or "", [experiment.scenario for experiment in everything], 1)
        remedy = f"did you mean {near[0]}?" if near else "run one first, or name the folder of all with --out."
        raise StallmarkError(f"{out_dir} holds no experiment{f' of {scenario}' if scenario else ''}: {remedy}")
    if as_json:
        names = ("folder", "begun", "scenario", "state", "whole", "planned")
        listed = [
            {name: getattr(experiment, name) for name in names}
            | {"result": result(experiment), "thresholds_kept": count_kept_thresholds(experiment)}
            for experiment in past
        ]
        click.echo(json.dumps(listed, indent=2, default=str))
        return
    for experiment in past:
        count = experiment.whole if experiment.planned is None else f"{experiment.whole} of {experiment.planned}"
        when = format.moment(experiment.begun)
        print_markup(
            out,
            f"[bold]{escape(experiment.scenario)}[/]  {when}, {count} run{'s' * (count != 1)}, "
            f"{experiment.state}, {escape(str(experiment.folder))}",
        )
        if thresholds := count_kept_thresholds(experiment):
            item("   ", f"{thresholds[0]} of {thresholds[1]} thresholds met")
        if text := result(experiment):
            item("   ", escape(text))
    if scenario:
        out.print()
        out.print(InTerminal(trend(past)))


def _past(out_dir: Path) -> Iterator["Past"]:
    from stallmark.analysis.experiment import SUMMARISED, summarise
    from stallmark.experiment.status import State, status
    from stallmark.record.reader import INTERRUPTED, find_records
    from stallmark.report.results import Past

    experiments = {path.parent.parent for path in out_dir.glob("*/*/manifest.json")}
    alone = {path.parent for path in out_dir.glob("*/manifest.json")} - experiments
    for folder in sorted(experiments | alone):
        if folder.name == INTERRUPTED:
            continue
        try:
            records = find_records([folder])
            # A probe is an experiment of its own. Other runs stand here if `out_dir` is their experiment.
            if folder in alone and records[0].manifest.experiment != folder.name:
                continue
            summary = summarise(records) if all(record.kind in SUMMARISED for record in records) else None
        except StallmarkError as error:  # one damaged record, or one of another version, does not hide the others
            print_markup(err, f"{escape(folder.name)}: {escape(in_words(error))}")
            continue
        begun, name = records[0].manifest.started, records[0].manifest.scenario.name
        try:
            progress = status(folder)
            yield Past(folder, begun, name, progress.state, progress.whole, progress.planned, summary)
        except StallmarkError:  # a scenario that this version cannot run, or a probe: count the runs instead
            whole = sum(record.incomplete_because is None for record in records)
            state = State.COMPLETE if whole == len(records) else State.ENDED
            yield Past(folder, begun, name, state, whole, None, summary)


@click.command(cls=Command)
@experiment_options
@timezone_option()
@json_option
def status(folder: Path | None, out_dir: Path, as_json: bool) -> None:
    """Show the progress of an experiment, from its records, on any machine that can read them."""
    from stallmark.experiment.status import experiment_of, newest
    from stallmark.experiment.status import status as read_status
    from stallmark.record.reader import other_kind

    folder = folder or newest(out_dir)
    progress = capabilities.part(other_kind(folder) or "", "progress")
    own = progress(folder) if progress else None
    experiment = experiment_of(folder)
    progress = read_status(experiment) if experiment else None
    if as_json:
        parts = own.values if own else {}
        click.echo(json.dumps(parts | (asdict(progress) if progress else {}), default=str, allow_nan=False))
        return
    for sentence in [*(own.sentences if own else ()), *(_sentences(progress) if progress else ())]:
        print_markup(out, escape(sentence))


class Progress(NamedTuple):
    """The progress of a capability's own experiment, shown next to that of the runs in it."""

    sentences: Sequence[str]
    values: Mapping[str, Any]
    """The same facts as JSON."""


def _sentences(status: "Status"):
    from stallmark.experiment.status import State
    from stallmark.report.text import experiment

    yield f"{status.title} ({status.folder}), begun {format.moment(status.started)}"
    because = f": {status.because}" if status.because else ""
    yield f"{status.state}{because}; {status.whole} of {status.planned} runs are complete"
    if status.state is State.SILENT and status.silent_s and status.resume:
        yield experiment.silent(silent_s=status.silent_s, command=status.resume)
    # The records of a killed experiment look like those between two runs, so both are named.
    if status.state is State.BETWEEN and status.silent_s:
        ago = format.duration(status.silent_s)
        yield f"The last run ended {ago} ago; the next one is being prepared, or the experiment was killed."
        if status.asks:
            yield experiment.asks(*status.asks)
    if status.state is State.ENDED and status.resume:
        yield experiment.go_on(command=status.resume)
    if now := status.now:
        end_text = f" of {format.duration(now.ends_s)}" if now.ends_s else ""
        spent_s = min(now.elapsed_s, now.ends_s or now.elapsed_s)
        users = f", {format.users(now.users)}" if now.users is not None else ""
        yield f"[{now.number}/{status.planned}] {now.variant}: {now.phase}{users}, {format.duration(spent_s)}{end_text}"
        tps = None if now.tps is None else f"{format.number(now.tps)} TPS"
        read = None if now.read_ms is None else f"{format.number(now.read_ms)} ms a read"
        if lately := ", ".join(filter(None, (tps, read))):
            yield f"in the last seconds {lately}"
    if status.left_s is not None:
        yield experiment.time_left(status.left_s, refined=status.refined)
