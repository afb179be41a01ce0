"""Prometheus as a profile: the counters of exporters, summed over their series.

The counters themselves are asked for, not their rate(): what was counted is the difference of two neighbouring points.
A counter that falls began anew in between, and what it had counted until then is not known; so is that interval. A
point repeats the last scrape where the step is shorter than the time between scrapes: the totals stay right, the
intervals do not.
"""

from bisect import bisect_left
from collections import Counter
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.prometheus import RangeQuery
from stallmark.record.imports.devices import Devices
from stallmark.record.imports.prometheus_metrics import METRICS, Metric
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted
from stallmark.record.profile.intervals import STATES
from stallmark.record.profile.manifest import GAP

MOST_SERIES = 20_000
_MISSED = 1.5
"""So many intervals between two points of a series: one was missed between them."""


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
