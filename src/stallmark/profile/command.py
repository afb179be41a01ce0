"""The command `stallmark profile`."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource
from rich.cells import set_cell_size
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from stallmark.cli.command import Command
from stallmark.cli.options import (
    as_seconds,
    json_option,
    quiet_option,
    schedule_options,
    server_option,
    timezone_option,
)
from stallmark.cli.output import Outputs, print_markup, progress_console
from stallmark.cli.report import reporting, show_report

if TYPE_CHECKING:
    from stallmark.profile.collection import CollectionProgress, Source
    from stallmark.record.profile import FileClass

_LINES = 20
"""Lines of progress in a file or a pipe: as many over a profile, and more over a long one."""
_MOST_APART_S = 900.0


@click.command(cls=Command)
@server_option()
@click.option(
    "--for", "planned_s", callback=as_seconds, metavar="TIME",
    help="Duration from the profile's start: 24h, 90min or 1h30m.",
)  # fmt: skip
@click.option(
    "--out", "folder", required=True, type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the profile; an existing profile is continued.",
)  # fmt: skip
@click.option(
    "--from", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Import a file of Perfmon, iostat, sar or Prometheus, or any CSV, instead of a server; repeatable.",
)  # fmt: skip
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="DEVICE=CLASS",
    help="With --from: class of the files on a device, such as D:=data or sdb=log; repeatable.",
)
@click.option(
    "--map",
    "names",
    multiple=True,
    metavar="THEIRS=OURS",
    help="With a CSV: metric in a column, such as 'ReadIOPS=reads_per_s'; repeatable.",
)
@timezone_option(
    "zone", help="Time zone of the output: Europe/Berlin, +01:00, local [default: UTC]. With --from, also of the files."
)
@click.option(
    "--dates", type=click.Choice(["month-first", "day-first"]), help="With --from: order of day and month in dates."
)
@schedule_options
@click.option("--anonymous", is_flag=True, help="Leave out the names of databases, files and hosts.")
@quiet_option
@json_option
def profile(
    server: str | None, planned_s: float | None, folder: Path, files: tuple[Path, ...], classes: tuple[str, ...],
    names: tuple[str, ...], zone: str | None, dates: Literal["month-first", "day-first"] | None,
    start: str | None, interval_s: float | None, anonymous: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Record the counters of a production server every 15 seconds, without changing anything.

    Only counters are read, over one connection. SQL Server requires VIEW SERVER STATE, PostgreSQL pg_monitor. Ctrl-C
    ends the recording, and the same command continues it in the same folder. With --from nothing is recorded: the
    profile is made from files of other tools.
    """
    if files:
        _refuse_both(planned_s)
        from stallmark.record.formats import import_profile
        from stallmark.record.formats.amounts import Wanted
        from stallmark.record.formats.dates import schedule_from

        schedule = schedule_from(start, interval_s, zone)
        wanted = Wanted(_classes(classes), zone, dates, _names(names), schedule)
        import_profile(files, folder, wanted, anonymous=anonymous)
        show_report([folder], Outputs(folder / "report.html", as_json))
        return
    if classes or dates or names or start or interval_s:
        raise click.UsageError("--class, --map, --dates, --start and --interval require --from: name a file with it.")
    if server is None or planned_s is None:
        raise click.UsageError("A profile needs --server and --for, or files with --from.")
    from stallmark.profile.collection import Collection
    from stallmark.record.profile import is_profile

    source, console = source_for(server, anonymous=anonymous), progress_console(quiet)
    with (
        reporting(
            lambda: show_report([folder], Outputs(folder / "report.html", as_json)),
            lambda: is_profile(folder),
            lambda sentence: print_markup(console, escape(sentence)),
        ),
        _progress_line(planned_s, console) as show_progress,
    ):
        Collection(source, folder, planned_s, anonymous, show=show_progress).run()


def source_for(url: str, *, anonymous: bool) -> "Source":
    """Return the source for a server by its URL. No connection is made yet."""
    from stallmark.engines import open_engine

    engine: Any = open_engine(url)
    if engine.dialect == "mssql":
        from stallmark.profile.mssql import MssqlSource

        return MssqlSource(engine, anonymous=anonymous)
    from stallmark.profile.postgres import PostgresSource

    return PostgresSource(engine, anonymous=anonymous)


def _refuse_both(planned_s: float | None) -> None:
    source = click.get_current_context().get_parameter_source("server")
    if planned_s is not None or source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--from takes files in place of a server: leave --server and --for out.")


def _classes(texts: Sequence[str]) -> dict[str, "FileClass"]:
    from stallmark.record.profile import FileClass

    classes: dict[str, FileClass] = {}
    for text in texts:
        device, _, file_class = text.rpartition("=")
        if not device or file_class not in ("data", "log", "tempdb", "other"):
            raise click.BadParameter(f"{text}: write a device and data, log, tempdb or other, as D:=data")
        if classes.get(device, file_class) != file_class:
            raise click.BadParameter(f"{device} has the classes {classes[device]} and {file_class}: give it one")
        classes[device] = FileClass(file_class)
    return classes


def _names(mapped: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in mapped:
        theirs, _, ours = text.rpartition("=")
        if not theirs or names.get(theirs, ours) != ours:
            raise click.BadParameter(f"{text}: write a series and one name of ours, as ReadIOPS=reads_per_s")
        names[theirs] = ours
    return names


@contextmanager
def _progress_line(planned_s: float, console: Console) -> "Iterator[Callable[[CollectionProgress], None]]":
    """Yield a function that shows the progress: one line redrawn with each sample or, in a file, a new line with the
    first rates and from time to time."""
    if not console.is_terminal:
        due_s = -math.inf  # a clock that has no beginning: it may be near 0 after the machine has started

        def write_line(progress: "CollectionProgress") -> None:
            nonlocal due_s
            has_rates = progress.reads_per_s is not None or progress.writes_per_s is not None
            if progress.trouble or (has_rates and time.monotonic() >= due_s):
                due_s = time.monotonic() + min(_MOST_APART_S, planned_s / _LINES)
                print_markup(console, _in_words(progress))

        yield write_line
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def draw(progress: "CollectionProgress") -> None:
            line = _in_words(progress)
            fits = line if len(line) < console.width else set_cell_size(line, max(1, console.width - 2)) + "…"
            live.update(Text(fits, no_wrap=True), refresh=True)

        yield draw


def _in_words(seen: "CollectionProgress") -> str:
    from stallmark.report.text.profile import progress

    return progress(seen.passed_s, seen.planned_s, seen.reads_per_s, seen.writes_per_s, seen.gaps, seen.trouble)
