"""`stallmark whatif`: predict throughput at other read times."""

from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import escape, json_option, out, runs_argument
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@runs_argument
@click.option(
    "--read", "reads", multiple=True, metavar="TIME",
    help="Mean read time to predict for, such as 1ms; repeatable [default: 5, 2, 1, 0.5 and 0.2 ms].",
)  # fmt: skip
@json_option
def whatif(runs: tuple[Path, ...], reads: tuple[str, ...], as_json: bool) -> None:
    """Predict throughput at other read times, from existing runs.

    RUN is a run's folder or an experiment's. If a variant was also run with another read time, the error of predicting
    that run is shown too.
    """
    from stallmark.analysis.prediction import WHAT_IF_MS, predict_throughputs
    from stallmark.cli.summaries import summarise_each_alike
    from stallmark.report.renderers import dumped, in_json, in_terminal
    from stallmark.report.text import sentence
    from stallmark.report.what_if import predictions_in_brief

    times_ms = [_milliseconds(text) for text in reads] or list(WHAT_IF_MS)
    all_found = {
        name: predict_throughputs(summary.steps, times_ms) for name, summary in summarise_each_alike(runs).items()
    }
    if not any(answer.found for answer in all_found.values()):
        left_out = [sentence(finding) for answer in all_found.values() for finding in answer.left_out]
        raise StallmarkError(" ".join(dict.fromkeys(left_out)))
    if as_json:
        click.echo(dumped(in_json(all_found.get("", {"loads": all_found}))))
        return
    for name, answer in all_found.items():
        out.print(*([f"[bold]{escape(name)}[/]\n"] if name else []), in_terminal(predictions_in_brief(answer)), sep="")


def _milliseconds(text: str) -> float:
    from pydantic import TypeAdapter, ValidationError

    from stallmark.quantities import Seconds

    try:
        seconds = TypeAdapter(Seconds).validate_python(text)
    except ValidationError:
        seconds = 0.0
    if not 0 < seconds <= 60:
        raise StallmarkError(f"--read {text} is not a time of a read: write it as 1ms or 0.2ms, above zero.")
    return seconds * 1000
