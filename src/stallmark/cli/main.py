"""The command `stallmark`."""

import sys
from typing import Any

import click

from stallmark.cli.array import array
from stallmark.cli.attach import attach
from stallmark.cli.build import build
from stallmark.cli.check import check
from stallmark.cli.common import FAILED, err, escape, system_sentence, tell
from stallmark.cli.compare import compare, plan
from stallmark.cli.doctor import doctor
from stallmark.cli.list_scenarios import list_scenarios
from stallmark.cli.probe import probe
from stallmark.cli.report import report
from stallmark.cli.run import run
from stallmark.cli.server.commands import selftest, server
from stallmark.cli.whatif import whatif
from stallmark.cli.worker import worker
from stallmark.errors import CallFailed, StallmarkError, in_words
from stallmark.experiment.stopping import Stopped, listen


class _Commands(click.Group):
    """A group whose commands end user errors with one sentence and an exit code."""

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
        except Stopped as stopped:
            left = " ".join(getattr(stopped, "__notes__", ()))
            kept = f" is kept. {left}" if left else " is kept; servers and settings are as before."
            sentence = f"{stopped}. What was done{kept}"
            tell(err, escape(sentence[0].upper() + sentence[1:]))
            sys.exit(stopped.exit_code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stallmark")
def main() -> None:
    """What storage and memory do to a real database.

    Exit codes: 0 all well, 1 a consistency condition does not hold, 2 wrong command line, 3 could not do it,
    4 the run is incomplete, 5 a comparison is as --fail-if says or could not be made, 130 stopped by Ctrl-C.
    """


for command in (
    doctor, build, check, run, worker, report, attach, list_scenarios, compare, plan, array, probe, whatif, server,
    selftest,
):  # fmt: skip
    main.add_command(command)


if __name__ == "__main__":
    main()
