"""Put external measurements into a closed run record: what a file is asked for, its samples, and their times in UTC."""

import fnmatch
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.formats import Format, detect_format, open_recording
from stallmark.record.formats.dates import Clock, Schedule, find_zone, possible_orders
from stallmark.record.formats.open_csv import Table
from stallmark.record.formats.sample import Counter, Has, Recorded, Sample, first_names
from stallmark.record.manifest import write_manifest
from stallmark.record.manifest.course import External, moment_at, seconds_at
from stallmark.record.reader import Record, recorded_seconds
from stallmark.record.schema import EXTERNAL
from stallmark.record.table_file import writing, written

# The request to a file of measurements, and the samples that it gives.


@dataclass(frozen=True)
class Wanted:
    """The request to a file: counters by pattern (all without one), the column of times, or the time of the reports."""

    file: Path
    counters: tuple[str, ...] = ()
    time_column: str | None = None
    schedule: Schedule | None = None

    def has(self, name: str) -> bool:
        """Return whether `name` contains one of the patterns; `*` and `?` stand for any text and any character."""
        return not self.counters or any(_contains(name, pattern) for pattern in self.counters)

    def refuse_nothing(self, any_left: bool, names: Iterable[str]) -> None:
        """Raise StallmarkError if nothing was `found` among the counters called `names`."""
        if any_left:
            return
        if not (names_left := list(dict.fromkeys(names))):
            raise StallmarkError(f"{self.file} holds no measurements.")
        if not any(self.has(name) for name in names_left):
            asked = " or ".join(self.counters)
            raise StallmarkError(f"No counter of {self.file} matches {asked}: it has {first_names(names_left)}.")
        raise StallmarkError(f"{self.file} has no value in the counters asked for.")


@cache
def _contains(name: str, pattern: str) -> bool:
    # A bracket is part of a counter's name more often than a set of characters.
    plain = pattern.lower().replace("[", "[[]")
    return fnmatch.fnmatchcase(name.lower(), f"*{plain}*")


def open_file(wanted: Wanted, format: Format) -> Recorded:
    """Return the reader of a file. Raise StallmarkError for totals, which a chart of a run cannot show."""
    if format == "prometheus":
        raise StallmarkError(
            f"{wanted.file} holds totals of Prometheus: ask for rate() of them, and attach a CSV of it, as Grafana "
            "exports it."
        )
    recording = open_recording(wanted.file, format, wanted.schedule)
    return recording or Table(wanted.file, wanted.time_column)


def samples(file: Recorded, has: Has = lambda _: True) -> Iterator[Sample]:
    """Yield the samples whose values are of their own interval."""
    return (sample for sample in file.samples(has) if not (sample.begins and file.first_since_start))


def notes_on(file: Recorded) -> list[str]:
    """Return a phrase for each part of the file that was omitted."""
    first = "the first report, which may cover the time since the machine was started"
    return [first] * file.first_since_start + file.notes


# The times of a file's samples in UTC, from its time zone, its order of day and month, and its clock's offset.

STEP_BACK_S = 60.0
"""Seconds: a clock that is corrected goes back by less; one that is set, or leaves summer time, by more."""

MARGIN_S = 60.0
"""Seconds before and after a run whose samples are kept with it, to find out how far two clocks lie apart."""


@dataclass(frozen=True)
class Span:
    """A span of time, in seconds since 1970-01-01 UTC."""

    begin: float
    end: float

    def overlaps(self, other: "Span") -> bool:
        return self.begin <= other.end and other.begin <= self.end

    def shift(self, seconds: float) -> "Span":
        return Span(self.begin + seconds, self.end + seconds)

    def __str__(self) -> str:
        return f"{_write_utc(self.begin)} to {_write_utc(self.end)} UTC"


@dataclass(frozen=True)
class ClockSetting:
    """The time zone and offset by which a file's times were understood; both are shown wherever its figures are."""

    zone: str  # "Europe/Berlin, as given"
    offset_s: float  # added to its times


@dataclass(frozen=True)
class Aligned:
    """A file's samples in time. `utc` holds their instants, NaN for those left out; `interval_s` is the time
    between two."""

    clock: ClockSetting
    utc: np.ndarray
    interval_s: float
    span: Span


