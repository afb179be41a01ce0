"""The command `stallmark live`, and the options that show an experiment in a browser."""

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.options import experiment_options, page_option
from stallmark.cli.output import err, print_markup
from stallmark.errors import StallmarkError
from stallmark.experiment import Follower
from stallmark.stopping import StopSignal, ask

if TYPE_CHECKING:
    from stallmark.experiment.progress import Show
    from stallmark.live.server import LivePage
    from stallmark.scenarios.model import AnyScenario
    from stallmark.web_access import PageAddress


# The options about the live page, and the page that `stallmark run --web` shows.


class Shown(Follower):
    """The live page of a run, from its beginning to its end."""

    def __init__(self, web: "PageAddress"):
        self._web = web
        self._page: LivePage | None = None

    def begin(self, folder: Path, scenario: "AnyScenario", show: "Show") -> None:
        from stallmark.live.server import LivePage
        from stallmark.live.view import View

        page = LivePage(View(folder, scenario, show), self._web, stop=partial(ask, "the live page"))
        show.say(f"Live page: {page.start()}")
        self._page = page

    def end(self, is_complete: bool, because: str) -> None:
        if self._page:
            self._page.close(is_complete, because)


@click.command()
@page_option(
    "--web", help="Show the run live in a browser, with metrics for Prometheus; a non-local address requires a token."
)
def make_shown(web: "PageAddress | None") -> Shown | None:
    return Shown(web) if web else None


# `stallmark live`: show an experiment in a browser, while another process runs it or after it has ended.
@click.command(cls=Command)
@experiment_options
@page_option(
    "--web", default="8089", help="Port of the page; any non-local address requires a token, which is printed."
)
def live(folder: Path | None, out_dir: Path, web: "PageAddress") -> None:
    """Show an experiment in a browser, from its records, even if it was started without --web."""
    from stallmark.experiment.status import experiment_of, newest
    from stallmark.live.server import LivePage
    from stallmark.live.view import View

    folder = folder or newest(out_dir)
    shown = experiment_of(folder)
    if shown is None:
        raise StallmarkError(
            f"{folder} has no run of a stand-in yet: `stallmark status` shows the progress of its replay."
        )
    page = LivePage(View(shown), web)
    print_markup(err, escape(f"Live page: {page.start()} (Ctrl-C ends it, and leaves the experiment alone)"))
    with suppress(StopSignal):
        threading.Event().wait()
