"""The command `stallmark profile`."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource
from rich.cells import set_cell_size
from rich.live import Live
from rich.text import Text

from stallmark.cli.command import Command
from stallmark.cli.common import (
    as_seconds,
    err,
    json_option,
    print_markup,
    schedule_options,
    server_option,
    timezone_option,
)
from stallmark.cli.document import Outputs
from stallmark.cli.report import show_profile

if TYPE_CHECKING:
    from stallmark.profile.collection import Seen
    from stallmark.record.profile.interval_table import FileClass

_SAY_EVERY_S = 900.0  # into a file or a pipe


@click.command(cls=Command)
@server_option()
@click.option(
    "--for", "planned_s", callback=as_seconds, metavar="TIME",
    help="From the time the profile was begun: 24h, 90min or 1h30m.",
)  # fmt: skip
@click.option(
    "--out", "folder", required=True, type=click.Path(path_type=Path, file_okay=False),
    help="The profile's folder. In one that was begun, the profile goes on.",
)  # fmt: skip
@click.option(
    "--from", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="In place of a server: what Perfmon, iostat, sar or Prometheus recorded, or any CSV. May come several times.",
)  # fmt: skip
@click.option("--class", "classes", multiple=True, metavar="DEVICE=CLASS", help="With --from: D:=data, sdb=log.")
@click.option(
    "--map", "names", multiple=True, metavar="THEIRS=OURS", help="With --from of a CSV: 'ReadIOPS=reads_per_s'."
)
@timezone_option(
    "zone",
    help="The zone of times shown: Europe/Berlin, +01:00, local [default: UTC]. With --from, of local times too.",
)
@click.option("--dates", type=click.Choice(["month-first", "day-first"]), help="With --from: how dates are written.")
@schedule_options
@click.option("--anonymous", is_flag=True, help="Leave out the names of databases, files and hosts.")
@json_option
def profile(
    server: str | None, planned_s: float | None, folder: Path, files: tuple[Path, ...], classes: tuple[str, ...],
    names: tuple[str, ...], zone: str | None, dates: Literal["month-first", "day-first"] | None, start: str | None,
    interval_s: float | None, anonymous: bool, as_json: bool,
) -> None:  # fmt: skip
    """Record what a server in production does, every 15 seconds, and change nothing.

    It only reads counters, over one connection. SQL Server: VIEW SERVER STATE is enough; PostgreSQL: pg_monitor. Ctrl-C
    ends it, and the same command goes on in the same folder. With --from nothing is recorded: the profile is made from
    files of other tools.
    """
    if files:
        _refuse_both(planned_s)
        from stallmark.record.formats.dates import schedule_from
        from stallmark.record.imports.build import import_profile
        from stallmark.record.imports.recording import Wanted

        wanted = Wanted(_classes(classes), zone, dates, _names(names), schedule_from(start, interval_s, zone))
        import_profile(files, folder, wanted, anonymous=anonymous)
        show_profile(folder, Outputs(folder / "report.html", as_json))
        return
    if classes or dates or names or start or interval_s:
        raise click.UsageError("--class, --map, --dates, --start and --interval are for --from: name a file with it.")
    if server is None or planned_s is None:
        raise click.UsageError("A profile needs --server and --for, or files with --from.")
    from stallmark.profile.collection import Collection, source_for
    from stallmark.record.profile.raw import last_sample

    source = source_for(server, anonymous=anonymous)
    try:
        with _line() as told:
            Collection(source, folder, planned_s, anonymous, told=told).run()
    finally:
        if folder.is_dir() and last_sample(folder) > 0:
            show_profile(folder, Outputs(folder / "report.html", as_json))


def _refuse_both(planned_s: float | None) -> None:
    source = click.get_current_context().get_parameter_source("server")
    if planned_s is not None or source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--from takes files in place of a server: leave --server and --for out.")


def _classes(said: Sequence[str]) -> dict[str, "FileClass"]:
    from stallmark.record.profile.interval_table import FileClass

    found: dict[str, FileClass] = {}
    for text in said:
        device, _, held = text.rpartition("=")
        if not device or held not in ("data", "log", "tempdb", "other"):
            raise click.BadParameter(f"{text}: write a device and data, log, tempdb or other, as D:=data")
        if found.get(device, held) != held:
            raise click.BadParameter(f"{device} is said to hold {found[device]} and {held}: give it one class")
        found[device] = FileClass(held)
    return found


def _names(mapped: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in mapped:
        theirs, _, ours = text.rpartition("=")
        if not theirs or names.get(theirs, ours) != ours:
            raise click.BadParameter(f"{text}: write a series and one name of ours, as ReadIOPS=reads_per_s")
        names[theirs] = ours
    return names


@contextmanager
def _line() -> "Iterator":
    """Yield what shows the progress: one line that is drawn with each sample, or in a file a line now and then."""
    if not err.is_terminal:
        said = [0.0]

        def say(seen: "Seen") -> None:
            if time.monotonic() - said[0] >= _SAY_EVERY_S or seen.trouble:
                said[0] = time.monotonic()
                print_markup(err, _words(seen))

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
