"""The command `stallmark`."""

import sys
from typing import Any

import click

from stallmark.cli import crash_log
from stallmark.cli.array import array
from stallmark.cli.attach import attach
from stallmark.cli.build import build
from stallmark.cli.check import check
from stallmark.cli.common import FAILED, UNEXPECTED, Group, err, escape, system_sentence, tell
from stallmark.cli.compare import compare
from stallmark.cli.copies import copies
from stallmark.cli.db import db
from stallmark.cli.doctor import doctor
from stallmark.cli.export import export
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
from stallmark.errors import CallFailed, StallmarkError, in_words
from stallmark.experiment.stopping import StopSignal, listen

GROUPS = {
    "Start": (doctor, list_scenarios, new, schema, db, build, check),
    "Measure": (run, status, live, probe, profile, attach),
    "Judge": (report, compare, size, plan, whatif, runs, export),
    "Servers, arrays and load machines": (server, selftest, copies, array, worker),
}


class _Commands(Group):
    """A group whose commands end user errors with one sentence and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(150)) for one in commands])

    def invoke(self, ctx: click.Context) -> Any:
        listen()
        try:
            return super().invoke(ctx)
        except (StallmarkError, CallFailed) as error:
            tell(err, f"[bold red]Error:[/] {escape(in_words(error))}")
            sys.exit(FAILED)
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, a folder without rights
            tell(err, f"[bold red]Error:[/] {escape(system_sentence(error))}")
            sys.exit(FAILED)
        except StopSignal as stopped:
            left = " ".join(getattr(stopped, "__notes__", ()))
            kept = f" is kept. {left}" if left else " is kept; servers and settings are as before."
            sentence = f"{stopped}. What was done{kept}"
            tell(err, escape(sentence[0].upper() + sentence[1:]))
            sys.exit(stopped.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            log = crash_log.write(error)
            mistake = f"a bug in Stallmark ({type(error).__name__}). Look through {log} and send it to us."
            tell(err, f"[bold red]Error:[/] {escape(mistake)}")
            sys.exit(UNEXPECTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stallmark")
def main() -> None:
    """Show what storage and memory do to a real database.

    Exit codes: 0 all well, 1 a consistency condition does not hold, 2 wrong command line, 3 could not do it,
    4 the run is incomplete or its result never committed, 5 a threshold was not kept, no candidate carries a load, or
    a comparison is as --fail-if says or could not be made, 70 a bug in Stallmark, 130 stopped by Ctrl-C.
    """


for command in (command for commands in GROUPS.values() for command in commands):
    main.add_command(command)


if __name__ == "__main__":
    main()
