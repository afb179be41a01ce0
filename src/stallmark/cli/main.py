"""The command `stallmark`."""

from typing import Any

import click

from stallmark import capabilities
from stallmark.cli.command import LazyGroup, Unloaded
from stallmark.cli.ending import one_sentence
from stallmark.stopping import listen

# By command, the first sentence of its help: that of its docstring, which is not read for the help of all commands.
GROUPS = {
    "Start": {
        "doctor": "Say what works on this machine (and server), and what is missing.",
        "list": "List the scenarios: what each answers, needs and takes.",
        "new": "Write a scenario to FILE, to be changed: a copy of one of `stallmark list`.",
        "schema": "Print the JSON schema of scenario files, or with --record the format of run records.",
        "db": "Databases that Stallmark has built: build, check, list, remove.",
        "build": "Build a database, or complete one whose build was interrupted.",
        "check": "Check that a database is whole and consistent.",
    },
    "Measure": {
        "run": "Run a SCENARIO: one of `stallmark list`, or a YAML file of yours.",
        "characterise": "Tell how a load reads: over the size of memory, over the data, by table and by transaction.",
        "status": "Say how far an experiment is: from its records, also on another machine that sees their folder.",
        "probe": "Measure raw storage, without a database: SQLIO's way, through fio (Windows: diskspd).",
    },
    "Judge": {
        "report": "Make the report of run records, a server's profile or a sizing, from what was recorded alone.",
        "compare": "Compare variants over their runs: better, worse, no difference shown, or why that cannot be said.",
        "plan": "Say how many runs show a wanted difference, from how much the RUNs scatter.",
        "whatif": "Predict throughput if reads took another time, from runs already made.",
        "runs": "List the experiments that were run; with a SCENARIO, its throughput over time.",
        "sql": "Answer a SELECT over the tables of run records, in DuckDB's dialect.",
        "export": "Write every table of a run as CSV, and columns.csv with the unit and meaning of each column.",
    },
    "Servers, arrays and load machines": {
        "copies": "List the backups that `reset: restore` has left on a SQL Server; with --remove, remove those of a "
        "database."
    },
}

# A command stands in the module of its name; this does not.
MODULES = {"list": "list_scenarios"}


class _Commands(LazyGroup):
    """A group whose commands end user errors with one sentence and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, lines in GROUPS.items():
            added = [
                command
                for capability in capabilities.installed()
                for command in capability.commands
                if command.group == title
            ]
            with formatter.section(title):
                formatter.write_dl([*lines.items(), *((command.name, command.help) for command in added)])

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
    from stallmark.cli.leftovers import sweep

    if context.invoked_subcommand != "doctor":  # which lists what is left
        sweep()


for lines in GROUPS.values():
    for command, help_line in lines.items():
        main.add_command(Unloaded(command, f"stallmark.cli.{MODULES.get(command, command)}", help_line))
for capability in capabilities.installed():
    for entry in capability.commands:
        main.add_command(Unloaded(entry.name, entry.module, entry.help))


if __name__ == "__main__":
    main()
