"""Prometheus as a profile: the counters of exporters, summed over their series.

The counters themselves are asked for, not their rate(): what was counted is the difference of two neighbouring points.
A counter that falls began anew in between, and what it had counted until then is not known; so is that interval. A
point repeats the last scrape where the step is shorter than the time between scrapes: the totals stay right, the
intervals do not.

The metrics are those of node_exporter (collector/diskstats_common.go, cpu_linux.go; the names until 0.15 too),
windows_exporter (internal/collector/logical_disk, physical_disk, cpu, mssql; wmi_ until 0.12), postgres_exporter
(collector/pg_stat_database.go, pg_stat_bgwriter.go, pg_stat_checkpointer.go), and sql_exporter's
mssql_standard.collector.yml. A metric of another name is not read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import Labels, RangeQuery, as_json
from stallmark.record.imports.devices import Devices
from stallmark.record.imports.perfmon import SYSTEM_DATABASES
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted
from stallmark.record.imports.series import Kind, Series, add_series
from stallmark.record.profile.interval_table import STATES

METRICS: dict[str, list[str]] = json.loads((resources.files(__package__) / "prometheus_metrics.json").read_text())
"""The columns of each metric."""
MOST_SERIES = 20_000
_DEVICES = {"node_disk": "device", "windows_physical_disk": "disk", "windows_logical_disk": "volume"}
"""The labels of devices, by the begin of a metric. Of disks and volumes the first that have a column count."""
_PARTS = frozenset({"__name__", *_DEVICES.values(), "cpu", "core", "mode", "database", "datname", "datid"})
"""The labels by which the series of one machine differ. Any other tells machines, servers or scrapers apart."""
_LEFT_OUT = {
    # A processor that works is in no other mode of these; user contains guest, privileged contains interrupt and dpc.
    "mode": {"idle", "iowait", "steal", "guest", "guest_nice", "interrupt", "dpc"},
    "database": SYSTEM_DATABASES | {"_total"},
    "datname": {"template0", "template1"},
    **{label: {"_total"} for label in _DEVICES.values()},
}
_NEW_NAMES = {
    "node_cpu": "node_cpu_seconds_total",
    **{f"node_disk_{side}s_completed": f"node_disk_{side}s_completed_total" for side in ("read", "write")},
    **{f"node_disk_{side}_time_ms": f"node_disk_{side}_time_seconds_total" for side in ("read", "write")},
    "node_disk_bytes_read": "node_disk_read_bytes_total", "node_disk_bytes_written": "node_disk_written_bytes_total",
}  # fmt: skip
"""Compatibility rules of a Prometheus record both: then the new name counts."""


class _Known(NamedTuple):
    """A series of a metric that is known, for one of its columns. `label`: that of its device, if it is of one."""

    metric: str
    column: str
    label: str
    labels: Labels
    at: np.ndarray
    values: np.ndarray

    @property
    def device(self) -> str:
        return self.labels.get(self.label, "")

    def series(self, column: str, group: str, name: str) -> Series:
        kind: Kind = "state" if self.column in STATES else "total"
        return Series(column, kind, group, name, self.at, self.values * unit_factor(self.metric, self.column))


def unit_factor(metric: str, column: str) -> float:
    """Return what a value of a metric is in its column: seconds are ms there, pages bytes."""
    if column.endswith("_ms") and "_seconds" in metric:
        return 1000.0
    return 8192.0 if column.endswith("_bytes") and metric.endswith("_pages") else 1.0


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add all series of one file; raise StallmarkError if it has none of the metrics that are known."""
    names, known = Counter[str](), list[_Known]()
    others: dict[str, Labels] = {}
    query = RangeQuery(path)
    for labels, at, values in query:
        name = labels.get("__name__", "")
        names[name] += 1
        if names.total() > MOST_SERIES:
            raise StallmarkError(f"{path} has more than {MOST_SERIES:,} series: ask for one machine's.")
        name = name.replace("wmi_", "windows_", 1) if name.startswith("wmi_") else name
        if name not in METRICS:
            continue
        _refuse_other(path, name, labels, others)
        at, values, disordered = _ordered(at, values)
        if disordered:
            recording.note(
                f"{path.name}: points that were not in the order of time are sorted, and double ones left out."
            )
        if len(at) > 1 and not any(labels.get(key, "").lower() in texts for key, texts in _LEFT_OUT.items()):
            label = next((label for begin, label in _DEVICES.items() if name.startswith(begin)), "")
            known += [_Known(name, column, label, labels, at, values) for column in METRICS[name]]
        recording.host = recording.host or re.sub(r":\d+$", "", labels.get("instance", "")) or None
    known = [one for one in known if _NEW_NAMES.get(one.metric) not in names]
    devices = Devices(recording, wanted)
    series = [*_device_series(known, devices, bool(wanted.classes)), *_server_series(known)]
    if not series:
        raise StallmarkError(_nothing(path, names))
    recording.engine = next((engine for one in known if (engine := _engine(one.metric))), recording.engine)
    if cores := {one.labels.get("cpu") or one.labels.get("core") for one in known if one.column == "cpu_s"}:
        recording.cores = len(cores)
        recording.note(WHOLE_MACHINE)
    add_series(series, recording, path.name)
    devices.finish(path.name)
    if not query.whole:
        recording.note(f"{path.name} is cut: its last series is left out.")


