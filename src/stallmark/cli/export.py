"""`stallmark export`: the tables of runs as CSV."""

from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import escape, out, print_markup, runs_argument


@click.command(cls=Command)
@runs_argument
@click.option(
    "--csv", "folder", metavar="DIR", required=True, type=click.Path(path_type=Path, file_okay=False),
    help="The folder for them, which must be empty or not there yet.",
)  # fmt: skip
def export(runs: tuple[Path, ...], folder: Path) -> None:
    """Write every table of a run as CSV, and columns.csv with the unit and meaning of each column.

    Of several runs, each gets a folder of its own below DIR. `stallmark schema --record --markdown` says the same of
    the Parquet files of a record.
    """
    from stallmark.record.export import export as write
    from stallmark.record.reader import find_records

    records = find_records(runs)
    several = len(records) > 1
    for record in records:
        place = record.folder.resolve()
        target = folder / place.parent.name / place.name if several else folder
        files = write(record, target)
        print_markup(out, escape(f"{target}: {len(files)} files"))
