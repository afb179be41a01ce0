"""A CSV of any tool as a profile: a column of times, and series by our names.

    Time,reads_per_s,read_bytes_per_s,data.writes_per_s,transactions_per_s
    2026-03-02T10:00:00Z,812.3,6654362,40,118

A series of another name is given ours by `--map "ReadIOPS=reads_per_s"`. Several series of one name add up. Rows of one
time are distinguished by a column of names; one that begins with a class, as "log shop_log", is of that class:

    Time,file,reads_total,read_bytes_total,read_stall_ms_total
    2026-03-02T10:00:00Z,log shop_log,812,6651904,1624
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import as_json
from stallmark.record.formats.sample import Counter, head_of
from stallmark.record.formats.table import Table
from stallmark.record.imports.prometheus import METRICS
from stallmark.record.imports.recording import COUNTS, Recording, Samples, Wanted, some_names
from stallmark.record.imports.series import Kind, Series, add_series
from stallmark.record.profile.interval_table import IO, STATES, FileClass

_HINT = "it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of Prometheus as JSON, and CSV with times"
_NAMED = 6  # maximum series named in a message
_INSTANCE = re.compile(r'\binstance="([^":]+)')
_WORD = re.compile(r"[A-Za-z_:][\w:]*")


class Meaning(NamedTuple):
    """The meaning of one of our names: the column for its values times `factor`. A mean is per I/O."""

    column: str
    unit: str
    kind: Kind | Literal["mean"] = "count"
    factor: float = 1.0


def _meanings() -> Iterator[tuple[str, Meaning]]:
    for name in STATES:
        yield name, Meaning(f"server.{name}", "", "state")
    for name in COUNTS:
        yield from _counts(name, f"server.{name}")
    for held in FileClass:
        prefix = "" if held is FileClass.DEVICE else f"{held}."
        for name in IO:
            if not name.endswith("_ms"):
                yield from _counts(f"{prefix}{name}", f"{held}.{name}")
                continue
            side = name.partition("_")[0]
            for unit, factor in (("ms", 1.0), ("s", 1000.0)):
                stall = f"{prefix}{side}_stall_{unit}"
                yield stall, Meaning(f"{held}.{name}", unit, "count", factor)
                yield f"{stall}_total", Meaning(f"{held}.{name}", unit, "total", factor)
                yield f"{prefix}{side}_{unit}", Meaning(f"{held}.{side}_ms", unit, "mean", factor)


def _counts(name: str, column: str) -> Iterator[tuple[str, Meaning]]:
    yield name, Meaning(column, "")
    yield f"{name}_total", Meaning(column, "", "total")
    yield f"{name}_per_s", Meaning(column, "B/s" if name.endswith("bytes") else "1/s", "rate")


MEANINGS = dict(_meanings())
"""Our names and their meanings: reads, reads_per_s, reads_total, read_ms, data.write_bytes_per_s and so on."""


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if none of its series has one of our names, or a series has another unit."""
    for theirs, ours in wanted.names.items():
        if ours not in MEANINGS:
            raise StallmarkError(
                f"{ours} is not a series to map {theirs} to: choose reads_per_s, read_bytes_per_s, read_ms or "
                "another one of docs/import-a-profile.md."
            )
    names: dict[str, None] = {}

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return _our_name(counter, wanted) is not None

    file = Table(path, hint=_HINT)
    samples = Samples(file, recording, wanted, takes)
    parts = [
        _Part(*name, counter, dict(zip(*map(np.ndarray.tolist, samples.points(counter)), strict=True)))
        for counter in samples.counters
        if (name := _our_name(counter, wanted))
    ]
    _refuse(path, file, wanted, parts, list(names))
    if repeated := len(samples.times) - len(np.unique(samples.times)):
        recording.note(f"{path.name}: left out are the values of times that were there already: {repeated}.")
    add_series(list(_series(parts)), recording, path.name, samples.times)
    recording.note(f"{path.name}: each time is taken as the end of what its values cover.")


class _Part(NamedTuple):
    """A series of the file."""

    ours: str
    row: str
    """The text that distinguishes its row from others of one time, if its name does not."""
    counter: Counter
    points: Mapping[float, float]

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self.ours]

    def series(self, column: str, kind: Kind, points: Mapping[float, float]) -> Series:
        times = sorted(points)
        label = self.row or self.counter.name
        return Series(column, kind, label, label, np.array(times), np.array([points[time] for time in times]))


