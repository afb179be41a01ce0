"""Prometheus as a profile: the counters of exporters, summed over their series.

The query is for the counters themselves, not their rate(): an increment is the difference of two neighbouring points. A
counter that falls was reset in between, so its increment in that interval is unknown. A point repeats the last scrape
if the step is shorter than the time between scrapes: the totals stay right, the intervals do not.

The metrics are those of node_exporter (collector/diskstats_common.go, cpu_linux.go; the names until 0.15 too),
windows_exporter (internal/collector/logical_disk, physical_disk, cpu, mssql; wmi_ until 0.12), postgres_exporter
(collector/pg_stat_database.go, pg_stat_bgwriter.go, pg_stat_checkpointer.go), and sql_exporter's
mssql_standard.collector.yml. A metric of another name is not read.
"""

import re
from collections import Counter as CounterOf
from itertools import pairwise
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import Labels, RangeQuery, as_json
from stallmark.record.formats.sample import Counter
from stallmark.record.formats.sentences import refusal
from stallmark.record.imports.amounts import Amounts, Key, known_counters, known_series
from stallmark.record.imports.devices import classify, note_uncounted
from stallmark.record.imports.perfmon import SYSTEM_DATABASES
from stallmark.record.imports.readings import Readings, in_order
from stallmark.record.imports.recording import Recording, Wanted

OBJECTS = {metric: object for object, metric in known_counters("prometheus")}
"""The label of each metric with devices, or whose metric it is."""
MOST_SERIES = 20_000
_DEVICES = ("device", "disk", "volume")
_PARTS = (*_DEVICES, "cpu", "core", "mode", "database", "datname", "datid")
"""The labels by which the series of one machine differ. Any other label distinguishes machines, servers or scrapers."""
_LEFT_OUT = {
    # A processor that works is in no other mode of these; user contains guest, privileged contains interrupt and dpc.
    "mode": {"idle", "iowait", "steal", "guest", "guest_nice", "interrupt", "dpc"},
    "database": SYSTEM_DATABASES | {"_total"},
    "datname": {"template0", "template1"},
    **{label: {"_total"} for label in _DEVICES},
}


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add all series of one file; raise StallmarkError if it has no known metric."""
    readings = _read_known(path, recording)
    amounts = Amounts(readings, known_series(readings, "prometheus", lambda own: (own.object, own.counter)), recording)
    moved = amounts.moved(*_DEVICES)
    counted = classify(moved, recording, wanted)
    classes: dict[Key, str] = {}
    for part in amounts.parts:
        object, name = part.entity
        if object not in _DEVICES:
            classes[part.entity] = "server"
        elif name in counted:
            classes[part.entity] = counted[name]
    objects = {counter.object for counter in readings.values}
    recording.engine = "mssql" if "mssql" in objects else "postgresql" if "postgresql" in objects else recording.engine
    if cores := {own.instance.partition(" ")[0] for own in readings.values if own.object == "cpu"}:
        recording.cores = len(cores)
        recording.note("whole_machine")
    amounts.add_up(classes, by_class=bool(wanted.classes))
    note_uncounted(moved, counted, recording, path.name)


def _read_known(path: Path, recording: Recording) -> Readings:
    """Return the series of known metrics that count and have two points. Raise StallmarkError if none does."""
    names, others = CounterOf[str](), dict[str, Labels]()
    points: dict[Counter, list[np.ndarray]] = {}
    query = RangeQuery(path)
    for labels, times, values in query:
        name = re.sub("^wmi_", "windows_", labels.get("__name__", ""))
        names[name] += 1
        if names.total() > MOST_SERIES:
            raise refusal("many_series", path, most=MOST_SERIES)
        if name in OBJECTS:
            _refuse_other(path, name, labels, others)
            recording.host = recording.host or re.sub(r":\d+$", "", labels.get("instance", "")) or None
            if not any(labels.get(label, "").lower() in texts for label, texts in _LEFT_OUT.items()):
                instance = " ".join(labels[label] for label in _PARTS if label in labels)
                is_known = np.isfinite(times) & np.isfinite(values)
                points.setdefault(Counter("", OBJECTS[name], name, instance), []).append(
                    np.stack([times, values])[:, is_known]
                )
    if not query.whole:
        recording.note("cut_series", file=path.name)
    joined = {counter: np.concatenate(parts, axis=1) for counter, parts in points.items()}
    joined = {counter: part for counter, part in joined.items() if len(np.unique(part[0])) > 1}
    if not joined:
        raise _nothing(path, names)
    if any((np.diff(part[0]) <= 0).any() for part in joined.values()):
        recording.note("disordered", file=path.name)
    begins = np.cumsum([0, *(part.shape[1] for part in joined.values())]).tolist()
    cells = {
        counter: (range(begin, end), values)
        for (counter, (_, values)), (begin, end) in zip(joined.items(), pairwise(begins), strict=True)
    }
    return in_order(path.name, np.concatenate([times for times, _ in joined.values()]), cells)


def _refuse_other(path: Path, name: str, labels: Labels, others: dict[str, Labels]) -> None:
    """Raise StallmarkError for a series of another machine, server or scraper than the others of its name."""
    own = {label: text for label, text in labels.items() if label not in (*_PARTS, "__name__")}
    first = others.setdefault(name, own)
    exporter = others.setdefault(name.partition("_")[0], own)
    differ = {label for label in own.keys() | first.keys() if own.get(label) != first.get(label)}
    if own.get("instance") != exporter.get("instance"):
        name, first, differ = f"{name.partition('_')[0]}_*", exporter, {"instance"}
    if label := min(differ, default=""):
        texts = sorted((first.get(label, ""), own.get(label, "")))
        query = as_json(f"{name.partition('_')[0]}_.*", {"instance": own.get("instance", ""), label: texts[0]})
        raise refusal("two_scrapes", path, name=name, label=label, first=texts[0], second=texts[1], query=query)


def _nothing(path: Path, names: CounterOf[str]) -> StallmarkError:
    named = sorted(filter(None, names))
    if names and not named:
        return refusal("nameless_series", path)
    if few := sorted(OBJECTS.keys() & names.keys()):
        return refusal("few_points", path, names=", ".join(few[:3]), query=as_json())
    return refusal("no_metric", path, names=", ".join(named[:3]) or "none")
