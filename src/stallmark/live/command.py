"""`stallmark live`: show an experiment in a browser, while another process runs it or after it has ended."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallmark.cli.command import Command
from stallmark.cli.common import err, escape, experiment_options, tell
from stallmark.errors import StallmarkError
from stallmark.live.options import web_option
from stallmark.stopping import StopSignal

if TYPE_CHECKING:
    from stallmark.live.access import PageAddress


@click.command(cls=Command)
@experiment_options
@web_option(default="8089", help="The port; another address of this machine needs a token, which is said.")
def live(folder: Path | None, out_dir: Path, web: "PageAddress") -> None:
    """Show an experiment in a browser, from its records: also one that was started without --web."""
    from stallmark.experiment.status import experiment_of, newest
    from stallmark.live.server import LivePage
    from stallmark.live.view import View

    folder = folder or newest(out_dir)
    shown = experiment_of(folder)
    if shown is None:
        raise StallmarkError(f"{folder} has no run of a stand-in yet: `stallmark status` says how far its replay is.")
    page = LivePage(View(shown), web)
    tell(err, escape(f"Live page: {page.start()} (Ctrl-C ends it, and leaves the experiment alone)"))
    with suppress(StopSignal):
        threading.Event().wait()