def _our_name(counter: Counter, wanted: Wanted) -> tuple[str, str] | None:
    """Return our name of a series: by --map, by its own name, or by its column and the class of its row; and the row's
    text."""
    if (name := wanted.names.get(counter.name, counter.name)) in MEANINGS:
        return name, ""
    held = counter.instance.partition(" ")[0].lower()
    for name in (f"{held}.{counter.counter}", counter.counter):
        if counter.instance and name in MEANINGS:
            return name, counter.instance
    return None


def _series(parts: Sequence[_Part]) -> Iterator[Series]:
    """Yield the series of all columns. A mean is multiplied by the I/Os of its row, or by all I/Os without rows."""
    for part in parts:
        column, _, kind, factor = part.meaning
        if kind != "mean":
            yield part.series(column, kind, {time: value * factor for time, value in part.points.items()})
            continue
        ios = [
            other
            for other in parts
            if (other.row, other.meaning.column) == (part.row, f"{column.removesuffix('_ms')}s")
        ]
        for kind in {other.meaning.kind for other in ios} - {"mean"}:
            counts = [_increments(other.points) if kind == "total" else other.points for other in ios]
            stalls = {
                time: mean * factor * sum(count[time] for count in counts)
                for time, mean in part.points.items()
                if all(time in count for count in counts)
            }
            if stalls:
                yield part.series(
                    f"{column.removesuffix('_ms')}_stall_ms", "rate" if kind == "rate" else "count", stalls
                )


def _increments(points: Mapping[float, float]) -> dict[float, float]:
    """Return the increments up to each time, without those over a reset."""
    pairs = pairwise(sorted(points.items()))
    return {time: value - before for (_, before), (time, value) in pairs if value >= before}


def _refuse(path: Path, file: Table, wanted: Wanted, parts: Sequence[_Part], names: list[str]) -> None:
    """Raise StallmarkError for series without a usable name, value or unit."""
    hosts = {*file.hosts, *(host for part in parts for host in _INSTANCE.findall(part.counter.name))}
    if len(hosts) > 1:
        raise StallmarkError(f"{path} is of {some_names(hosts)}: give each a file of its own.")
    existing = f"it has {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}"
    for theirs in [*wanted.names, *(text for text in file.texts if text in MEANINGS)]:
        if any(theirs.endswith(text) for text in file.texts):
            raise StallmarkError(
                f"“{theirs}” of {path} holds text: export its numbers alone, without a unit, as Grafana does with "
                "“Formatted data” off."
            )
        if theirs not in names:
            raise StallmarkError(f"{path} has no series “{theirs}”: {existing}.")
    if not parts:
        for name in names:
            for word in set(_WORD.findall(name)) & METRICS.keys():
                raise StallmarkError(
                    f"“{name}” of {path} is a total of Prometheus: import it as JSON, as in {as_json()}, or give it "
                    f"its name, as in --map '{name}={_total_name(word)}'."
                )
        if "__name__" in head_of(path, 4096):
            raise StallmarkError(f"{path} holds totals of Prometheus: import them as JSON, as in {as_json()}.")
        raise StallmarkError(
            f"{path} has no series of a name that a profile knows: {existing}. Give one its name, as in --map "
            "'ReadIOPS=reads_per_s'."
        )
    class_free = {
        MEANINGS[ours].column.partition(".")[2]: ours for ours, row, _, _ in parts if not row and "." not in ours
    }
    columns: dict[str, str] = {}
    rows: dict[tuple[str, str], str] = {}
    for ours, row, counter, _ in parts:
        meaning = MEANINGS[ours]
        if (other := columns.setdefault(meaning.column, ours)) != ours:
            raise StallmarkError(f"{path} has {other} and {ours}: they are the same metric: omit one of them.")
        whole = class_free.get(meaning.column.partition(".")[2])
        if whole and "." in ours and not row:
            raise StallmarkError(
                f"{path} has {whole} and {ours}, which would count twice if the first is of all files: omit one of "
                f"them, or map the first to other.{whole}."
            )
        key = (ours, row if meaning.kind == "mean" else "")
        if meaning.kind in ("mean", "state") and (other := rows.setdefault(key, counter.name)) != counter.name:
            raise StallmarkError(
                f"{path} has {ours} of “{other}” and “{counter.name}”, and such figures do not add up: map one of them."
            )
        if counter.unit and counter.unit != meaning.unit:
            unit = meaning.unit or "a number for each interval"
            raise StallmarkError(
                f"“{counter.name}” of {path} is in {counter.unit}, and {ours} in {unit}: map it to another name, "
                "or export it in that unit."
            )


def _total_name(metric: str) -> str:
    _, [(column, factor), *_] = METRICS[metric]
    return f"{re.sub('ms$', 's', column) if factor == 1000 else column}_total"
