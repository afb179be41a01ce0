"""`stallmark attach`: add measurements from elsewhere to a run."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.options import json_option, parsing, runs_argument, schedule_options
from stallmark.cli.output import out, print_markup

if TYPE_CHECKING:
    from stallmark.attach.attach import Attached
    from stallmark.record.formats import Format
    from stallmark.record.manifest.course import External


@parsing
def _zone(name: str) -> str:
    from stallmark.record.formats.dates import find_zone

    find_zone(name)
    return name


def offset_s(text: str) -> float:
    """Return the seconds to add to the file's times: 2.5s, -300ms, +1h."""
    from stallmark.quantities import parse_seconds

    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("+", text)
    if rest[:1] in ("+", "-"):
        raise ValueError(f"{text} is not an offset: write it as 2.5s or -300ms")
    return math.copysign(parse_seconds(rest), -1.0 if sign == "-" else 1.0)


@click.command(cls=Command)
@runs_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format", type=click.Choice(["perfmon", "iostat", "sar", "csv"]), help="Format of FILE [default: detected]."
)
@click.option(
    "--timezone", "zone", metavar="ZONE", callback=_zone,
    help="Time zone of local times in FILE: Europe/Berlin, +01:00.",
)  # fmt: skip
@click.option(
    "--offset", default="0s", show_default=True, callback=parsing(offset_s), metavar="TIME",
    help="Time to add to the file's times: 2.5s if its clock is slow, -2.5s if it is fast.",
)  # fmt: skip
@schedule_options
@click.option("--time-column", metavar="NAME", help="Column of a CSV that holds the times.")
@click.option(
    "--counter", "counters", multiple=True, metavar="PATTERN",
    help="Attach only the counters that match, such as 'Disk*sec/Read'; repeatable.",
)  # fmt: skip
@click.option("--name", help="Name in the report [default: the host named in the file, or the file's name].")
@click.option("--replace", is_flag=True, help="Replace what was attached under this name.")
@json_option
def attach(
    runs: tuple[Path, ...], file: Path, format: "Format | None", zone: str | None, offset: float,
    start: str | None, interval_s: float | None, time_column: str | None, counters: tuple[str, ...],
    name: str | None, replace: bool, as_json: bool,
) -> None:  # fmt: skip
    """Add measurements from elsewhere to a RUN: a FILE of Perfmon, iostat, sar or a storage array.

    RUN is a run's folder, or one that holds several: each run gets the part of the file that overlaps it in time.
    """
    from stallmark.attach.attach import Request, Wanted
    from stallmark.attach.attach import attach as attach_to
    from stallmark.record.formats.dates import schedule_from
    from stallmark.record.reader import find_records

    schedule = schedule_from(start, interval_s, zone)
    request = Request(name, format, None if schedule else zone, offset, replace)
    attached = attach_to(find_records(runs), Wanted(file, counters, time_column, schedule), request)
    if as_json:
        entries = [{"run": source.run, "entry": source.entry.model_dump(mode="json")} for source in attached]
        click.echo(json.dumps(entries, indent=2))
        return
    for entry in attached:
        for sentence in _sentences(entry):
            print_markup(out, escape(sentence))
    print_markup(out, escape(f"stallmark report {' '.join(map(str, runs))} draws it next to the throughput."))


def _sentences(attached: "Attached") -> list[str]:
    """Return sentences on what was attached, and by which clock."""
    from stallmark.quantities import write_duration

    entry = attached.entry
    begin, end = (moment[:19].replace("T", " ") for moment in entry.span)
    counters = f"{entry.counters} counter{'s' * (entry.counters != 1)}"
    lines = [
        f"{attached.run}: “{entry.name}” attached ({entry.format}), {counters}, {entry.samples} samples "
        f"every {write_duration(round(entry.interval_s, 3))}, {begin} to {end} UTC.",
        f"Its clock: {entry.time_zone}; {_offset(entry)}.",
    ]
    lines += [f"Left out: {note}." for note in entry.notes]
    return lines + [f"Converted: {remark}." for remark in entry.remarks]


def _offset(entry: "External") -> str:
    seconds = entry.offset_s
    return f"{seconds:+g} s added to its times" if seconds else "no offset applied"
