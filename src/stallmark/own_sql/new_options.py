"""The option of `stallmark new` that begins a workload of one's own SQL."""

import shlex
from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.output import escape, out, print_markup
from stallmark.errors import StallmarkError

SCHEMA = Path(__file__).with_name("workload.schema.json")
"""The schema that `stallmark schema --workload` prints: editors find it by the first line of workload.yaml."""
STARTER = Path(__file__).parent / "shop"
"""The files of a workload that works on the database that its setup.sql makes."""
STARTER_IN_T_SQL = STARTER.with_name("shop_t_sql")
"""The same workload in T-SQL: the files that differ from those of STARTER."""


@click.command(cls=Command)
@click.option("--workload", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Write an example of your own SQL to FOLDER, instead of a scenario.")  # fmt: skip
@click.option("--t-sql", is_flag=True, help="Write the example for SQL Server, not for PostgreSQL.")
def sql_options(workload: Path | None, t_sql: bool) -> Path | None:
    if workload is None:
        if t_sql:
            raise click.UsageError("--t-sql is for an example of your own SQL: name its folder with --workload.")
        return None
    if workload.exists() and any(workload.iterdir()):
        raise StallmarkError(f"{workload} holds something: name another folder, or empty it.")
    for file in sorted(STARTER.rglob("*")):
        if file.is_file():
            path = file.relative_to(STARTER)
            (target := workload / path).parent.mkdir(parents=True, exist_ok=True)
            source = STARTER_IN_T_SQL / path if t_sql and (STARTER_IN_T_SQL / path).exists() else file
            # The starter's first line names the schema by a relative path, which leads nowhere from the user's folder.
            text = source.read_text(encoding="utf-8").replace(f"../{SCHEMA.name}", str(SCHEMA), 1)
            target.write_text(text, encoding="utf-8")
    named = shlex.quote(str(workload))
    print_markup(
        out, escape(f"{workload} holds a small shop: change it, then stallmark run --sql {named} --server URL")
    )
    return workload
