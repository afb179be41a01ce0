"""The command `stallmark`."""

from typing import Any

import click

from stallmark.cli.array import array
from stallmark.cli.attach import attach
from stallmark.cli.build import build
from stallmark.cli.characterise import characterise
from stallmark.cli.check import check
from stallmark.cli.common import Group
from stallmark.cli.compare import compare
from stallmark.cli.copies import copies
from stallmark.cli.db import db
from stallmark.cli.doctor import doctor
from stallmark.cli.ending import one_sentence
from stallmark.cli.export import export
from stallmark.cli.leftovers import sweep
from stallmark.cli.list_scenarios import list_scenarios
from stallmark.cli.live import live
from stallmark.cli.new import new
from stallmark.cli.plan import plan
from stallmark.cli.probe import probe
from stallmark.cli.profile import profile
from stallmark.cli.report import report
from stallmark.cli.run import run
from stallmark.cli.runs import runs
from stallmark.cli.schema import schema
from stallmark.cli.selftest.command import selftest
from stallmark.cli.server.commands import server
from stallmark.cli.size import size
from stallmark.cli.status import status
from stallmark.cli.whatif import whatif
from stallmark.cli.worker import worker
from stallmark.stopping import listen

GROUPS = {
    "Start": (doctor, list_scenarios, new, schema, db, build, check),
    "Measure": (run, characterise, status, live, probe, profile, attach),
    "Judge": (report, compare, size, plan, whatif, runs, export),
    "Servers, arrays and load machines": (server, selftest, copies, array, worker),
}


class _Commands(Group):
    """A group whose commands end user errors with one sentence and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(150)) for one in commands])

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with one_sentence():  # --help and --version write here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        listen()
        with one_sentence():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stallmark")
@click.pass_context
def main(context: click.Context) -> None:
    """Show what storage and memory do to a real database.

    Exit codes: 0 all well, 1 a consistency condition does not hold, 2 wrong command line, 3 could not do it,
    4 the run is incomplete or its result never committed, 5 a threshold was not kept, no candidate carries a load, or
    a comparison is as --fail-if says or could not be made, 6 its runs cannot tell whether it is as --fail-if says,
    70 a bug in Stallmark, 130 stopped by Ctrl-C, 129 or 143 by another signal, 141 nobody read the output on.
    """
    if context.invoked_subcommand != "doctor":  # which lists what is left
        sweep()


for command in (command for commands in GROUPS.values() for command in commands):
    main.add_command(command)


if __name__ == "__main__":
    main()
