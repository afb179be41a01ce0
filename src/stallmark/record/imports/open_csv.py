"""A CSV of any tool as a profile: a column of times, and series by our names.

    Time,reads_per_s,read_bytes_per_s,data.writes_per_s,transactions_per_s
    2026-03-02T10:00:00Z,812.3,6654362,40,118

A series of another name is given ours by `--map "ReadIOPS=reads_per_s"`. Several series of one name add up. Rows of one
time are distinguished by a column of names; one that begins with a class, as "log shop_log", is of that class:

    Time,file,reads_total,read_bytes_total,read_stall_ms_total
    2026-03-02T10:00:00Z,log shop_log,812,6651904,1624
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import as_json
from stallmark.record.formats.sample import Counter, head_of
from stallmark.record.formats.table import Table
from stallmark.record.imports.amounts import Amounts, Meaning, Series, known_counters
from stallmark.record.imports.prometheus import OBJECTS
from stallmark.record.imports.readings import read_samples
from stallmark.record.imports.recording import COUNTS, Recording, Wanted, some_names
from stallmark.record.profile.interval_table import IO, STATES, FileClass

_HINT = "it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of Prometheus as JSON, and CSV with times"
_NAMED = 6  # maximum series named in a message
_INSTANCE = re.compile(r'\binstance="([^":]+)')
_WORD = re.compile(r"[A-Za-z_:][\w:]*")


class Ours(NamedTuple):
    """The class, meaning and unit of one of our names."""

    held: str
    meaning: Meaning
    unit: str


def _names() -> Iterator[tuple[str, Ours]]:
    columns = [("server", column) for column in (*STATES, *COUNTS)]
    for held, column in [*columns, *((held, column) for held in FileClass for column in IO)]:
        name = column if held in ("server", FileClass.DEVICE) else f"{held}.{column}"
        if column in STATES:
            yield name, Ours(held, Meaning(column, "state"), "")
        elif name.endswith("_stall_ms"):
            for unit, factor in (("ms", 1.0), ("s", 1000.0)):
                stall = f"{name.removesuffix('ms')}{unit}"
                yield stall, Ours(held, Meaning(column, "count", factor), unit)
                yield f"{stall}_total", Ours(held, Meaning(column, "total", factor), unit)
                mean = column.replace("stall_", "")
                yield stall.replace("stall_", ""), Ours(held, Meaning(mean, "mean", factor), unit)
        else:
            yield name, Ours(held, Meaning(column, "count"), "")
            yield f"{name}_total", Ours(held, Meaning(column, "total"), "")
            yield f"{name}_per_s", Ours(held, Meaning(column, "rate"), "B/s" if name.endswith("bytes") else "1/s")


NAMES = dict(_names())
"""Our names and their meanings: reads, reads_per_s, reads_total, read_ms, data.write_bytes_per_s and so on."""


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if none of its series has one of our names, or a series has another unit."""
    for theirs, ours in wanted.names.items():
        if ours not in NAMES:
            raise StallmarkError(
                f"{ours} is not a series to map {theirs} to: choose reads_per_s, read_bytes_per_s, read_ms or "
                "another one of docs/import-a-profile.md."
            )
    names: dict[str, None] = {}

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return _our_name(counter, wanted) is not None

    file = Table(path, hint=_HINT)
    readings = read_samples(file, recording, wanted, takes, is_ordered=False)
    parts = {counter: name for counter in readings.values if (name := _our_name(counter, wanted))}
    _refuse(path, file, wanted, parts, list(names))
    series = [
        Series(NAMES[ours].meaning, (NAMES[ours].held, row), row or counter.name, readings.values[counter])
        for counter, (ours, row) in parts.items()
    ]
    Amounts(readings, series, recording).add_up({entity: entity[0] for _, entity, _, _ in series})
    recording.note(f"{path.name}: each time is taken as the end of what its values cover.")


def _our_name(counter: Counter, wanted: Wanted) -> tuple[str, str] | None:
    """Return our name of a series: by --map, by its own name, or by its column and the class of its row; and the text
    that distinguishes its row from others of one time, if its name does not."""
    if (name := wanted.names.get(counter.name, counter.name)) in NAMES:
        return name, ""
    held = counter.instance.partition(" ")[0].lower()
    for name in (f"{held}.{counter.counter}", counter.counter):
        if counter.instance and name in NAMES:
            return name, counter.instance
    return None


def _refuse(
    path: Path, file: Table, wanted: Wanted, parts: Mapping[Counter, tuple[str, str]], names: list[str]
) -> None:
    """Raise StallmarkError for series without a usable name, value or unit."""
    hosts = {*file.hosts, *(host for counter in parts for host in _INSTANCE.findall(counter.name))}
    if len(hosts) > 1:
        raise StallmarkError(f"{path} is of {some_names(hosts)}: give each a file of its own.")
    existing = f"it has {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}"
    for theirs in [*wanted.names, *(text for text in file.texts if text in NAMES)]:
        if any(theirs.endswith(text) for text in file.texts):
            raise StallmarkError(
                f"“{theirs}” of {path} holds text: export its numbers alone, without a unit, as Grafana does with "
                "“Formatted data” off."
            )
        if theirs not in names:
            raise StallmarkError(f"{path} has no series “{theirs}”: {existing}.")
    if not parts:
        for name in names:
            for word in set(_WORD.findall(name)) & OBJECTS.keys():
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
    of_all = {NAMES[ours].meaning.column: ours for ours, row in parts.values() if not row and "." not in ours}
    columns: dict[tuple[str, str], str] = {}
    rows: dict[tuple[str, str], str] = {}
    for counter, (ours, row) in parts.items():
        held, meaning, unit = NAMES[ours]
        if (other := columns.setdefault((held, meaning.column), ours)) != ours:
            raise StallmarkError(f"{path} has {other} and {ours}: they are the same metric: omit one of them.")
        whole = of_all.get(meaning.column)
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
        if counter.unit and counter.unit != unit:
            raise StallmarkError(
                f"“{counter.name}” of {path} is in {counter.unit}, and {ours} in {unit or 'a number for each interval'}"
                ": map it to another name, or export it in that unit."
            )


def _total_name(metric: str) -> str:
    column, _, factor, _ = known_counters("prometheus")[OBJECTS[metric], metric][0]
    return f"{re.sub('ms$', 's', column) if factor == 1000 else column}_total"
