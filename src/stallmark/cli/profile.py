"""The command `stallmark profile`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.cells import set_cell_size
from rich.live import Live
from rich.text import Text

from stallmark.cli.common import Command, as_seconds, err, json_option, server_option, tell
from stallmark.cli.report import show_profile

if TYPE_CHECKING:
    from stallmark.profile.collection import Seen

_SAY_EVERY_S = 900.0  # into a file or a pipe


@click.command(cls=Command)
@server_option(required=True)
@click.option(
    "--for", "planned_s", required=True, callback=as_seconds, metavar="TIME",
    help="From the time the profile was begun: 24h, 90min or 1h30m.",
)  # fmt: skip
@click.option(
    "--out", "folder", required=True, type=click.Path(path_type=Path, file_okay=False),
    help="The profile's folder. In one that was begun, the profile goes on.",
)  # fmt: skip
@click.option("--anonymous", is_flag=True, help="Leave out the names of databases, files and hosts.")
@json_option
def profile(server: str, planned_s: float, folder: Path, anonymous: bool, as_json: bool) -> None:
    """Record what a server in production does, every 15 seconds, and change nothing.

    It only reads counters, over one connection. SQL Server: VIEW SERVER STATE is enough; PostgreSQL: pg_monitor. Ctrl-C
    ends it, and the same command goes on in the same folder.
    """
    from stallmark.profile.collection import Collection
    from stallmark.profile.find import source_for
    from stallmark.record.profile.reader import last_sample

    source = source_for(server, anonymous=anonymous)
    try:
        with _line() as told:
            Collection(source, folder, planned_s, anonymous, told=told).run()
    except KeyboardInterrupt as stopped:
        stopped.add_note("The same command goes on.")
        raise
    finally:
        if folder.is_dir() and last_sample(folder) > 0:
            show_profile(folder, folder / "report.html", as_json)


@contextmanager
def _line() -> "Iterator":
    """Yield what shows the progress: one line that is drawn with each sample, or in a file a line now and then."""
    if not err.is_terminal:
        said = [0.0]

        def say(seen: "Seen") -> None:
            if time.monotonic() - said[0] >= _SAY_EVERY_S or seen.trouble:
                said[0] = time.monotonic()
                tell(err, _words(seen))

        yield say
        return
    with Live(console=err, auto_refresh=False, transient=True) as live:

        def draw(seen: "Seen") -> None:
            words = _words(seen)
            fits = words if len(words) < err.width else set_cell_size(words, max(1, err.width - 2)) + "…"
            live.update(Text(fits, no_wrap=True), refresh=True)

        yield draw


def _words(seen: "Seen") -> str:
    from stallmark.report.text.profile import progress

    return progress(seen.passed_s, seen.planned_s, seen.reads_per_s, seen.writes_per_s, seen.gaps, seen.trouble)
