"""`stallmark check-sql`: try SQL of one's own before a load."""

import json
from dataclasses import asdict

import click
from rich.table import Table

from stallmark.cli.command import Command
from stallmark.cli.options import json_option, target_options
from stallmark.cli.output import escape, out, print_markup
from stallmark.own_sql.run_options import document, scripts_definition


@click.command("check-sql", cls=Command)
@click.argument("folder", required=False)
@click.option("-f", "--file", "scripts", multiple=True, metavar="FILE[@WEIGHT]", help="Try a script of pgbench.")
@click.option("-D", "--define", "defined", multiple=True, metavar="NAME=VALUE", help="Set a variable of the scripts.")
@target_options
@json_option
def check_sql(folder: str | None, target, scripts: tuple[str, ...], defined: tuple[str, ...], as_json: bool) -> None:
    """Try each statement of a FOLDER of SQL on a server, and roll it back.

    Sequences are not rolled back: they keep the values that the statements reached.
    """
    from stallmark.loaders.databases import build
    from stallmark.own_sql.examine import examine
    from stallmark.scenarios.read import read_document
    from stallmark.transactions import find_workload

    if bool(folder) == bool(scripts):
        raise click.UsageError("Name a FOLDER, or scripts with -f.")
    given = folder or scripts_definition(scripts, defined)
    choice = read_document(document(given)).contents
    workload = find_workload(choice.name)
    with target.engine(choice, make=False) as engine:
        if engine.is_local:
            # The embedded server begins empty, and statements need the tables of setup.sql. On a server by URL that
            # file is never executed: the database there is the user's.
            build(engine, workload, {}, choice.seed, workers=1)
        tried = examine(engine, workload)
    if as_json:
        click.echo(json.dumps([asdict(statement) for statement in tried], indent=2))
        return
    table = Table("transaction", "line", "statement", "parameters", "rows", "ms", box=None)
    for statement in tried:
        types = statement.types or [""] * len(statement.parameters)
        named = [f":{name} {kind}".strip() for name, kind in zip(statement.parameters, types, strict=False)]
        row = [statement.transaction, str(statement.line), statement.text[:60], ", ".join(named)]
        table.add_row(*map(escape, row), _format_value(statement.rows), _format_value(statement.ms))
    out.print(table)
    # SQL Server sees a statement when it is executed, where PostgreSQL has prepared it before.
    seen = sum(statement.rows is not None or statement.types is not None for statement in tried)
    every = "the statement" if seen == 1 else f"all {seen} statements"
    statements = every if seen == len(tried) else f"{seen} of {len(tried)} statements"
    print_markup(out, f"The server takes {statements}, and kept nothing.")
    if seen < len(tried):
        print_markup(out, "It has not seen the others: an earlier statement returned no row for them.")
    for statement in tried:
        if statement.commits:
            place = f"{statement.transaction}.sql, line {statement.line}"
            print_markup(out, escape(f"{place} commits by itself: it was prepared, and not executed."))


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"
