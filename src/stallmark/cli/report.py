"""`stallmark report`: make the report of run records, from the records alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallmark.cli.common import json_option, out

if TYPE_CHECKING:
    from stallmark.record.reader import Record


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", "target", type=click.Path(path_type=Path), help="The HTML file [default: beside the runs].")
@json_option
def report(runs: tuple[Path, ...], target: Path | None, as_json: bool) -> None:
    """Make the report of run records, from the records alone."""
    from stallmark.report.file import refuse_target

    if target:
        refuse_target(target)
    show_report(runs, target or runs[0] / "report.html", as_json)


def show_report(runs: Sequence[Path], target: Path, as_json: bool) -> None:
    """Write the report of the records in `runs` to `target`; print its table, or JSON."""
    from stallmark.analysis.experiment import summarise
    from stallmark.record.reader import find_records
    from stallmark.report import write_report
    from stallmark.report.in_json import experiment_in_json
    from stallmark.report.terminal import table

    records = find_records(runs)
    if any(record.is_probe for record in records):
        _show_probes(records, target, as_json)
        return
    summary = summarise(records)
    write_report(summary, target)
    if as_json:
        click.echo(json.dumps(experiment_in_json(summary) | {"report": str(target.resolve())}, default=str))
    else:
        out.print(table(summary))
        _say_where(target)


def _show_probes(records: Sequence["Record"], target: Path, as_json: bool) -> None:
    from stallmark.analysis.probe.experiment import summarise_probes
    from stallmark.report.in_json import probes_in_json
    from stallmark.report.probe.page import write_probe_report
    from stallmark.report.probe.terminal import probe_table

    summary = summarise_probes(records)
    write_probe_report(summary, target)
    if as_json:
        click.echo(json.dumps(probes_in_json(summary) | {"report": str(target.resolve())}))
    else:
        out.print(probe_table(summary))
        _say_where(target)


def _say_where(target: Path) -> None:
    out.print(f"Report: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
