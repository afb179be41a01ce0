"""Prometheus as a profile: the counters of exporters, summed over the series of a range query's JSON.

    {"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"__name__":"node_disk_reads_completed_total","device":"sda",…},"values":[[1772445600,"812344"],…]},…]}}

(https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries) Times are in seconds since 1970.

The query is for the counters themselves, not their rate(): an increment is the difference of two neighbouring points. A
point repeats the last scrape if the step is shorter than the time between scrapes: the totals stay right, the intervals
do not.

The metrics are those of node_exporter (collector/diskstats_common.go, cpu_linux.go; the names until 0.15 too),
windows_exporter (internal/collector/logical_disk, physical_disk, cpu, mssql; wmi_ until 0.12), postgres_exporter
(collector/pg_stat_database.go, pg_stat_bgwriter.go, pg_stat_checkpointer.go), and sql_exporter's
mssql_standard.collector.yml. A metric of another name is not read.
"""

import json
import re
from array import array
from collections import Counter as CounterOf
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.amounts import (
    Amounts,
    Key,
    Part,
    Readings,
    Recording,
    Wanted,
    in_order,
    known_counters,
    known_parts,
    some_names,
)
from stallmark.record.formats.devices import classify, note_uncounted, settle_idle
from stallmark.record.formats.perfmon import SYSTEM_DATABASES
from stallmark.record.formats.sample import Counter, JsonArray, in_quotes, load_yaml, refusal

_RESULT = re.compile(r'"result"\s*:\s*\[|\[(?=\s*\{\s*"metric"\s*:)')  # promtool writes the series alone
_ABOUT = re.compile(r'"(status|error|resultType|warnings)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|\[([^\]]*))')
Labels = Mapping[str, str]
OBJECTS = {metric: object for object, metric in known_counters("prometheus")}
"""The label of each metric with devices, or whose metric it is."""
MOST_SERIES = 20_000
_FALLS = 3  # minimum falls of a series that is no total
_OFTEN = 4  # a total falls less than once in so many points
_DEVICES = ("device", "disk", "volume")
_SERVERS = ("mssql", "postgresql")  # an exporter of these may be on another machine
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
    parts = list(known_parts(readings, "prometheus", lambda own: (own.object, own.counter)))
    refuse_rates(path, parts)
    amounts = Amounts(readings, parts, recording)
    moved = amounts.bytes_by_device(*_DEVICES)
    counted = classify(moved, recording, wanted)
    settle_idle(amounts, "device", counted, recording)
    classes: dict[Key, str] = {}
    for part in amounts.parts:
        object, name = part.entity
        if object not in _DEVICES:
            classes[part.entity] = "server"
        elif name in counted:
            classes[part.entity] = counted[name]
    objects = {object for object, _ in classes}
    recording.engine = "mssql" if "mssql" in objects else "postgresql" if "postgresql" in objects else recording.engine
    if cores := {name.partition(" ")[0] for object, name in classes if object == "cpu"}:
        recording.cores = len(cores)
        recording.note("whole_machine")
    amounts.add_up(classes, by_class=bool(wanted.classes))
    note_uncounted(moved, counted, recording, path.name)


def refuse_rates(path: Path, parts: Iterable[Part]) -> None:
    """Raise StallmarkError for a total that falls too often, as a rate does."""
    for part in parts:
        steps = np.diff(part.amounts[np.isfinite(part.amounts)])
        falls = int((steps < 0).sum())
        if part.kind == "total" and falls >= _FALLS and falls * _OFTEN > len(steps):
            raise refusal("falling_total", path, name=f"{part.name} {part.column}".strip(), falls=falls)


