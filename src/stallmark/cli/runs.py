"""`stallmark runs`: past experiments and their results."""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallmark import format
from stallmark.cli.command import Command
from stallmark.cli.common import err, escape, item, json_option, out, out_option, print_markup, timezone_option
from stallmark.errors import StallmarkError, in_words

if TYPE_CHECKING:
    from stallmark.report.history import Past


@click.command(cls=Command)
@click.argument("scenario", required=False)
@out_option("Folder of the experiments.")
@timezone_option()
@json_option
def runs(scenario: str | None, out_dir: Path, as_json: bool) -> None:
    """List past experiments; with a SCENARIO, its throughput over time."""
    from stallmark.report.history import count_kept_thresholds, result, trend
    from stallmark.report.terminal import InTerminal

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
        planned_text = f" of {experiment.planned}" if experiment.planned is not None else ""
        when = format.moment(experiment.begun)
        print_markup(
            out,
            f"[bold]{escape(experiment.scenario)}[/]  {when}, {experiment.whole}{planned_text} runs, "
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
    from stallmark.analysis.experiment import summarise
    from stallmark.experiment.remaining_runs import INTERRUPTED
    from stallmark.experiment.status import State, status
    from stallmark.record.reader import find_records
    from stallmark.report.history import Past

    for folder in sorted({path.parent.parent for path in out_dir.glob("*/*/manifest.json")}):
        if folder.name == INTERRUPTED:
            continue
        try:
            records = find_records([folder])
            summary = None if any(record.is_probe or record.loads for record in records) else summarise(records)
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
