"""Prometheus as a profile: the counters of exporters, summed over their series.

The counters themselves are asked for, not their rate(): what was counted is the difference of two neighbouring points.
A counter that falls began anew in between, and what it had counted until then is not known; so is that interval. A
point repeats the last scrape where the step is shorter than the time between scrapes: the totals stay right, the
intervals do not.

The metrics are those of node_exporter (collector/diskstats_common.go, cpu_linux.go), windows_exporter
(docs/collector.logical_disk.md, collector.mssql.md), postgres_exporter (collector/pg_stat_database.go,
pg_stat_bgwriter.go, pg_stat_checkpointer.go), and sql_exporter's mssql_standard.collector.yml. A metric of another name
is not read.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import RangeQuery
from stallmark.record.imports.devices import Devices
from stallmark.record.imports.perfmon import SYSTEM_DATABASES
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted
from stallmark.record.profile.intervals import STATES
from stallmark.record.profile.manifest import GAP

_PAGE, _TO_MS = 8192.0, 1000.0
MOST_SERIES = 20_000
_MISSED = 1.5
"""So many intervals between two points of a series: one was missed between them."""


@dataclass(frozen=True)
class Metric:
    """One metric. Of a `device` it goes to the device's class; of the `server` to a column, summed over its series,
    without those of `skip`: label and values."""

    to: Literal["device", "server"]
    column: str
    factor: float = 1.0
    device_label: str = "device"
    skip: tuple[str, frozenset[str]] | None = None
    engine: Literal["mssql", "postgresql"] | None = None


def _node(column: str, factor: float = 1.0) -> Metric:
    return Metric("device", column, factor)


def _volume(column: str, factor: float = 1.0) -> Metric:
    return Metric("device", column, factor, "volume")


def _mssql(column: str, factor: float = 1.0) -> Metric:
    return Metric("server", column, factor, engine="mssql")


def _postgres(column: str) -> Metric:
    return Metric("server", column, engine="postgresql")


_SYSTEM = ("database", SYSTEM_DATABASES | {"_Total"})
_TEMPLATES = ("datname", frozenset({"template0", "template1"}))
METRICS: dict[str, tuple[Metric, ...]] = {
    "node_disk_reads_completed_total": (_node("reads"),),
    "node_disk_read_bytes_total": (_node("read_bytes"),),
    "node_disk_read_time_seconds_total": (_node("read_stall_ms", _TO_MS),),
    "node_disk_writes_completed_total": (_node("writes"),),
    "node_disk_written_bytes_total": (_node("write_bytes"),),
    "node_disk_write_time_seconds_total": (_node("write_stall_ms", _TO_MS),),
    "node_cpu_seconds_total": (Metric("server", "cpu_s", skip=("mode", frozenset({"idle", "iowait", "steal"}))),),
    "windows_logical_disk_reads_total": (_volume("reads"),),
    "windows_logical_disk_read_bytes_total": (_volume("read_bytes"),),
    "windows_logical_disk_read_latency_seconds_total": (_volume("read_stall_ms", _TO_MS),),
    "windows_logical_disk_writes_total": (_volume("writes"),),
    "windows_logical_disk_write_bytes_total": (_volume("write_bytes"),),
    "windows_logical_disk_write_latency_seconds_total": (_volume("write_stall_ms", _TO_MS),),
    "windows_cpu_time_total": (Metric("server", "cpu_s", skip=("mode", frozenset({"idle"}))),),
    "windows_mssql_databases_log_flushes": (Metric("server", "log_flushes", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_databases_log_flushed_bytes": (Metric("server", "log_bytes", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_databases_transactions": (Metric("server", "transactions", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_sqlstats_batch_requests": (_mssql("batches"),),
    "windows_mssql_memmgr_target_server_memory_bytes": (_mssql("memory_target_bytes"),),
    "windows_mssql_memmgr_stolen_server_memory_bytes": (_mssql("stolen_bytes"),),
    "windows_mssql_bufman_database_pages": (_mssql("database_pages_bytes", _PAGE),),
    "windows_mssql_bufman_page_life_expectancy_seconds": (_mssql("page_life_expectancy_s"),),
    "windows_mssql_bufman_checkpoint_pages": (_mssql("checkpoint_pages"),),
    "windows_mssql_bufman_background_writer_pages": (_mssql("checkpoint_pages"),),
    "windows_mssql_bufman_lazywrites": (_mssql("background_pages"),),
    "windows_mssql_bufman_page_reads": (_mssql("pages_read"),),
    "windows_mssql_bufman_read_ahead_pages": (_mssql("readahead_pages"),),
    "windows_mssql_bufman_page_lookups": (_mssql("page_lookups"),),
    "windows_mssql_genstats_user_connections": (_mssql("connections"),),
    "mssql_batch_requests": (_mssql("batches"),),
    "mssql_page_life_expectancy_seconds": (_mssql("page_life_expectancy_s"),),
    "pg_stat_database_xact_commit": (Metric("server", "transactions", skip=_TEMPLATES, engine="postgresql"),),
    "pg_stat_database_xact_rollback": (Metric("server", "transactions", skip=_TEMPLATES, engine="postgresql"),),
    "pg_stat_database_numbackends": (_postgres("connections"),),
    "pg_stat_database_blks_read": (_postgres("pages_read"), _postgres("page_lookups")),
    "pg_stat_database_blks_hit": (_postgres("page_lookups"),),
    "pg_stat_bgwriter_buffers_checkpoint_total": (_postgres("checkpoint_pages"),),
    "pg_stat_checkpointer_buffers_written_total": (_postgres("checkpoint_pages"),),
    "pg_stat_bgwriter_buffers_clean_total": (_postgres("background_pages"),),
    "pg_settings_shared_buffers_bytes": (_postgres("memory_target_bytes"),),
}


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add all series of one file; raise StallmarkError if it has none of the metrics that are known."""
    sums, names = _Sums(), Counter[str]()
    instances: dict[str, set[str]] = {}
    jobs: dict[tuple, str] = {}
    cores: set[str] = set()
    devices = Devices(recording, wanted)
    of_devices: dict[str, list[tuple[Metric, np.ndarray, np.ndarray]]] = {}
    query = RangeQuery(path)
    for labels, at, values in query:
        name = labels.get("__name__", "")
        names[name] += 1
        if names.total() > MOST_SERIES:
            raise StallmarkError(f"{path} has more than {MOST_SERIES:,} series: ask for one machine's.")
        known = METRICS.get(name, ())
        if known and (instance := labels.get("instance")):
            instances.setdefault(name, set()).add(instance)
            if len(instances[name]) > 1:
                two = " and ".join(sorted(instances[name]))
                raise StallmarkError(
                    f"{path} has {name} of {two}: a profile is of one machine. Ask for one, as in "
                    f'{{instance="{sorted(instances[name])[0]}"}}.'
                )
        job = labels.get("job", "")
        series = tuple(sorted((key, value) for key, value in labels.items() if key != "job"))
        if known and jobs.setdefault(series, job) != job:
            raise StallmarkError(
                f'{path} has {name} of the jobs {jobs[series]} and {job}: ask for one, as in {{job="{job}"}}.'
            )
        if name.endswith(("cpu_seconds_total", "cpu_time_total")) and known:
            cores.add(labels.get("cpu") or labels.get("core") or "")
        at, values, disordered = _ordered(at, values)
        if disordered:
            recording.note(
                f"{path.name}: points that were not in the order of time are sorted, and double ones left out."
            )
        for metric in known:
            recording.engine = metric.engine or recording.engine
            if metric.to == "device":
                device = labels.get(metric.device_label, "")
                if device.lower() != "_total":
                    devices.meet([device])
                    of_devices.setdefault(device, []).append((metric, at, values))
                continue
            if metric.skip and labels.get(metric.skip[0]) in metric.skip[1]:
                continue
            sums.add(metric.engine or "cpu", f"server.{metric.column}", metric, at, values)
        if known and recording.host is None and (instance := labels.get("instance")):
            recording.host = instance.rpartition(":")[0] or instance
    for device, held in devices.counted.items():
        for metric, at, values in of_devices.get(device, []):
            sums.add(f"device {device}", f"{held}.{metric.column}", metric, at, values)
    if not sums.spans:
        raise StallmarkError(_nothing(path, names))
    if cores:
        recording.cores = len(cores)
        recording.note(WHOLE_MACHINE)
    if resets := sums.put_into(recording):
        recording.note(
            f"{path.name}: counters began anew {resets} time{'s' * (resets > 1)}; what they counted there is not known."
        )
    devices.finish(path.name)
    if not query.whole:
        recording.note(f"{path.name} is cut: its last series is left out.")


