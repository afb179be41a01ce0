"""Shows records of probes: the report beside them, and a table in the terminal or JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from stallmark.record.reader import Record


def show_probes(records: Sequence[Record], target: Path, as_json: bool, console: Console) -> None:
    """Raises StallmarkError when a record is damaged."""
    from stallmark.analysis.probe.experiment import summarise_probes
    from stallmark.report.probe.page import write_probe_report
    from stallmark.report.probe.terminal import probe_table

    summary = summarise_probes(records)
    write_probe_report(summary, target)
    if as_json:
        click.echo(json.dumps(summary.as_json() | {"report": str(target.resolve())}))
    else:
        console.print(probe_table(summary))
        console.print(f"Report: {target.resolve()}", soft_wrap=True, highlight=False, markup=False)
