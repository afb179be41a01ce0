"""SQL of one's own on the command line: options of `stallmark run` and `stallmark new`, and `stallmark check-sql`."""

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.markup import escape
from rich.table import Table

from stallmark.cli.command import Command, environment_prefix
from stallmark.cli.options import json_option, target_options
from stallmark.cli.output import out, print_markup
from stallmark.errors import StallmarkError, WrongOption
from stallmark.experiment import QuickScenario
from stallmark.redact import holds_secret, names_secret

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(cls=Command)
@click.option("--sql", "folder", metavar="FOLDER", help="Drive your own SQL: a .sql file for each transaction.")
@click.option(
    "-f", "--file", "scripts", multiple=True, metavar="FILE[@WEIGHT]", help="Drive a script of pgbench; repeatable.",
)  # fmt: skip
@click.option("-D", "--define", "defined", multiple=True, metavar="NAME=VALUE", help="Set a variable of the scripts.")
def run_options(folder: str | None, scripts: "Sequence[str]", defined: "Sequence[str]") -> QuickScenario | None:
    """Without a SCENARIO, `--sql FOLDER` or `-f FILE` drives SQL of your own."""
    if folder and scripts:
        raise click.UsageError("--sql and -f are two loads: name one of them.")
    if defined and not scripts:
        raise click.UsageError("--define sets variables of scripts: name them with -f.")
    given = folder or (scripts_definition(scripts, defined) if scripts else None)
    return QuickScenario(document(given)) if given else None


def document(sql: Any) -> dict[str, Any]:
    """Return the scenario of a quick run."""
    return {
        "name": "own-sql",
        "title": "SQL of your own",
        "workload": {"sql": sql},
        "users": 10,
        "warm_up": "3s",
        "measure": "60s",
        # A quick run may be on a database of the user's, which Stallmark does not restore unasked.
        "reset": "continue",
        "variants": [{"name": "as it is"}],
    }


def scripts_definition(scripts: "Sequence[str]", defined: "Sequence[str]") -> dict[str, Any]:
    """Return the definition of a workload of pgbench's scripts, given as FILE or FILE@WEIGHT."""
    variables = dict(map(_variable, defined))
    transactions: dict[str, Any] = {}
    for script in scripts:
        # This is pgbench's notation. A path may have an @ of its own, so only digits behind the last one are a weight.
        file, mark, weight = script.rpartition("@")
        if not mark or not weight.isdigit():
            file, weight = script, "1"
        path = Path(file)
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.stem).strip("_-") or "script"
        name = name if name[0].isalpha() else f"script_{name}"
        if name in transactions:
            raise WrongOption(f"Two scripts are called {name}: rename one.")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StallmarkError(f"{path} cannot be read ({getattr(error, 'strerror', 'it is not UTF-8')}).") from None
        if not text.strip():
            raise StallmarkError(f"{path} is empty: write a statement, or leave it out.")
        transactions[name] = {"sql": text, "weight": int(weight), "script": "pgbench"}
    return {"name": "scripts", "transactions": transactions, "define": variables}


def _variable(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[^\W\d]\w*", name):
        raise click.UsageError(f"--define {text}: write it as name=value.")
    context = click.get_current_context(silent=True)
    is_secret = names_secret(name) or holds_secret(value)
    if is_secret and context and context.get_parameter_source("defined") is ParameterSource.COMMANDLINE:
        raise WrongOption(
            f"--define {name}=… holds a secret, which everybody on this machine can read in the list of processes: set "
            f"{environment_prefix(context)}DEFINE to {name}=… instead."
        )
    return name, value


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
def new_options(workload: Path | None, t_sql: bool) -> Path | None:
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
