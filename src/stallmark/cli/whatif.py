"""`stallmark whatif`: predict what faster or slower reads would have given."""

from pathlib import Path

import click

from stallmark.cli.common import Command, json_option, out, runs_argument
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option(
    "--read", "reads", multiple=True, metavar="TIME",
    help="Mean time of a read, 1ms; may be given several times [default: 5, 2, 1, 0.5 and 0.2 ms].",
)  # fmt: skip
@json_option
def whatif(runs: tuple[Path, ...], reads: tuple[str, ...], as_json: bool) -> None:
    """Predict throughput if reads took another time, from runs already made.

    RUN is a run's folder or an experiment's. Where variants with other read times were run, it says how far such
    predictions were off.
    """
    from stallmark.analysis.bottleneck.prediction import WHAT_IF_MS
    from stallmark.analysis.experiment import summarise
    from stallmark.analysis.what_if import what_if
    from stallmark.record.reader import find_records
    from stallmark.report.in_json import dumped, in_json
    from stallmark.report.terminal_what_if import what_ifs
    from stallmark.report.text import sentence

    times_ms = [_milliseconds(text) for text in reads] or list(WHAT_IF_MS)
    found = what_if(summarise(find_records(runs)).steps, times_ms)
    if not found.found:
        raise StallmarkError(" ".join(map(sentence, found.left_out)))
    if as_json:
        click.echo(dumped(in_json(found)))
    else:
        out.print(what_ifs(found))


def _milliseconds(text: str) -> float:
    from pydantic import TypeAdapter, ValidationError

    from stallmark.quantities import Seconds

    try:
        seconds = TypeAdapter(Seconds).validate_python(text)
    except ValidationError:
        seconds = 0.0
    if not 0 < seconds <= 60:
        raise StallmarkError(f"--read {text} is no time of a read: write it as 1ms or 0.2ms, above zero.")
    return seconds * 1000