class _Sums:
    """Sums over series, by column and span. A column that is not known in one series of a span is not known there; nor
    are the others of its group: a reset that is seen in one counter may be hidden in another. Where
    one of several series lacks a point, the others are a part of the sum."""

    def __init__(self) -> None:
        self.spans: dict[tuple[float, float], dict[str, float]] = {}
        self._columns: dict[str, set[str]] = {}
        self._lost: dict[str, set[tuple[float, float]]] = {}
        self._missed: dict[str, Counter[tuple[float, float]]] = {}
        self._series = Counter[str]()

    def add(self, group: str, column: str, metric: Metric, at: np.ndarray, values: np.ndarray) -> None:
        """Add one series. `group`: of the counters that begin anew together."""
        if len(at) < 2:
            return
        is_state = metric.column in STATES
        amount = values[1:] if is_state else np.diff(values)
        steps, usual_s = np.diff(at), np.median(np.diff(at))
        seen = steps <= GAP * usual_s
        begins, ends, amounts = at[:-1][seen].tolist(), at[1:][seen].tolist(), (amount[seen] * metric.factor).tolist()
        self._columns.setdefault(group, set()).add(column)
        self._series[column] += 1
        missed = seen & (steps > _MISSED * usual_s)
        around = zip(at[:-1][missed].tolist(), at[1:][missed].tolist(), strict=True)
        self._missed.setdefault(column, Counter()).update(around)
        for start, end, value in zip(begins, ends, amounts, strict=True):
            row = self.spans.setdefault((start, end), {})
            row[column] = row.get(column, 0.0) + value
            if value < 0 and not is_state:
                self._lost.setdefault(group, set()).add((start, end))

    def put_into(self, recording: Recording) -> int:
        """Add all to the recording; return in how many spans counters began anew."""
        for group, spans in self._lost.items():
            for span in spans:
                self.spans[span] |= dict.fromkeys(self._columns[group] & self.spans[span].keys(), np.nan)
        ordered = sorted(self.spans.items())
        starts = [start for (start, _), _ in ordered]
        for column, missed in self._missed.items():
            for (begin, until), count in missed.items():
                if count < self._series[column]:
                    for (_, end), row in ordered[bisect_left(starts, begin) : bisect_left(starts, until)]:
                        if end <= until:
                            row[column] = np.nan
        for (start, end), row in ordered:
            recording.spans.add(start, end, row)
        return len({span for spans in self._lost.values() for span in spans})


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