def _write_utc(seconds: float) -> str:
    """Return the time for people: 2025-11-21 10:00:00."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def align(stamps: Sequence[str], file: Recorded, zone: str | None, offset_s: float, runs: Sequence[Span]) -> Aligned:
    """Find out when the samples were taken; at least one of the `runs` must be in their span.

    Raise StallmarkError for times that cannot be understood or do not fit.
    """
    if len(stamps) < 2:
        raise StallmarkError(f"{file.path} holds fewer than two samples: there is no interval.")
    orders = [file.order] if file.order else possible_orders(file.path, stamps)[0]
    candidates, refused = [], []
    for order in orders:
        try:
            candidates.append(_align_by(order, stamps, file, zone, offset_s, runs))
        except StallmarkError as error:
            refused.append(error)
    # The run decides how dates are read: mostly only one order of day and month overlaps it.
    fitting = [candidate for candidate in candidates if any(candidate.span.overlaps(run) for run in runs)]
    if len(fitting) > 1:
        raise StallmarkError(
            f"The dates of {file.path} can be read as {' and as '.join(orders)}, and both overlap the run: write them "
            "as 2025-11-21."
        )
    if not fitting and refused:
        raise refused[0]
    if not fitting:
        raise StallmarkError(_overlap_message(candidates[0].span, file, runs))
    return fitting[0]


def _align_by(
    order: str, stamps: Sequence[str], file: Recorded, zone: str | None, offset_s: float, runs: Sequence[Span]
) -> Aligned:
    """Return the samples in time by one order of day and month, without the times that occurred twice."""
    is_own = file.zone_words == "UTC"
    clock = Clock(file.path, order, find_zone(zone) if zone and not is_own else file.zone, file.zone_words)
    # Read before the zone is judged, because only reading the times shows whether they carry an offset.
    early, late = np.array([clock.occurrences(stamp) for stamp in stamps]).T
    if zone and (is_own or not clock.is_local):
        raise StallmarkError(f"The times of {file.path} say their own offset: leave --timezone out.")
    words = _zone_words(clock, file, zone)
    _refuse_ambiguous(early, late, file, words, offset_s, runs)
    utc = np.where(early != late, np.nan, early + offset_s)
    known = utc[np.isfinite(utc)]
    if len(known) < 2:
        raise StallmarkError(f"{file.path} holds fewer than two samples: there is no interval.")
    steps = np.diff(known)
    if np.median(steps) < 0:  # newest first
        steps = -steps
    if steps.min() < -STEP_BACK_S:
        place = int(steps.argmin()) + 1
        raise StallmarkError(
            f"The times of {file.path} go back by {-steps.min():.0f} s at {_write_utc(known[place])} UTC: its clock "
            "was set there, or summer time ended; cut the file there, or say with --timezone whose time it is."
        )
    forward = steps[steps > 0]
    if not len(forward):
        raise StallmarkError(f"All samples of {file.path} are of one time.")
    return Aligned(
        ClockSetting(words, offset_s), utc, float(np.median(forward)), Span(float(known.min()), float(known.max()))
    )


def _zone_words(clock: Clock, file: Recorded, asked: str | None) -> str:
    """Return the zone of a file's times, and its source."""
    if not clock.is_local:
        return "its times carry their offset"
    if asked:
        return f"{asked}, as given"
    return f"{file.zone}, as the file says{f' ({file.zone_words})' if file.zone_words != 'UTC' else ''}"


def _refuse_ambiguous(
    early: np.ndarray, late: np.ndarray, file: Recorded, zone: str, offset_s: float, runs: Sequence[Span]
) -> None:
    """Raise StallmarkError for an ambiguous local time that may fall into a run; elsewhere it does no harm."""
    for run in runs:
        begin, end = run.begin - offset_s - MARGIN_S, run.end - offset_s + MARGIN_S
        inside = (early != late) & (early <= end) & (late >= begin)
        if inside.any():
            place = int(inside.argmax())
            raise StallmarkError(
                f"A time of {file.path} was twice in its zone ({zone}), at {_write_utc(early[place])} and at "
                f"{_write_utc(late[place])} UTC, because summer time ended: write it with UTC times."
            )


def _overlap_message(span: Span, file: Recorded, runs: Sequence[Span]) -> str:
    whole = Span(min(run.begin for run in runs), max(run.end for run in runs))
    text = "the run" if len(runs) == 1 else "the runs"
    sentence = f"{file.path} does not overlap {text}: it spans {span}, {text} {whole}"
    # No zone is more than 14 h from UTC; of the shifts that would fit, the smallest is named.
    for hours in sorted(range(-14, 15), key=abs):
        if hours and any(span.shift(hours * 3600).overlaps(run) for run in runs):
            way = "later" if hours > 0 else "earlier"
            return f"{sentence}; {abs(hours)} h {way} it would: say with --timezone whose time it is."
    return f"{sentence}."


# Put external measurements into a closed run record.
#
# A table `external_<slug>` holds one row per value, t on the run's own clock. The manifest's `external` describes the
# tables and how their times were understood.

MOST_COUNTERS = 50_000


@dataclass(frozen=True)
class Request:
    """The options of an attachment, without the file and its counters."""

    name: str | None = None  # [default: the host the file names, else the file's name]
    format: Format | None = None
    zone: str | None = None
    offset_s: float = 0.0
    replace: bool = False


@dataclass(frozen=True)
class Attached:
    """The part of a file that belongs to one run: the run's folder name, and the entry in its manifest."""

    run: str
    entry: External


