"""The command `stallmark worker`, and the options of a run that waits for load machines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stallmark.cli.command import Command
from stallmark.cli.options import server_option
from stallmark.cli.output import err
from stallmark.driver.load import MASTER_PORT, ExpectedMachines
from stallmark.errors import StallmarkError
from stallmark.experiment import LoadMachines
from stallmark.experiment.progress import Show

if TYPE_CHECKING:
    from stallmark.engines.base import Engine
    from stallmark.scenarios.model import AnyScenario


# The load machines that `stallmark run` waits for, by its options.


@dataclass(frozen=True)
class Machines(LoadMachines):
    """The load machines of a run: `count` of them connect to this one at `host` ("*": any address) and `port`."""

    count: int
    host: str
    port: int

    def refuse(self, scenario: "AnyScenario", engine: "Engine") -> None:
        from stallmark.experiment.preflight import users_loads
        from stallmark.scenarios.model import TimedScenario
        from stallmark.web_access import refuse_port_in_use

        if not isinstance(scenario, TimedScenario):
            raise StallmarkError(
                f"{scenario.name} runs queries, which take next to no time of this machine: leave out --expect-workers."
            )
        if engine.is_local:
            raise StallmarkError(
                "Load machines reach a server over the network, but the embedded one listens on this machine only: "
                "name a server with --server."
            )
        if (users := min(load.most_users for load in users_loads(scenario))) < self.count:
            raise StallmarkError(
                f"{users:,} users cannot be spread over {self.count:,} load machines: choose more users, or "
                "fewer machines with --expect-workers."
            )
        refuse_port_in_use(self.host.removeprefix("*"), self.port, "the load machines")

    def expected_machines(self, engine: "Engine") -> ExpectedMachines:
        from stallmark.machines.serving import facts_of

        return ExpectedMachines(self.count, self.host, self.port, facts_of(engine))


@click.command()
@click.option(
    "--expect-workers", type=click.IntRange(1), metavar="N",
    help="Number of load machines, each running `stallmark worker`; no users run on this machine then.",
)  # fmt: skip
@click.option("--master-bind-host", default="*", show_default=True, help="Address that load machines connect to.")
@click.option("--master-bind-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True,
              help="Port that load machines connect to.")  # fmt: skip
def machines(expect_workers: int | None, master_bind_host: str, master_bind_port: int) -> Machines | None:
    return Machines(expect_workers, master_bind_host, master_bind_port) if expect_workers else None


# `stallmark worker`: drive a share of the load of runs started on another machine.
@click.command(cls=Command)
@server_option(required=True)
@click.option("--master-host", required=True, metavar="HOST", help="Host that runs `stallmark run`.")
@click.option("--master-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True,
              help="Port of `stallmark run` (--master-bind-port).")  # fmt: skip
def worker(server: str, master_host: str, master_port: int) -> None:
    """Drive a share of the load of runs started on another machine (`stallmark run --expect-workers N`).

    Serves one run after another until Ctrl-C. Give the server's URL and password here too: they are not sent over the
    network. Locust neither encrypts nor signs its messages: use a network that you trust.
    """
    from stallmark.machines.serving import serve

    serve(server, master_host, master_port, Show(err))
