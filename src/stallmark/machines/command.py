"""`stallmark worker`: drive a share of the load of runs started on another machine."""

import click

from stallmark.cli.command import Command
from stallmark.cli.common import err, server_option
from stallmark.driver.load import MASTER_PORT
from stallmark.experiment.progress import Show


@click.command(cls=Command)
@server_option(required=True)
@click.option("--master-host", required=True, metavar="HOST", help="Where `stallmark run` is started.")
@click.option("--master-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True)
def worker(server: str, master_host: str, master_port: int) -> None:
    """Drive a share of the load of runs started elsewhere (`stallmark run --expect-workers N`).

    Serves run after run until Ctrl-C. The server's URL and password are given here as well: they are not sent. What is
    sent is neither encrypted nor signed, as Locust has it: keep it in a network you trust.
    """
    from stallmark.machines.serving import serve

    serve(server, master_host, master_port, Show(err))
