"""`stallmark export`: the tables of runs, or the metrics of their steps, as CSV."""

import sys
from pathlib import Path
from typing import TextIO

import click

from stallmark.cli.command import Command
from stallmark.cli.common import escape, out, print_markup, runs_argument


@click.command(cls=Command)
@runs_argument
@click.option(
    "--csv", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the tables; it must be empty or not exist yet.",
)  # fmt: skip
@click.option(
    "--flat", "file", metavar="FILE", type=click.File("w", encoding="utf-8", atomic=True),
    help="File for the metrics of all steps, one row for each value; - for standard output.",
)  # fmt: skip
def export(runs: tuple[Path, ...], folder: Path | None, file: TextIO | None) -> None:
    """Write every table of a run as CSV, and columns.csv with the unit and meaning of each column.

    Each of several runs gets its own folder below DIR. `stallmark schema --record --markdown` describes the same
    columns, and `stallmark schema --metrics` the metrics of --flat.
    """
    if (folder is None) == (file is None):
        raise click.UsageError(
            "Name a folder for all tables with --csv, or a file for the metrics of steps with --flat."
        )
    from stallmark.record.files import refuse_unwritable
    from stallmark.report.targets import refuse_target

    if folder:
        refuse_unwritable(folder, "name another with --csv")
    if file and file.name != sys.stdout.name:
        refuse_target(Path(file.name))
    if file:
        from stallmark.cli.summaries import summarise_each
        from stallmark.report.flat import write_flat

        write_flat(summarise_each(runs), file)
    if folder:
        _export_tables(runs, folder)


def _export_tables(runs: tuple[Path, ...], folder: Path) -> None:
    from stallmark.record.export import export as write
    from stallmark.record.reader import find_records

    records = find_records(runs)
    several = len(records) > 1
    for record in records:
        place = record.folder.resolve()
        target = folder / place.parent.name / place.name if several else folder
        files = write(record, target)
        print_markup(out, escape(f"{target}: {len(files)} files"))
