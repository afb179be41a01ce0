"""The command `stallmark`."""

from typing import Any

import click

from stallmark import capabilities
from stallmark.cli.command import LazyGroup, Unloaded
from stallmark.cli.ending import one_sentence
from stallmark.stopping import listen

# The first sentence of each command's docstring, repeated here so that `--help` imports no module of a command.
GROUPS = {
    "Start": {
        "doctor": "Show what works on this machine (and server), and what is missing.",
        "list": "List the scenarios: the question, needs and duration of each.",
        "new": "Write a scenario to FILE for editing: a copy of one of `stallmark list`.",
        "schema": "Print the JSON schema of scenario files, or with --record the format of run records.",
        "db": "Build, check, list and remove databases of Stallmark.",
        "build": "Build a database, or complete one whose build was interrupted.",
        "check": "Check that a database is complete and consistent.",
    },
    "Measure": {
        "run": "Run a SCENARIO: one of `stallmark list`, or your own YAML file.",
        "characterise": "Show how a load reads: by size of memory, across the data, by table and by transaction.",
        "status": "Show the progress of an experiment, from its records, on any machine that can read them.",
        "probe": "Measure raw storage without a database, as SQLIO does, with fio (Windows: diskspd).",
    },
    "Judge": {
        "report": "Write the report of run records, a server's profile or a sizing, from the records alone.",
        "compare": "Compare variants over their runs: better, worse, no difference shown, or not comparable.",
        "plan": "Show how many runs are needed to show a difference, given the variation between RUNs.",
        "whatif": "Predict throughput at other read times, from existing runs.",
        "runs": "List past experiments; with a SCENARIO, its throughput over time.",
        "sql": "Run a SELECT over the tables of run records, in DuckDB's dialect.",
        "export": "Write every table of a run as CSV, and columns.csv with the unit and meaning of each column.",
    },
    "Servers, arrays and load machines": {
        "copies": "List the backups that `reset: restore` left on a SQL Server; "
        "with --remove, remove those of a database."
    },
}

# A command stands in the module of its name; this does not.
MODULES = {"list": "list_scenarios"}


class _Commands(LazyGroup):
    """The group of all commands: errors end a command with one sentence and an exit code."""

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

    Exit codes: 0: all well; 1: a consistency condition does not hold; 2: wrong command line; 3: the command failed;
    4: the run is incomplete, or its primary transaction never committed; 5: a threshold was not met, no candidate
    carries the load, --fail-if applies, or a comparison could not be made; 6: these runs cannot decide whether
    --fail-if applies; 70: a bug in Stallmark; 130: stopped by Ctrl-C; 129 or 143: stopped by another signal; 141: the
    reader closed the output.
    """
    from stallmark.cli.leftovers import sweep

    # `doctor` lists the leftovers instead.
    if context.invoked_subcommand != "doctor":
        sweep()


for lines in GROUPS.values():
    for command, help_line in lines.items():
        main.add_command(Unloaded(command, f"stallmark.cli.{MODULES.get(command, command)}", help_line))
for capability in capabilities.installed():
    for entry in capability.commands:
        main.add_command(Unloaded(entry.name, entry.module, entry.help))


if __name__ == "__main__":
    main()
