"""The options of `stallmark run` for SQL of one's own: a folder or pgbench's scripts, without a scenario file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stallmark.cli.command import Command
from stallmark.cli.common import parsing
from stallmark.errors import StallmarkError
from stallmark.experiment.companions import QuickScenario

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_UP = "3s"


@parsing
def as_duration(text: str) -> float:
    """Parse a duration option; a bare number is in seconds, as pgbench has it."""
    from stallmark.quantities import parse_seconds

    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_seconds(text)


@click.command(cls=Command)
@click.option("--sql", "folder", metavar="FOLDER", help="Drive your own SQL: a .sql file for each transaction.")
@click.option(
    "-f", "--file", "scripts", multiple=True, metavar="FILE[@WEIGHT]", help="Drive a script of pgbench; repeatable.",
)  # fmt: skip
@click.option("-D", "--define", "defined", multiple=True, metavar="NAME=VALUE", help="Set a variable of the scripts.")
@click.option("-c", "--users", type=click.IntRange(1, 10_000), help="Users of --sql or -f [default: 10].")
@click.option("-T", "--duration", callback=as_duration, metavar="TIME", help="Measured time of both [default: 60s].")
@click.option("-R", "--rate", type=click.FloatRange(0, min_open=True), help="Transactions per second of --sql or -f.")
def sql_options(
    folder: str | None, scripts: "Sequence[str]", defined: "Sequence[str]", users: int | None, duration: float | None,
    rate: float | None,
) -> QuickScenario | None:  # fmt: skip
    """Without a SCENARIO, `--sql FOLDER` or `-f FILE` drives SQL of your own."""
    if not (folder or scripts):
        if defined or users or duration or rate:
            raise click.UsageError("--users, --duration, --rate and --define belong to --sql or -f: name one of them.")
        return None
    if folder and scripts:
        raise click.UsageError("--sql and -f are two loads: name one of them.")
    if folder and defined:
        raise click.UsageError("--define sets variables of scripts: name them with -f.")
    given: Any = folder or scripts_definition(scripts, defined)
    return QuickScenario(document(given, users or 10, duration or 60.0, rate))


def document(sql: Any, users: int, duration_s: float, rate: float | None = None) -> dict[str, Any]:
    """Return the scenario of a quick run."""
    arrivals = {"arrivals": {"kind": "poisson", "rate": rate}} if rate else {}
    return {
        "name": "own-sql",
        "title": "SQL of your own",
        "workload": {"sql": sql},
        "users": users,
        "warm_up": WARM_UP,
        "measure": f"{duration_s:g}s",
        "reset": "continue",
        "variants": [{"name": "as it is"}],
        **arrivals,
    }


def scripts_definition(scripts: "Sequence[str]", defined: "Sequence[str]") -> dict[str, Any]:
    """Return the definition of a workload of pgbench's scripts, given as FILE or FILE@WEIGHT."""
    variables = dict(map(_variable, defined))
    transactions: dict[str, Any] = {}
    for script in scripts:
        file, mark, weight = script.rpartition("@")
        if not mark or not weight.isdigit():
            file, weight = script, "1"
        path = Path(file)
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.stem).strip("_-") or "script"
        name = name if name[0].isalpha() else f"script_{name}"
        if name in transactions:
            raise StallmarkError(f"Two scripts are called {name}: rename one, or give it a weight.")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StallmarkError(f"{path} cannot be read ({getattr(error, 'strerror', 'it is not UTF-8')}).") from None
        transactions[name] = {"sql": text, "weight": int(weight), "script": "pgbench"}
    return {"name": "scripts", "transactions": transactions, "define": variables}


def _variable(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[^\W\d]\w*", name):
        raise click.UsageError(f"--define {text}: write it as name=value.")
    return name, value
