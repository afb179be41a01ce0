"""`stallmark server`: the commands `up`, `list` and `down` for a SQL Server of your own in a container, and `stallmark
selftest`, which is `stallmark doctor --deep`."""

import json
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stallmark import format
from stallmark.cli.command import Command, Group
from stallmark.cli.options import as_bytes, json_option, out_option, target_options
from stallmark.cli.output import ShowInSentences, err, escape, out, print_markup
from stallmark.experiment.progress import Show
from stallmark.redact import markdown

if TYPE_CHECKING:
    from stallmark.experiment.target import Target


@click.group(cls=Group)
def server() -> None:
    """Start, list and stop SQL Servers in containers."""


@server.command()
@click.option("--version", type=click.Choice(["2017", "2019", "2022", "2025"]), default="2022", show_default=True,
              help="Version of SQL Server.")  # fmt: skip
@click.option("--name", default="stallmark", show_default=True, help="Name of the container.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=1433,
    show_default=True,
    help="Port on 127.0.0.1, reachable from this machine only.",
)
@click.option(
    "--memory",
    default="4GiB",
    show_default=True,
    callback=as_bytes,
    help="Memory of the container; SQL Server gets 80 %.",
)
@click.option("--cpus", type=click.FloatRange(0, min_open=True), help="Number of cores [default: all].")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder for all files of the server [default: a Docker volume]."
)
@click.option("--log", type=click.Path(path_type=Path), help="Folder for transaction logs, on another device.")
@click.option(
    "--device-read-iops",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum reads per second on each disk under the folders.",
)
@click.option(
    "--device-write-iops", type=click.IntRange(1), metavar="N", help="Maximum writes per second on each disk."
)
@click.option(
    "--device-read-bps",
    callback=as_bytes,
    metavar="SIZE",
    help="Maximum bytes read per second on each disk, such as 200MB.",
)
@click.option(
    "--device-write-bps", callback=as_bytes, metavar="SIZE", help="Maximum bytes written per second on each disk."
)
@click.option("--edition", help="Edition of SQL Server, as in MSSQL_PID [default: Developer].")
@click.option("--accept-eula", is_flag=True, help="Confirm that you have read and accept Microsoft's licence.")
@json_option
def up(
    accept_eula: bool, as_json: bool, memory: int, device_read_iops, device_write_iops, device_read_bps,
    device_write_bps, **wishes,
) -> None:  # fmt: skip
    """Start Microsoft's SQL Server in a container, and wait until it accepts logins."""
    from stallmark.lab import server_container
    from stallmark.lab.server_order import DeviceLimits, ServerOrder

    limits = DeviceLimits(device_read_iops, device_write_iops, device_read_bps, device_write_bps)
    order = ServerOrder(memory_bytes=memory, limits=limits, **wishes)
    ready = server_container.up(order, Show(err), accept_eula=accept_eula)
    if as_json:
        click.echo(
            json.dumps(
                {"name": order.name, "server": str(ready.identity), "url": ready.url}
                | {"url_file": str(ready.url_file), "password_file": str(ready.password_file)}
            )
        )
        return
    print_markup(out, f"{ready.identity} takes logins on 127.0.0.1:{order.port}.")
    print_markup(
        out, f"The password of sa is in {escape(str(ready.password_file))}, which only you can read. Use it so:"
    )
    print_markup(out, f"  stallmark doctor --server @{escape(str(ready.url_file))}")
    print_markup(
        out, f"  SQLCMDPASSWORD=$(cat {escape(str(ready.password_file))}) stallmark doctor --server '{ready.url}'"
    )


@server.command()
@click.argument("name", default="stallmark")
@click.option("--remove-data", is_flag=True, help="Also remove the databases and the password.")
def down(name: str, remove_data: bool) -> None:
    """Stop a server and remove its container; its data stays without --remove-data."""
    from stallmark.lab import server_container

    for sentence in server_container.down(name, remove_data=remove_data):
        print_markup(out, escape(sentence))


@server.command(name="list")
@json_option
def list_servers(as_json: bool) -> None:
    """List the servers that `up` made on this machine."""
    from stallmark.lab import server_container

    servers = server_container.servers()
    if as_json:
        click.echo(json.dumps(servers))
        return
    for facts in servers:
        memory = format.size(facts["memory_bytes"])
        print_markup(
            out,
            f"[bold]{facts['name']}[/]  SQL Server {facts['version']}, {facts['state']}, 127.0.0.1:{facts['port']}, "
            f"{memory}, data in {escape(str(facts['data']))}",
        )
    if not servers:
        print_markup(out, "None: `stallmark server up` starts one.")


# The trial of everything: `stallmark selftest`, and the options that it adds to `stallmark doctor`.

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
