"""The options of `stallmark run` for SQL of one's own: a folder or pgbench's scripts, without a scenario file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stallmark.cli.command import Command, environment_prefix
from stallmark.errors import StallmarkError
from stallmark.experiment.companions import QuickScenario
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
            raise StallmarkError(f"Two scripts are called {name}: rename one.")
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
        raise StallmarkError(
            f"--define {name}=… holds a secret, which everybody on this machine can read in the list of processes: set "
            f"{environment_prefix(context)}DEFINE to {name}=… instead."
        )
    return name, value
