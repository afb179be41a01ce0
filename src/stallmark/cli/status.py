"""`stallmark status`: the progress of an experiment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stallmark import capabilities, format
from stallmark.cli.command import Command
from stallmark.cli.common import escape, experiment_options, json_option, out, print_markup, timezone_option

if TYPE_CHECKING:
    from stallmark.experiment.status import Status


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
        yield experiment.silent(status.silent_s, status.resume)
    # The records of a killed experiment look like those between two runs, so both are named.
    if status.state is State.BETWEEN and status.silent_s:
        ago = format.duration(status.silent_s)
        yield f"The last run ended {ago} ago; the next one is being prepared, or the experiment was killed."
        if status.asks:
            yield experiment.asks(*status.asks)
    if status.state is State.ENDED and status.resume:
        yield experiment.go_on(status.resume)
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
