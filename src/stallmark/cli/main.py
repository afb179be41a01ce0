"""The command `stallmark`: its commands, and its end with one sentence and an exit code for every reason."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from stallmark import capabilities
from stallmark.cli.command import LazyGroup, Unloaded
from stallmark.stopping import StopSignal, defer_signals, listen, lost_in

# The first sentence of each command's docstring, repeated here so that `--help` imports no module of a command.
GROUPS = {
    "Start": {
        "doctor": "Show what works on this machine (and server), and what is missing.",
        "list": "List the scenarios: the question, needs and duration of each.",
        "new": "Write a scenario to FILE for editing: a copy of one of `stallmark list`.",
        "schema": "Print the JSON schema of scenario files, or with --record the format of records.",
        "db": "Build, check, list and remove databases of Stallmark.",
        "build": "Build a database, or complete one whose build was interrupted.",
        "check": "Check that a database is complete and consistent.",
    },
    "Measure": {
        "run": "Run a SCENARIO: one of `stallmark list`, or your own YAML file.",
        "characterise": "Show how a load reads: by size of memory, across the data, by table and by transaction.",
        "status": "Show the progress of an experiment, from its records, on any machine that can read them.",
    },
    "Judge": {
        "report": "Write the report of records of any kind, from the records alone.",
        "compare": "Compare variants over their runs: better, worse, no difference shown, or not comparable.",
        "plan": "Show how many runs are needed to show a difference, given the variation between RUNs.",
        "whatif": "Predict throughput at other read times, from existing runs.",
        "runs": "List past experiments; with a SCENARIO, its throughput over time.",
        "sql": "Run a SELECT over the tables of runs and profiles, in DuckDB's dialect.",
        "export": "Write every table of runs and profiles as CSV, and columns.csv with each column's unit and meaning.",
    },
    "Servers, arrays and load machines": {
        "copies": "List the backups that `reset: restore` left on a SQL Server; "
        "with --remove, remove those of a database."
    },
}

# A command stands in the module of its name; these stand with their siblings.
MODULES = {
    "list": "scenarios",
    "new": "scenarios",
    "schema": "scenarios",
    "check": "build",
    "copies": "db",
    "status": "runs",
    "plan": "compare",
    "whatif": "compare",
    "sql": "export",
}


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the process with a sentence on standard error and an exit code if the body raises an error."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:
        # Shown here, because click itself would exit with 1 if the output is closed.
        with suppress(OSError, ValueError):
            error.show()
        _forget_unread_output()
        sys.exit(error.exit_code)
    except BaseException as error:
        # click turns Ctrl-C into Abort: the signal decides the exit code.
        if isinstance(error, click.Abort) and isinstance(error.__context__, StopSignal):
            error = error.__context__
        error = lost_in(error) or error
        with defer_signals():
            from stallmark.cli.exit_codes import sentence_and_code, show  # not for --help

            sentence, code = sentence_and_code(error, unread=bool(_unread_outputs()))
            # Standard error may be closed as well.
            with suppress(OSError, ValueError):
                show(sentence)
            _forget_unread_output()
        sys.exit(code)


def _unread_outputs() -> list[int]:
    """Return the file numbers of standard output and standard error whose reader has closed the pipe."""
    # Windows cannot poll pipes: treat both as unread.
    if not hasattr(select, "poll"):
        return [1, 2]
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return [number for number, event in outputs.poll(0) if event & (select.POLLERR | select.POLLHUP)]


def _forget_unread_output() -> None:
    """Redirect closed outputs to the null device: the interpreter exits with 120 if it cannot flush them."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in _unread_outputs():
            os.dup2(nowhere, number)


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
    from stallmark.cli.doctor import sweep

    # `doctor` lists the leftovers instead.
    if context.invoked_subcommand != "doctor":
        # Storage that hangs stops whoever looks at it, and only these two need it.
        sweep(elsewhere=context.invoked_subcommand in ("run", "probe"))


for lines in GROUPS.values():
    for command, help_line in lines.items():
        main.add_command(Unloaded(command, f"stallmark.cli.{MODULES.get(command, command)}", help_line))
for capability in capabilities.installed():
    for entry in capability.commands:
        main.add_command(Unloaded(entry.name, entry.module, entry.help))


if __name__ == "__main__":
    main()
