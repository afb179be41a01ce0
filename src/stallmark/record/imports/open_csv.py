"""A CSV of any tool as a profile: a column of times, and series by our names.

    Time,reads_per_s,read_bytes_per_s,data.writes_per_s,transactions_per_s
    2026-03-02T10:00:00Z,812.3,6654362,40,118

A series of another name is given ours by `--map "ReadIOPS=reads_per_s"`. Several series of one name add up. Rows of one
time are distinguished by a column of names; one that begins with a class, as "log shop_log", is of that class:

    Time,file,reads_total,read_bytes_total,read_stall_ms_total
    2026-03-02T10:00:00Z,log shop_log,812,6651904,1624
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from stallmark.record.formats.sample import Counter, head_of
from stallmark.record.formats.sentences import first_names, in_quotes, load_yaml, refusal
from stallmark.record.formats.table import Table
from stallmark.record.imports.amounts import Amounts, Meaning, Part, known_counters
from stallmark.record.imports.prometheus import OBJECTS, refuse_rates
from stallmark.record.imports.readings import read_samples
from stallmark.record.imports.recording import Recording, Wanted, some_names
from stallmark.record.profile.interval_table import FileClass

_HINT = "it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of Prometheus as JSON, and CSV with times"
_INSTANCE = re.compile(r'\binstance="([^":]+)')
_WORD = re.compile(r"[A-Za-z_:][\w:]*")
_TOTALS = {"_total", "total", "all"}
_SINCE_LONG = 200  # intervals: a total since so long ago hardly rises in each, more evenly than any load
_RARELY = 0.1

NAMES: dict[str, tuple[str, Meaning]] = {
    name if held in ("server", FileClass.DEVICE) else f"{held}.{name}": (held, meaning)
    for (object, name), [meaning] in known_counters("csv").items()
    for held in (["server"] if object == "server" else FileClass)
}
"""The class and meaning of our names: reads, reads_per_s, reads_total, read_ms, data.write_bytes_per_s and so on."""


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if none of its series has one of our names, or a series has another unit."""
    for theirs, ours in wanted.names.items():
        if ours not in NAMES:
            raise refusal("not_ours", ours=ours, theirs=theirs)
    names: dict[str, None] = {}

    def takes(counter: Counter) -> bool:
        names[counter.name] = None
        return _our_name(counter, wanted) is not None

    file = Table(path, hint=_HINT)
    readings = read_samples(file, recording, wanted, takes, is_ordered=False)
    series = {counter: name for counter in readings.values if (name := _our_name(counter, wanted))}
    single = {NAMES[ours][1].column for counter, (ours, _) in series.items() if counter.instance.lower() not in _TOTALS}
    totals = {
        counter for counter, (ours, row) in series.items() if row.lower() in _TOTALS and NAMES[ours][1].column in single
    }
    series = {counter: name for counter, name in series.items() if counter not in totals}
    _refuse_names(path, file, wanted, series, list(names))
    _refuse_sums(path, series)
    _refuse_turns(path, {counter: readings.values[counter] for counter in series})
    parts = []
    for counter, (ours, row) in series.items():
        held, (column, kind, factor, rank) = NAMES[ours]
        values = readings.values[counter] * factor
        parts.append(Part(column, kind, rank, (held, row), row or counter.name, values))
    refuse_rates(path, parts)
    _refuse_totals(path, parts)
    for total in sorted({counter.instance for counter in totals}):
        recording.note("total_rows", file=path.name, name=total)
    amounts = Amounts(readings, parts, recording)
    amounts.add_up({part.entity: part.entity[0] for part in amounts.parts})
    recording.note("end_of_interval", file=path.name)


def _our_name(counter: Counter, wanted: Wanted) -> tuple[str, str] | None:
    """Return our name of a series: by --map, by its own name, or by its column and the class of its row. With the last
    is the text that distinguishes its row from others of one time."""
    if (name := wanted.names.get(counter.name, counter.name)) in NAMES:
        return name, ""
    held = counter.instance.partition(" ")[0].lower()
    for name in (f"{held}.{counter.counter}", counter.counter):
        if counter.instance and name in NAMES:
            return name, counter.instance
    return None


Series = Mapping[Counter, tuple[str, str]]
"""Our name of each series, and the text that distinguishes its row."""