def _refuse_other(path: Path, name: str, labels: Labels, others: dict[str, Labels]) -> None:
    """Raise StallmarkError for a series that is not of the same machine, server and scraper as others of its name."""
    own = {label: text for label, text in labels.items() if label not in _PARTS}
    first = others.setdefault(name, own)
    if label := next((label for label in sorted(own.keys() | first.keys()) if own.get(label) != first.get(label)), ""):
        texts = sorted((first.get(label, ""), own.get(label, "")))
        raise StallmarkError(
            f"{path} has {name} of {label} “{texts[0]}” and “{texts[1]}”: a profile is of one machine. Ask for one, as "
            f"in {as_json(name.partition('_')[0] + '_.*', {'instance': own.get('instance', ''), label: texts[0]})}."
        )


def _device_series(known: list[_Known], devices: Devices, is_given: bool) -> Iterator[Series]:
    """Yield the series of devices that count. If their class was not given, a column is of one label's devices."""
    labels: dict[str, str] = {}
    for label in _DEVICES.values():
        for one in known:
            if one.label == label and (is_given or labels.setdefault(one.column, label) == label):
                devices.meet([one.device])
    for one in known:
        if one.label and one.device in devices.counted and labels.get(one.column, one.label) == one.label:
            yield one.series(f"{devices.counted[one.device]}.{one.column}", f"{one.label} {one.device}", one.device)


def _server_series(known: list[_Known]) -> Iterator[Series]:
    for one in known:
        if not one.label:
            database = one.labels.get("database") or one.labels.get("datname") or ""
            yield one.series(f"server.{one.column}", _engine(one.metric) or "cpu", database)


def _engine(metric: str) -> Literal["mssql", "postgresql"] | None:
    return "mssql" if "mssql_" in metric else "postgresql" if metric.startswith("pg_") else None


def _ordered(at: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the points in the order of time, without those that are not known and all but the first of one time."""
    finite = np.isfinite(at) & np.isfinite(values)
    at, values = at[finite], values[finite]
    if (np.diff(at) > 0).all():
        return at, values, False
    each, first = np.unique(at, return_index=True)
    return each, values[first], True


def _nothing(path: Path, names: Counter[str]) -> str:
    named = [name for name in names if name]
    if names and not named:
        return (
            f"The series of {path} have no names, as those of rate() have none: ask for the counters themselves, as in "
            "node_disk_reads_completed_total."
        )
    some = f" (it has {', '.join(sorted(named)[:3])})" if named else ""
    return f"{path} has no two points of a metric that a profile knows{some}: docs/import-a-profile.md has their names."
