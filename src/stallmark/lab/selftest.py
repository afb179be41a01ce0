"""`stallmark selftest`, which is `stallmark doctor --deep`."""

import json
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stallmark.cli.command import Command
from stallmark.cli.options import json_option, out_option, target_options
from stallmark.cli.output import ShowInSentences, err
from stallmark.redact import markdown

if TYPE_CHECKING:
    from stallmark.experiment.target import Target

_PARAMETERS = ("out_dir", "seconds", "keep", "cap_memory")
"""The parameters of a selftest alone."""


def _options(command: Callable) -> Callable:
    @out_option("Folder for the run record of the test.")
    @click.option(
        "--seconds",
        type=click.IntRange(1),
        default=30,
        show_default=True,
        help="Seconds for which the test drives users.",
    )
    @click.option("--keep", is_flag=True, help="Keep the database that the test builds.")
    @click.option(
        "--cap-memory", is_flag=True,
        help="Allow the test to lower the memory of the whole server for a moment.",
    )  # fmt: skip
    @wraps(command)
    def with_options(**options):
        return command(**options)

    return with_options


@click.command(cls=Command)
@target_options
@_options
@json_option
def selftest(**options) -> None:
    """Try everything on a server in a few minutes and show what worked: the same as `stallmark doctor --deep`.

    The database in the URL must exist and be empty. The output contains no host name and no password, so that you can
    paste it into an issue.

    With --cap-memory the memory of the whole server is lowered by a tenth for a moment, which also empties its plan
    cache on many versions. Without --cap-memory this check is skipped.
    """
    try_everything(**options)


@click.command()
@click.option(
    "--deep", is_flag=True, help="Also build, drive and check small databases; the options below belong to --deep."
)
@_options
@click.pass_context
def deep(context: click.Context, deep: bool, **options: Any) -> Callable | None:
    """With --deep everything is tried, in a few minutes. The database in --server must then exist and be empty, and is
    emptied again afterwards."""
    if deep:
        return partial(try_everything, **options)
    if given := [
        parameter for parameter in _PARAMETERS if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
    ]:
        option = "--out" if given[0] == "out_dir" else f"--{given[0].replace('_', '-')}"
        raise click.UsageError(f"{option} is an option of --deep: add --deep, or leave it out.")
    return None


def try_everything(target: "Target", out_dir: Path, seconds: int, keep: bool, cap_memory: bool, as_json: bool) -> None:
    """Run the selftest, print what worked, and exit with its code."""
    from stallmark.lab import selftest_checks

    show = ShowInSentences(err)
    result = selftest_checks.selftest(target, out_dir, show, seconds=seconds, keep=keep, may_cap_memory=cap_memory)
    if as_json:
        checks = [check.in_json() for check in result.checks]
        click.echo(json.dumps({"facts": dict(result.facts), "checks": checks, "record": str(result.record)}))
    else:
        for name, fact in result.facts.items():
            click.echo(f"- {name}: {markdown(str(fact))}")
        click.echo("\n| check | result | |\n|---|---|---|")
        for check in result.checks:
            click.echo(f"| {check.subject} | {check.state} | {markdown(check.result)} |")
        click.echo("")
    sys.exit(result.exit_code)
