"""`stallmark export` and `sql`: tables of records and metrics of their steps as CSV, and a SELECT over the tables."""

import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from stallmark import format
from stallmark.cli.command import Command
from stallmark.cli.options import json_option, runs_argument
from stallmark.cli.output import STANDARD_OUTPUT, err, out, print_markup
from stallmark.errors import StallmarkError, WrongOption
from stallmark.redact import spreadsheet

if TYPE_CHECKING:
    from stallmark.record.sql import Answer


@click.command(cls=Command)
@runs_argument
@click.option(
    "--csv", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the tables; it must be empty or not exist yet.",
)  # fmt: skip
@click.option(
    "--flat", metavar="FILE",
    help="File for the metrics of all steps, one row for each value; - for standard output.",
)  # fmt: skip
def export(runs: tuple[Path, ...], folder: Path | None, flat: str | None) -> None:
    """Write every table of runs and profiles as CSV, and columns.csv with each column's unit and meaning.

    Each of several records gets its own folder below DIR. `stallmark schema --record --markdown` describes the same
    columns, and `stallmark schema --metrics` the metrics of --flat.
    """
    if (folder is None) == (flat is None):
        raise click.UsageError(
            "Name a folder for all tables with --csv, or a file for the metrics of steps with --flat."
        )
    from stallmark.record.files import refuse_unwritable

    if folder:
        refuse_unwritable(folder, "name another with --csv")
        _export_tables(runs, folder)
    elif flat:
        _export_metrics(runs, flat)


def _export_metrics(runs: tuple[Path, ...], target: str) -> None:
    from stallmark.cli.summaries import summarise_each
    from stallmark.report import refuse_target, write_whole
    from stallmark.report.results import write_flat

    if target != STANDARD_OUTPUT:
        refuse_target(Path(target))
    text = io.StringIO()
    write_flat(summarise_each(runs), text)
    if target == STANDARD_OUTPUT:
        click.echo(text.getvalue(), nl=False)
    else:
        write_whole(text.getvalue(), Path(target))


def _export_tables(runs: tuple[Path, ...], folder: Path) -> None:
    from stallmark.record.export import export as write
    from stallmark.record.profile_tables import find_table_folders
    from stallmark.record.table_folder import by_name

    if str(folder) == STANDARD_OUTPUT:
        raise WrongOption("- is standard output, and tables need a folder: name one with --csv.")
    records = find_table_folders(runs)
    several = {folder / name: record for name, record in by_name(records, parts=2).items()}
    for target, files in write(several if len(records) > 1 else {folder: records[0]}).items():
        print_markup(out, escape(f"{target}: {len(files)} files"))


ROWS_SHOWN = 1000
"""Maximum number of rows on a terminal."""


@click.command(cls=Command)
@runs_argument
@click.argument("statement", metavar="'SELECT …'")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV to standard output, for spreadsheets.")
@json_option
def sql(runs: tuple[Path, ...], statement: str, as_csv: bool, as_json: bool) -> None:
    """Run a SELECT over the tables of runs and profiles, in DuckDB's dialect.

    The tables are those that `stallmark schema --record --markdown` describes, each with the column `run`. `steps` has
    the measured interval of each step of a run. Only one SELECT is executed, and it cannot read other files.
    """
    from stallmark.record.profile_tables import find_table_folders
    from stallmark.record.sql import answer

    if as_csv and as_json:
        raise click.UsageError("--csv and --json are given: leave one out.")
    with answer(find_table_folders(runs), statement) as answered:
        if as_csv:
            _write_csv(answered)
        elif as_json:
            _write_json(answered)
        else:
            _show(answered)


def _show(answered: "Answer") -> None:
    from stallmark.report.table import Cell, InTerminal, Table

    rows = list(islice(answered.rows, ROWS_SHOWN + 1))
    more, rows = len(rows) > ROWS_SHOWN, rows[:ROWS_SHOWN]
    columns = range(len(answered.columns))
    words = frozenset(column for column in columns if any(_is_text(row[column]) for row in rows))
    cells: list[Sequence[str | Cell]] = [[_cell(value) for value in row] for row in rows]
    # A column of nulls alone is part of the answer: it would leave if it had an importance.
    may_leave = {column: column for column in columns if column and any(row[column] != format.NONE for row in cells)}
    out.print(InTerminal(Table(list(answered.columns), cells, words, importance=may_leave)))
    if more:
        print_markup(err, f"The first {ROWS_SHOWN:,} rows: --csv and --json write all of them.")


def _is_text(value: Any) -> bool:
    return value is not None and (isinstance(value, bool) or not isinstance(value, int | float | Decimal))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return format.NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return format.short(value, 6) if math.isfinite(value) else str(value)
    return (
        json.dumps(_in_json(value), default=str, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    )


def _write_csv(answered: "Answer") -> None:
    file = csv.writer(sys.stdout, lineterminator="\n")
    file.writerow(map(spreadsheet, answered.columns))
    file.writerows([spreadsheet(value) if isinstance(value, str) else value for value in row] for row in answered.rows)


def _write_json(answered: "Answer") -> None:
    if len(set(answered.columns)) < len(answered.columns):
        raise StallmarkError("Several columns of the answer have one name: name them apart with AS.")
    rows = [dict(zip(answered.columns, map(_in_json, row), strict=True)) for row in answered.rows]
    click.echo(json.dumps(rows, allow_nan=False, default=str))


def _in_json(value: Any) -> Any:
    """Return a value as every strict reader of JSON takes it."""
    if isinstance(value, list | tuple):
        return [_in_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _in_json(item) for key, item in value.items()}
    if isinstance(value, Decimal):
        value = float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