def _refuse_names(path: Path, file: Table, wanted: Wanted, series: Series, names: Sequence[str]) -> None:
    """Raise StallmarkError for two machines, or names without usable values."""
    hosts = {*file.hosts, *(host for counter in series for host in _INSTANCE.findall(counter.name))}
    if len(hosts) > 1:
        raise refusal("two_hosts", path, hosts=some_names(hosts), as_with="")
    has = first_names(names)
    for theirs in [*wanted.names, *(text for text in file.texts if text in NAMES)]:
        if any(theirs.endswith(text) for text in file.texts):
            raise refusal("text_series", path, series=theirs)
        if theirs not in names:
            raise refusal("no_series", path, series=theirs, has=has)
    if not series:
        _refuse_unnamed(path, names)
        raise refusal("raw_totals" if "__name__" in head_of(path, 4096) else "no_name", path, has=has)


def _refuse_sums(path: Path, series: Series) -> None:
    """Raise StallmarkError for series of one metric that do not add up, or one of another unit."""
    of_all = {NAMES[ours][1].column: ours for ours, row in series.values() if not row and "." not in ours}
    columns: dict[tuple[str, str], str] = {}
    rows: dict[tuple[str, str], str] = {}
    for counter, (ours, row) in series.items():
        held, meaning = NAMES[ours]
        if (other := columns.setdefault((held, meaning.column), ours)) != ours:
            raise refusal("same_metric", path, first=other, second=ours)
        if (whole := of_all.get(meaning.column)) and "." in ours and not row:
            raise refusal("whole_and_part", path, whole=whole, part=ours)
        key = (ours, row if meaning.kind == "mean" else "")
        if meaning.kind in ("mean", "state") and (other := rows.setdefault(key, counter.name)) != counter.name:
            raise refusal("no_sum", path, ours=ours, first=other, second=counter.name)
        if counter.unit and counter.unit != (unit := _unit_of(meaning)):
            own = unit or "a number for each interval"
            raise refusal("other_unit", path, series=counter.name, unit=counter.unit, ours=ours, own=own)


def _refuse_turns(path: Path, values: Mapping[Counter, np.ndarray]) -> None:
    """Raise StallmarkError if devices take turns, so that no time has values of two: their sums would be of one."""
    by_device: dict[str, np.ndarray] = {}
    for counter, own in values.items():
        by_device[counter.instance] = np.isfinite(own) | by_device.get(counter.instance, False)
    has = np.array(list(by_device.values()))
    turns = np.count_nonzero(np.diff(has.argmax(axis=0)))
    # A device may be replaced by another, and come back.
    if 1 < len(has) <= turns > has.shape[1] / 2 and (has.sum(axis=0) <= 1).all():
        raise refusal("scattered", path)


def _refuse_totals(path: Path, parts: Iterable[Part]) -> None:
    """Raise StallmarkError if all counts look like totals, which rise by a small part of their size."""
    counts = [part.amounts[np.isfinite(part.amounts)] for part in parts if part.kind == "count"]
    counts = [values for values in counts if len(np.unique(values)) > 1]
    rise = sum(np.maximum(np.diff(values), 0).mean() for values in counts)
    if (
        counts
        and all(len(values) > 2 and _restarts_rarely(values) for values in counts)
        and sum(np.median(values) for values in counts) > _SINCE_LONG * rise
    ):
        raise refusal("counts_rise", path)


def _restarts_rarely(values: np.ndarray) -> bool:
    """Return True if falls are rare, and each is to less than half, as when a total restarts."""
    falls = values[1:] < values[:-1]
    return bool(falls.mean() < _RARELY and (values[1:][falls] < values[:-1][falls] / 2).all())


def _unit_of(meaning: Meaning) -> str:
    if meaning.kind == "rate":
        return "B/s" if meaning.column.endswith("bytes") else "1/s"
    if meaning.column.endswith("_ms"):
        return "ms" if meaning.factor == 1 else "s"
    return "s" if meaning.column.endswith("_s") else ""


def _refuse_unnamed(path: Path, names: Sequence[str]) -> None:
    """Raise StallmarkError for a series with the name of a metric of Prometheus, or of its rate."""
    for name in names:
        metrics = {re.sub("^wmi_", "windows_", word): word for word in _WORD.findall(name)}
        for metric in metrics.keys() & OBJECTS.keys():
            column, _, factor, _ = known_counters("prometheus")[OBJECTS[metric], metric][0]
            if metrics.keys().isdisjoint({"rate", "irate"}):
                ours = f"{re.sub('ms$', 's', column) if factor == 1000 else column}_total"
                query = load_yaml("sentences")["commands"]["query"].replace(
                    "node_disk", "_".join(metrics[metric].split("_")[:2])
                )
                raise refusal("raw_total", path, series=name, quoted=in_quotes(name), ours=ours, as_in=query)
            if (ours := f"{column}_per_s") in NAMES:
                raise refusal("rate", path, series=name, quoted=in_quotes(name), ours=ours)
