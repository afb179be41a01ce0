"""Put external measurements into a closed run record.

A table `external_<slug>` holds one row per value, t on the run's own clock. The manifest's `external` describes the
tables and how their times were understood.
"""

import re
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.attach.align import MARGIN_S, Aligned, Span, align
from stallmark.attach.measurements import Wanted, notes_on, open_file, samples
from stallmark.errors import StallmarkError
from stallmark.record.formats.open import detect_format
from stallmark.record.formats.sample import Counter, Recorded
from stallmark.record.manifest import write_manifest
from stallmark.record.manifest.course import External, moment_at, seconds_at
from stallmark.record.reader import Record, recorded_seconds
from stallmark.record.schema import EXTERNAL
from stallmark.record.table_file import writing, written

MOST_COUNTERS = 50_000


@dataclass(frozen=True)
class Request:
    """The options of an attachment, without the file and its counters."""

    name: str | None = None  # [default: the host the file names, else the file's name]
    format: str | None = None
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
            time_zone=aligned.clock.zone,
            offset_s=aligned.clock.offset_s,
            span=(moment_at(within[0]), moment_at(within[-1])),
            samples=len(within),
            interval_s=aligned.interval_s,
            counters=len(share.measured),
            notes=tuple(notes_on(file)),
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

    for place, sample in zip(range(count), samples(file, takes), strict=False):
        near = [share for share in shares if share.near[place]]
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
    number = 1
    slug = plain
    while slug in taken:
        number += 1
        slug = f"{plain}_{number}"
    return slug
