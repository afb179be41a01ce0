"""`stallmark server`: the commands `up`, `list` and `down` for a SQL Server of your own in a container."""

import json
from pathlib import Path

import click

from stallmark import format
from stallmark.cli.command import Group
from stallmark.cli.options import as_bytes, json_option
from stallmark.cli.output import err, escape, out, print_markup
from stallmark.experiment.progress import Show


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
