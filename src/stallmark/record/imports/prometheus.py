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
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import Labels, RangeQuery, as_json
from stallmark.record.imports.counters import known_counters
from stallmark.record.imports.devices import classify, note_uncounted
from stallmark.record.imports.perfmon import SYSTEM_DATABASES
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted
from stallmark.record.imports.series import Series, add_series
from stallmark.record.profile.interval_table import STATES

METRICS = {metric: (label, entries) for (label, metric), entries in known_counters("prometheus").items()}
"""The label of the devices of each metric, if it has one, and its columns."""
MOST_SERIES = 20_000
_DEVICES = ("device", "disk", "volume")
"""The labels of devices. Of disks and volumes, the first with a column count."""
_PARTS = frozenset({"__name__", *_DEVICES, "cpu", "core", "mode", "database", "datname", "datid"})
"""The labels by which the series of one machine differ. Any other label distinguishes machines, servers or scrapers."""
_LEFT_OUT = {
    # A processor that works is in no other mode of these; user contains guest, privileged contains interrupt and dpc.
    "mode": {"idle", "iowait", "steal", "guest", "guest_nice", "interrupt", "dpc"},
    "database": SYSTEM_DATABASES | {"_total"},
    "datname": {"template0", "template1"},
    **{label: {"_total"} for label in _DEVICES},
}
_NEW_NAMES = {
    "node_cpu": "node_cpu_seconds_total",
    **{f"node_disk_{side}s_completed": f"node_disk_{side}s_completed_total" for side in ("read", "write")},
    **{f"node_disk_{side}_time_ms": f"node_disk_{side}_time_seconds_total" for side in ("read", "write")},
    "node_disk_bytes_read": "node_disk_read_bytes_total", "node_disk_bytes_written": "node_disk_written_bytes_total",
}  # fmt: skip
"""Old names and new ones. Compatibility rules of a Prometheus record both: then the new name counts."""


class _Known(NamedTuple):
    """A series of a known metric, for one of its columns."""

    metric: str
    column: str
    label: str
    """The label of its device, if it has one."""
    labels: Labels
    times: np.ndarray
    values: np.ndarray

    @property
    def device(self) -> str:
        return self.labels.get(self.label, "")

    def series(self, column: str, group: str, name: str) -> Series:
        return Series(column, "state" if self.column in STATES else "total", group, name, self.times, self.values)


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add all series of one file; raise StallmarkError if it has no known metric."""
    known = _read_known(path, recording)
    # Without given classes, each column is of one label's devices.
    labels = {entry.column: entry.label for label in reversed(_DEVICES) for entry in known if entry.label == label}
    of_devices = [entry for entry in known if entry.label and (wanted.classes or entry.label == labels[entry.column])]
    moved = dict.fromkeys((entry.device for entry in of_devices), 0.0)
    for entry in of_devices:
        moved[entry.device] += float(np.ptp(entry.values)) if entry.column.endswith("bytes") else 0.0
    classes = classify(moved, recording, wanted)
    series = [
        entry.series(f"{classes[entry.device]}.{entry.column}", f"{entry.label} {entry.device}", entry.device)
        for entry in of_devices
        if entry.device in classes
    ]
    for entry in known:
        if not entry.label:
            database = entry.labels.get("database") or entry.labels.get("datname") or ""
            series.append(entry.series(f"server.{entry.column}", _engine(entry.metric) or "cpu", database))
    recording.engine = next((engine for entry in known if (engine := _engine(entry.metric))), recording.engine)
    if cores := {entry.labels.get("cpu") or entry.labels.get("core") for entry in known if entry.column == "cpu_s"}:
        recording.cores = len(cores)
        recording.note(WHOLE_MACHINE)
    add_series(series, recording, path.name)
    note_uncounted(moved, classes, recording, path.name)


def _read_known(path: Path, recording: Recording) -> list[_Known]:
    """Return the series of known metrics that count and have two points. Raise StallmarkError if none does."""
    names, known = Counter[str](), list[_Known]()
    others: dict[str, Labels] = {}
    points: dict[frozenset[tuple[str, str]], list[np.ndarray]] = {}
    query = RangeQuery(path)
    for labels, times, values in query:
        name = labels.get("__name__", "")
        names[name] += 1
        if names.total() > MOST_SERIES:
            raise StallmarkError(f"{path} has more than {MOST_SERIES:,} series: ask for one machine's.")
        name = name.replace("wmi_", "windows_", 1) if name.startswith("wmi_") else name
        if name in METRICS:
            _refuse_other(path, name, labels, others)
            points.setdefault(frozenset({**labels, "__name__": name}.items()), []).append(np.stack([times, values]))
    for identity, parts in points.items():
        labels = dict(identity)
        times, values, disordered = _ordered(*np.concatenate(parts, axis=1))  # appended documents are not in order
        if disordered:
            recording.note(
                f"{path.name}: points that were not in the order of time are sorted, and double ones left out."
            )
        if len(times) > 1 and not any(labels.get(key, "").lower() in texts for key, texts in _LEFT_OUT.items()):
            label, entries = METRICS[name := labels["__name__"]]
            known += [_Known(name, column, label, labels, times, values * factor) for column, factor in entries]
        recording.host = recording.host or re.sub(r":\d+$", "", labels.get("instance", "")) or None
    if not query.whole:
        recording.note(f"{path.name} is cut: its last series is left out.")
    if known := [entry for entry in known if _NEW_NAMES.get(entry.metric) not in names]:
        return known
    raise StallmarkError(_nothing(path, names))


def _refuse_other(path: Path, name: str, labels: Labels, others: dict[str, Labels]) -> None:
    """Raise StallmarkError for a series of another machine, server or scraper than the others of its name."""
    own = {label: text for label, text in labels.items() if label not in _PARTS}
    first = others.setdefault(name, own)
    exporter = others.setdefault(name.partition("_")[0], own)
    differ = {label for label in own.keys() | first.keys() if own.get(label) != first.get(label)}
    if own.get("instance") != exporter.get("instance"):
        name, first, differ = f"{name.partition('_')[0]}_*", exporter, {"instance"}
    if label := min(differ, default=""):
        texts = sorted((first.get(label, ""), own.get(label, "")))
        raise StallmarkError(
            f"{path} has {name} of {label} “{texts[0]}” and “{texts[1]}”: a profile is of one machine. Ask for one, as "
            f"in {as_json(name.partition('_')[0] + '_.*', {'instance': own.get('instance', ''), label: texts[0]})}."
        )


def _engine(metric: str) -> Literal["mssql", "postgresql"] | None:
    return "mssql" if "mssql_" in metric else "postgresql" if metric.startswith("pg_") else None


def _ordered(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the known points in the order of time, only the first of each time, and whether any were out of order."""
    finite = np.isfinite(times) & np.isfinite(values)
    times, values = times[finite], values[finite]
    if (np.diff(times) > 0).all():
        return times, values, False
    distinct_times, first = np.unique(times, return_index=True)
    return distinct_times, values[first], True


def _nothing(path: Path, names: Counter[str]) -> str:
    named = [name for name in names if name]
    if names and not named:
        return (
            f"The series of {path} have no names, as after rate(): query the counters themselves, as in "
            "node_disk_reads_completed_total."
        )
    if few := sorted(METRICS.keys() & names.keys()):
        return (
            f"{path} does not have two points that count of {', '.join(few[:3])}: ask for a longer time, as in "
            f"{as_json()}."
        )
    examples = f" (it has {', '.join(sorted(named)[:3])})" if named else ""
    return (
        f"{path} does not have two points of a metric that a profile knows{examples}: docs/import-a-profile.md has "
        "their names."
    )