def attach(records: Sequence[Record], wanted: Wanted, request: Request) -> list[Attached]:
    """Attach a file to those of the records that it overlaps; they must be closed.

    Raise StallmarkError before anything is written.
    """
    format = request.format or detect_format(wanted.file)
    file = open_file(wanted, format)
    # The file is read twice: the times of all samples decide which values are kept for which run.
    stamps = [sample.stamp for sample in samples(file)]
    spans = [_span(record) for record in records]
    aligned = align(stamps, file, request.zone, request.offset_s, spans)
    name = request.name or file.host or wanted.file.stem
    shares = [_Share(record, span, aligned) for record, span in zip(records, spans, strict=True)]
    shares = [share for share in shares if aligned.span.overlaps(share.run)]
    for share in shares:
        _refuse(share.record, name, request.replace)
    _fill(shares, file, wanted, len(stamps))
    shares = [share for share in shares if share.measured]
    if not shares:
        raise StallmarkError(f"{wanted.file} has no sample in the run, though its span ({aligned.span}) goes over it.")
    result = []
    for share in shares:
        within = np.unique(aligned.utc[share.inside])
        entry = External(
            name=name,
            file=wanted.file.name,
            format=format,
            time_zone="given with --start and --interval" if wanted.schedule else aligned.clock.zone,
            offset_s=aligned.clock.offset_s,
            span=(moment_at(within[0]), moment_at(within[-1])),
            samples=len(within),
            interval_s=aligned.interval_s,
            counters=len(share.measured),
            notes=tuple(notes_on(file)),
            remarks=tuple(file.remarks),
        )
        _write(share.record, name, entry, share.rows(name))
        result.append(Attached(share.record.folder.name, entry))
    return result


class _Share:
    """The values of one run by counter, with a margin around it: times on the run's clock, and values. `measured`: the
    counters with a value within the run."""

    def __init__(self, record: Record, run: Span, aligned: Aligned):
        margin = MARGIN_S + aligned.interval_s
        self.record, self.run = record, run
        self.inside = (aligned.utc >= run.begin) & (aligned.utc <= run.end)
        self.near = (aligned.utc >= run.begin - margin) & (aligned.utc <= run.end + margin)
        self._t = aligned.utc - run.begin
        self._columns: dict[Counter, tuple[array, array]] = {}
        self.measured: set[Counter] = set()

    def add(self, place: int, counter: Counter, value: float) -> None:
        # An array takes 8 bytes for a number, a quarter of what a list of floats takes.
        times, values = self._columns.setdefault(counter, (array("d"), array("d")))
        times.append(self._t[place])
        values.append(value)
        if self.inside[place]:
            self.measured.add(counter)

    def rows(self, name: str) -> pa.Table:
        columns: dict[str, list] = {field.name: [] for field in EXTERNAL}
        for counter, (times, values) in self._columns.items():
            if counter not in self.measured:
                continue
            columns["t"] += times
            columns["value"] += values
            label = f"{counter.object} {counter.counter}".strip()
            for column, text in (
                ("source", counter.host or name), ("counter", label), ("instance", counter.instance),
                ("unit", counter.unit),
            ):  # fmt: skip
                columns[column] += [text] * len(times)
        return pa.table(columns, schema=EXTERNAL)


def _fill(shares: Sequence[_Share], file: Recorded, wanted: Wanted, count: int) -> None:
    """Give each run the values near it, of the first `count` samples: the file may have grown since.

    Raise StallmarkError if the file has none of the counters asked for.
    """
    names: dict[str, None] = {}
    measured: set[Counter] = set()

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return wanted.has(counter.name)

    for place, sample in enumerate(samples(file, takes)):  # to the end of the file, which completes its notes
        near = [share for share in shares if place < count and share.near[place]]
        for counter, value in sample.values if near or not place else ():
            measured.add(counter)
            if len(measured) > MOST_COUNTERS:
                raise StallmarkError(
                    f"There are more than {MOST_COUNTERS:,} counters: name those you want with --counter."
                )
            for share in near:
                share.add(place, counter, value)
    if any(share.near.any() for share in shares):
        wanted.refuse_nothing(bool(measured), names)


def _refuse(record: Record, name: str, replace: bool) -> None:
    if record.manifest.status == "running":
        raise StallmarkError(
            f"{record.folder} is not closed: its run is still going on, or was killed; attach to a closed record."
        )
    if not replace and any(entry.name == name for entry in record.manifest.external.values()):
        raise StallmarkError(
            f"“{name}” is already attached to {record.folder}: choose another --name, or --replace it."
        )


def _span(record: Record) -> Span:
    begin = seconds_at(record.manifest.started)
    planned = max((step.end_s for step in record.manifest.steps), default=0.0)
    return Span(begin, begin + (recorded_seconds(record) or planned))


def _write(record: Record, name: str, entry: External, rows: pa.Table) -> None:
    """Write the table first and whole, then the manifest, whole: a record may be read at any moment."""
    attached = record.manifest.external
    slug = next((slug for slug, other in attached.items() if other.name == name), None) or _slug(name, attached)
    target = record.folder / f"external_{slug}.parquet"
    with writing(target, EXTERNAL) as writer:
        writer.write_table(rows.sort_by("t"))
    record.manifest = record.manifest.changed(
        external=attached | {slug: entry}, tables=record.manifest.tables | {target.stem: written(target)}
    )
    write_manifest(record.folder, record.manifest)


def _slug(name: str, taken: Collection[str]) -> str:
    """Return a file name made from `name`, numbered where another name gives the same."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "measurements"
    return next(slug for number in count(1) if (slug := f"{plain}_{number}" if number > 1 else plain) not in taken)
