"""`stallmark list`, `new` and `schema`: the scenarios, one of your own, and the formats of files."""

import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from stallmark import capabilities
from stallmark.cli.command import Command, Extensible
from stallmark.cli.options import json_option, parsing
from stallmark.cli.output import item, out, print_markup
from stallmark.errors import StallmarkError


@click.command(cls=Command, name="list")
@click.argument("scenarios", nargs=-1)
@json_option
def list_scenarios(scenarios: tuple[str, ...], as_json: bool) -> None:
    """List the scenarios: the question, needs and duration of each.

    SCENARIOS are names of `stallmark list` or your own files; without them all are listed.

    The duration is an estimate for the embedded PostgreSQL, corrected by earlier runs in stallmark-runs.
    """
    from stallmark.experiment.status import pace
    from stallmark.scenarios.read import read_any_scenario, shipped

    here = pace(Path("stallmark-runs"))
    known = [read_any_scenario(name) for name in scenarios or shipped()]
    words = [
        {k: getattr(s, k) for k in ("name", "title", "answers", "needs")} | _history(s) | _takes(s, here) for s in known
    ]
    if as_json:
        click.echo(json.dumps(words))
        return
    for word in words:
        print_markup(out, f"[bold]{word['name']}[/]  {escape(word['title'])}")
        for label in ("answers", "needs", "history", "takes"):
            if word.get(label):
                item(f"    {label:8}", escape(word[label]))


def _history(scenario) -> dict[str, str | float]:
    """Return the depth of the brokerage's history; nothing for a scenario without a brokerage."""
    from stallmark.report.text import history_line
    from stallmark.scenarios.model import AnyScenario

    if not isinstance(scenario, AnyScenario):
        return {}
    history = scenario.contents.history
    if history is None:
        return {}
    return {"history": history_line(history), "trades_per_account": history.trades_per_account}


def _takes(scenario, pace: float) -> dict[str, str | float]:
    from stallmark.experiment.estimate import estimate
    from stallmark.experiment.target import Target
    from stallmark.report.text import experiment
    from stallmark.scenarios.model import AnyScenario

    absent = not isinstance(scenario, AnyScenario) or Target().is_absent(scenario.contents)
    expected = estimate(scenario, to_build=float(absent), to_copy=absent, pace=pace)
    text = experiment.takes(
        expected.total_s,
        expected.build_s,
        at_most=expected.ends_sooner,
        asks=expected.asks,
        longest_s=expected.longest_s,
    )
    return {"takes": text, "takes_s": round(expected.total_s)}


OF_THE_SHIPPED = r"^(title|answers|needs):.*\n(?:[ \t].*\n)*"
"""The keys that describe the copied scenario's purpose, which an edited copy no longer has."""


@parsing
def _name(name: str) -> str:
    from stallmark.scenarios.read import locate

    locate(name)
    return name


@click.command(cls=Extensible)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--from", "source", default="buffer-pool", show_default=True, callback=_name, help="Name of the scenario to copy."
)
def new(file: Path | None, source: str, added: Sequence[Any]) -> None:
    """Write a scenario to FILE for editing: a copy of one of `stallmark list`."""
    if file is None:
        # The option of a capability has written the files already.
        if added:
            return
        raise click.UsageError("Name a FILE for the scenario.")
    from stallmark.report import write_whole
    from stallmark.scenarios.model import FILE, SHIPPED
    from stallmark.scenarios.read import locate, read_any_scenario

    if os.path.lexists(file):  # a link that leads nowhere, too
        raise StallmarkError(f"{file} exists: name another file, or remove it.")
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower())[:60].strip("-") or "mine"
    # Refuses an invalid scenario before the file is written.
    read_any_scenario(source)
    given = locate(source).read_text(encoding="utf-8-sig").splitlines()
    lines = [line for line in given if not line.startswith("# yaml-language-server:")]
    written = f'"{name}"' if name in ("true", "false", "null") or not name[0].isalpha() else name
    text = re.sub(r"^name:.*$", f"name: {written}", "\n".join(lines), count=1, flags=re.MULTILINE)
    text = re.sub(OF_THE_SHIPPED, "", text, flags=re.MULTILINE)
    write_whole(f"# yaml-language-server: $schema={SHIPPED / FILE}\n{text}\n", file)
    read_any_scenario(str(file))
    print_markup(
        out, escape(f"{file} holds a copy of {source}: change it, then stallmark run {shlex.quote(str(file))}")
    )


@click.command(cls=Command)
@click.option(
    "--record",
    is_flag=True,
    help="Print the format of runs and of profiles: every table, column, unit and meaning, and the manifest.",
)
@click.option("--workload", is_flag=True, help="Print the JSON schema of workload.yaml, for a folder of your own SQL.")
@click.option("--markdown", is_flag=True, help="Print Markdown, a page to read.")
@click.option(
    "--metrics", is_flag=True, help="Print the metrics of a step as a page: units, formulas, and which can have limits."
)
def schema(record: bool, workload: bool, markdown: bool, metrics: bool) -> None:
    """Print the JSON schema of scenario files, or with --record the format of records."""
    named = {"--record": record, "--workload": workload, "--metrics": metrics}
    if len(several := [option for option, given in named.items() if given]) > 1:
        raise click.UsageError(f"{' and '.join(several)} are given: name one of them.")
    if workload and markdown:
        raise click.UsageError("--workload has no page: leave out --markdown.")
    if metrics:
        from stallmark.analysis.metrics import reference

        text, markdown = reference(), True
    elif record:
        from stallmark.collectors import data_format

        text = data_format.markdown() if markdown else json.dumps(data_format.in_json(), indent=1)
    elif workload:
        if not (made := capabilities.parts("schema")):
            raise StallmarkError("This Stallmark lacks the capability `own_sql`, which has workloads: install it.")
        text = json.dumps(made[0](), indent=1)
    else:
        from stallmark.scenarios.model import json_schema, reference

        text = reference() if markdown else json.dumps(json_schema(), indent=1)
    click.echo(text, nl=not markdown)
