"""Put external measurements into a closed run record.

A table `external_<slug>` holds one row per value, t on the run's own clock. The manifest's `external` describes the
tables and how their times were understood.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.attach.align import MARGIN_S, Aligned, Span, align
from stallmark.record.attach.measurements import NOTHING, Kept, Measurements, Wanted, read
from stallmark.record.manifest.course import External
from stallmark.record.manifest_file import write_manifest
from stallmark.record.reader import Record, recorded_seconds
from stallmark.record.schema import EXTERNAL
from stallmark.record.table_file import writing, written


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
    format, measured = read(wanted, request.format, NOTHING)
    name = request.name or measured.host or wanted.file.stem
    spans = [_span(record) for record in records]
    aligned = align(measured, wanted, request.zone, request.offset_s, spans)
    _, measured = read(wanted, format, Kept(_near(aligned, spans)))
    shares = []
    for record, span in zip(records, spans, strict=True):
        if aligned.span.overlaps(span):
            _refuse(record, name, request.replace)
            share = _share(measured, aligned, span)
            if share is not None:
                shares.append((record, *share))
    if not shares:
        raise StallmarkError(f"{wanted.file} has no sample in the run, though its span ({aligned.span}) goes over it.")
    result = []
    for record, rows, seen, samples in shares:
        entry = External(
            name=name,
            file=wanted.file.name,
            format=format,
            time_zone=aligned.clock.zone,
            offset_s=aligned.clock.offset_s,
            span=(_iso(seen.begin), _iso(seen.end)),
            samples=samples,
            interval_s=aligned.interval_s,
            counters=len(pa.table(rows).group_by(["source", "counter", "instance"]).aggregate([])),
            notes=tuple(measured.notes),
        )
        rows["source"] = [host or name for host in rows["source"]]
        _write(record, name, entry, pa.table(rows, schema=EXTERNAL))
        result.append(Attached(record.folder.name, entry))
    return result


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
    begin = datetime.fromisoformat(record.manifest.started).timestamp()
    planned = max((step.end_s for step in record.manifest.steps), default=0.0)
    return Span(begin, begin + (recorded_seconds(record) or planned))


def _near(aligned: Aligned, runs: Sequence[Span]) -> np.ndarray:
    """Return which samples lie in one of the runs, or in the margin around it: a mask."""
    margin = MARGIN_S + aligned.interval_s
    within = [(aligned.utc >= run.begin - margin) & (aligned.utc <= run.end + margin) for run in runs]
    return np.logical_or.reduce(within)


def _share(measured: Measurements, aligned: Aligned, run: Span) -> tuple[dict[str, Any], Span, int] | None:
    """Return the rows of one run with a margin around it, the span of the samples within the run, and their number.

    Return None where no sample lies in the run.
    """
    inside = (aligned.utc >= run.begin) & (aligned.utc <= run.end)
    if not inside.any():
        return None
    near = _near(aligned, [run])
    rows: dict[str, Any] = {field.name: [] for field in EXTERNAL}
    for series in measured.series:
        keep = near[series.at]
        if not inside[series.at].any():
            continue
        count = int(keep.sum())
        rows["t"].append(aligned.utc[series.at[keep]] - run.begin)
        rows["value"].append(series.values[keep])
        for column, text in (
            ("source", series.host), ("counter", series.counter), ("instance", series.instance), ("unit", series.unit),
        ):  # fmt: skip
            rows[column] += [text] * count
    if not rows["t"]:
        return None
    rows["t"], rows["value"] = np.concatenate(rows["t"]), np.concatenate(rows["value"])
    within = np.unique(aligned.utc[inside])
    return rows, Span(float(within[0]), float(within[-1])), len(within)


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


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
