"""A CSV of any tool as a profile: a column of times, and series by our names.

    Time,reads_per_s,read_bytes_per_s,data.writes_per_s,transactions_per_s
    2026-03-02T10:00:00Z,812.3,6654362,40,118

A series of another name is given ours by `--map "ReadIOPS=reads_per_s"`. Several series of one name add up.
"""

import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import AS_JSON
from stallmark.record.formats.sample import Counter, head_of
from stallmark.record.formats.table import Table
from stallmark.record.imports.prometheus import METRICS
from stallmark.record.imports.recording import COUNTS, Recording, Steps, Wanted
from stallmark.record.profile.intervals import IO, STATES, FileClass

_HINT = "it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of Prometheus as JSON, and CSV with times"
_NAMED = 6  # series named in a refusal
_METRIC = re.compile(r"\s*([A-Za-z_:][\w:]*)")


class Meaning(NamedTuple):
    """The meaning of one of our names: a rate per second, or a count or state of each interval, times `factor`. A
    column that ends with `_ms` is a mean per I/O."""

    column: str
    unit: str
    is_rate: bool = False
    factor: float = 1.0


def _meanings() -> Iterator[tuple[str, Meaning]]:
    for name in (*COUNTS, *STATES):
        yield name, Meaning(f"server.{name}", "")
        if name in COUNTS:
            yield f"{name}_per_s", Meaning(f"server.{name}", "B/s" if name.endswith("_bytes") else "1/s", True)
    for held in FileClass:
        prefix = "" if held is FileClass.DEVICE else f"{held}."
        for name in IO:
            if name.endswith("_ms"):
                side = name.partition("_")[0]
                for ours, column in ((name, name), (f"{side}_ms", f"{side}_ms")):
                    yield f"{prefix}{ours}", Meaning(f"{held}.{column}", "ms")
                    yield f"{prefix}{ours.removesuffix('ms')}s", Meaning(f"{held}.{column}", "s", factor=1000.0)
            else:
                yield f"{prefix}{name}", Meaning(f"{held}.{name}", "")
                yield f"{prefix}{name}_per_s", Meaning(f"{held}.{name}", "B/s" if "bytes" in name else "1/s", True)


MEANINGS = dict(_meanings())
"""Our names and their meanings: reads, reads_per_s, read_ms, data.write_bytes_per_s, batches_per_s and so on."""


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if none of its series has one of our names, or one is in another unit."""
    if "__name__" in head_of(path, 4096):
        raise _totals(path)
    for theirs, ours in wanted.names.items():
        if ours not in MEANINGS:
            raise StallmarkError(
                f"There is no series {ours} to map {theirs} to: there is reads_per_s, read_bytes_per_s, read_ms and "
                "others, which docs/import-a-profile.md names."
            )
    names: dict[str, None] = {}

    def our_name(counter: Counter) -> str | None:
        names[counter.name] = None
        ours = wanted.names.get(counter.name, counter.name)
        return ours if ours in MEANINGS else None

    file = Table(path, hint=_HINT)
    clock = recording.clock(file, wanted)
    rows = sorted(
        (
            (clock.instant(sample.stamp), dict(sample.values))
            for sample in file.samples(lambda counter: our_name(counter) is not None)
        ),
        key=itemgetter(0),
    )
    series: dict[str, list[Counter]] = {}
    for counter in dict.fromkeys(counter for _, values in rows for counter in values):
        series.setdefault(our_name(counter) or "", []).append(counter)
    _refuse(path, file, wanted, series, list(names))
    steps = Steps(path, recording)
    for at, values in rows:
        if (span := steps.span_to(at)) is not None:
            recording.spans.add(*span, _counts(values, series, span[1] - span[0]))
    recording.take_facts(file)
    recording.note(f"{path.name}: each time is taken as the end of what its values cover.")
    steps.tell()


def _counts(values: dict[Counter, float], series: dict[str, list[Counter]], seconds: float) -> dict[str, float]:
    """Return what is known of an interval, by column. Nothing is known of a sum that lacks a part."""
    counts: dict[str, float] = {}
    for ours, counters in series.items():
        meaning = MEANINGS[ours]
        parts = [values[counter] for counter in counters if values.get(counter, -1.0) >= 0]
        if len(parts) == len(counters):
            counts[meaning.column] = sum(parts) * meaning.factor * (seconds if meaning.is_rate else 1.0)
    for held in FileClass:
        for side in ("read", "write"):
            mean, ios = counts.pop(f"{held}.{side}_ms", None), counts.get(f"{held}.{side}s")
            if mean is not None and ios is not None:
                counts[f"{held}.{side}_stall_ms"] = mean * ios
    return counts


def _totals(path: Path) -> StallmarkError:
    return StallmarkError(f"{path} holds totals of Prometheus: import them as JSON, as in {AS_JSON}.")


def _refuse(path: Path, file: Table, wanted: Wanted, series: dict[str, list[Counter]], names: list[str]) -> None:
    """Raise StallmarkError for series that cannot be what they are to be."""
    there = f"it has {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}"
    for theirs in wanted.names:
        if any(theirs.endswith(text) for text in file.texts):
            raise StallmarkError(
                f"“{theirs}” of {path} holds text: export its numbers alone, without a unit, as Grafana does with "
                "“Formatted data” off."
            )
        if theirs not in names:
            raise StallmarkError(f"{path} has no series “{theirs}”: {there}.")
    if not series and any((metric := _METRIC.match(name)) and metric[1] in METRICS for name in names):
        raise _totals(path)
    if not series:
        raise StallmarkError(
            f"{path} has no series of a name that a profile knows: {there}. Give one its name, as in --map "
            "'ReadIOPS=reads_per_s'."
        )
    columns: dict[str, str] = {}
    for ours, counters in series.items():
        meaning = MEANINGS[ours]
        if (other := columns.setdefault(meaning.column, ours)) != ours:
            raise StallmarkError(f"{path} has {other} and {ours}: they are one figure. Leave one of them out.")
        if len(counters) > 1 and (meaning.column.endswith(("read_ms", "write_ms")) or ours in STATES):
            raise StallmarkError(
                f"{path} has {ours} {len(counters)} times, and such figures do not add up: map one of "
                f"“{counters[0].name}” and “{counters[1].name}”."
            )
        for counter in counters:
            if counter.unit and counter.unit != meaning.unit:
                unit = meaning.unit or "a number for each interval"
                raise StallmarkError(
                    f"“{counter.name}” of {path} is in {counter.unit}, and {ours} in {unit}: map it to another name, "
                    "or export it in that unit."
                )