def _read_known(path: Path, recording: Recording) -> Readings:
    """Return the series of known metrics that count and have two points. Raise StallmarkError if none does."""
    names, others = CounterOf[str](), dict[str, Labels]()
    points: dict[Counter, list[np.ndarray]] = {}
    machines = set[str]()

    def read_around(text: str) -> None:
        about = {name: text or texts for name, text, texts in _ABOUT.findall(text)}
        if about.get("status") == "error":
            reason = f", “{about['error']}”" if about.get("error") else ""
            raise refusal("prometheus_error", path, reason=reason)
        if about.get("resultType", "matrix") != "matrix":
            raise refusal("no_matrix", path)
        if about.get("warnings"):
            recording.note("prometheus_warns", file=path.name, warnings=about["warnings"])

    results = JsonArray(path, _RESULT, read_around)
    for result in results:
        labels, own_points = _read_series(path, result)
        name = re.sub("^wmi_", "windows_", labels.get("__name__", ""))
        names[name] += 1
        if names.total() > MOST_SERIES:
            raise refusal("many_series", path, most=MOST_SERIES)
        if name in OBJECTS:
            _refuse_other(path, name, labels, others)
            host = re.sub(r":\d+$", "", labels.get("instance", ""))
            recording.host = recording.host or host or None
            machines |= {host} if host and OBJECTS[name] not in _SERVERS else set()
            if len(machines) > 1:
                as_with = f", as with {load_yaml('sentences')['commands']['query']}"
                raise refusal("two_hosts", path, hosts=some_names(machines), as_with=as_with)
            if not any(labels.get(label, "").lower() in texts for label, texts in _LEFT_OUT.items()):
                instance = " ".join(labels[label] for label in _PARTS if label in labels)
                points.setdefault(Counter("", OBJECTS[name], name, instance), []).append(own_points)
    if not results.whole:
        recording.note("cut_series", file=path.name)
    all_times, cells = array("d"), dict[Counter, tuple[range, np.ndarray]]()
    for counter in list(points):
        times, values = np.concatenate(points.pop(counter), axis=1)
        if len(np.unique(times)) > 1:
            cells[counter] = range(len(all_times), len(all_times) + len(times)), values.copy()
            all_times.frombytes(times.tobytes())
            if (np.diff(times) <= 0).any():
                recording.note("disordered", file=path.name)
    if not cells:
        raise _nothing(path, names)
    return in_order(path, np.frombuffer(all_times), cells)


def _read_series(path: Path, result: Mapping[str, Any]) -> tuple[Labels, np.ndarray]:
    """Return the labels of a series, and its known times and values."""
    labels, points = result.get("metric"), result.get("values")
    if not isinstance(labels, dict) or not isinstance(points, list):
        raise refusal("no_matrix", path)
    try:
        pairs = np.array([[float(point[0]), float(point[1])] for point in points]).reshape(-1, 2).T
    except (TypeError, ValueError, IndexError, KeyError):
        raise refusal("bad_point", path, name=str(labels.get("__name__", ""))[:80]) from None
    return {str(key): str(value) for key, value in labels.items()}, pairs[:, np.isfinite(pairs).all(axis=0)]


def _refuse_other(path: Path, name: str, labels: Labels, others: dict[str, Labels]) -> None:
    """Raise StallmarkError for a series of another machine, server or scraper than the others of its name."""
    exporter = labels["__name__"].partition("_")[0]
    instance = {"instance": labels.get("instance", "")}
    all_own = {label: text for label, text in labels.items() if label not in (*_PARTS, "__name__")}
    for metrics, own in ((f"{exporter}_*", instance), (name, all_own)):
        first = others.setdefault(metrics, own)
        differ = [label for label in own.keys() | first.keys() if own.get(label) != first.get(label)]
        if label := min(differ, default=""):
            less, more = sorted((first.get(label, ""), own.get(label, "")))
            needed = "".join(f",{key}={json.dumps(text)}" for key, text in (instance | {label: less}).items())
            query = in_quotes(f'{exporter}_.*"{needed}')
            raise refusal("two_scrapes", path, name=metrics, label=label, first=less, second=more, metrics=query)


def _nothing(path: Path, names: CounterOf[str]) -> StallmarkError:
    named = sorted(filter(None, names))
    if names and not named:
        return refusal("nameless_series", path)
    if few := sorted(OBJECTS.keys() & names.keys()):
        return refusal("few_points", path, names=", ".join(few[:3]))
    return refusal("no_metric", path, names=", ".join(named[:3]) or "none")
