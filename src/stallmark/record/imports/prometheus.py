"""A range query of Prometheus: the JSON of /api/v1/query_range, and CSV of it.

    {"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"__name__":"node_disk_reads_completed_total","device":"sda",…},"values":[[1772445600,"812344"],…]},…]}}

(https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries) The counters themselves are asked for, not
their rate(): what was counted is the difference of two neighbouring points. A counter that falls began anew in between,
and what it had counted until then is not known; so is that interval. A point repeats the last scrape where the step is
shorter than the time between scrapes: the totals stay right, the intervals do not.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.imports.devices import Devices
from stallmark.record.imports.prometheus_metrics import METRICS, Metric
from stallmark.record.imports.recording import STATES, WHOLE_MACHINE, Recording, Wanted
from stallmark.record.profile.manifest import GAP
from stallmark.record.text_stream import JsonArray, head_of

RESULT = re.compile(r'"result"\s*:\s*\[')
_KIND = re.compile(r'"resultType"\s*:\s*"([^"]*)"')
_ERROR = re.compile(r'"error"\s*:\s*"((?:[^"\\]|\\.)*)"')
MOST_SERIES = 20_000
Labels = Mapping[str, str]
Series = tuple[Labels, np.ndarray, np.ndarray]


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Read the JSON of a range query; raise StallmarkError where it has none of the metrics that are known."""
    head = head_of(path, 4096)
    if '"status":"error"' in head.replace(" ", ""):
        said = _ERROR.search(head)
        raise StallmarkError(f"{path} holds an error of Prometheus{f', “{said[1]}”' if said else ''}: ask anew.")
    if (kind := _KIND.search(head)) and kind[1] != "matrix":
        raise StallmarkError(f"{path} holds a result of type {kind[1]}: ask /api/v1/query_range, which gives a matrix.")
    results = JsonArray(path, RESULT)
    read_series(path, (_series(path, one) for one in results), recording, wanted)
    if not results.whole:
        recording.note(f"{path.name} is cut: its last series is left out.")


def read_series(path: Path, series: Iterable[Series], recording: Recording, wanted: Wanted) -> None:
    """Add all series of one file."""
    sums, names = _Sums(), Counter[str]()
    instances: dict[str, set[str]] = {}
    cores: set[str] = set()
    devices = Devices(recording, wanted)
    of_devices: dict[str, list[tuple[Metric, np.ndarray, np.ndarray]]] = {}
    for labels, at, values in series:
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


class _Sums:
    """Sums over series, by column and span. A column that is not known in one series of a span is not known there; nor
    are the others of its group: a reset that is seen in one counter may be hidden in another."""

    def __init__(self) -> None:
        self.spans: dict[tuple[float, float], dict[str, float]] = {}
        self._columns: dict[str, set[str]] = {}
        self._lost: dict[str, set[tuple[float, float]]] = {}

    def add(self, group: str, column: str, metric: Metric, at: np.ndarray, values: np.ndarray) -> None:
        """Add one series. `group`: of the counters that begin anew together."""
        if len(at) < 2:
            return
        is_state = metric.column in STATES
        amount = values[1:] if is_state else np.diff(values)
        seen = np.diff(at) <= GAP * np.median(np.diff(at))
        begins, ends, amounts = at[:-1][seen].tolist(), at[1:][seen].tolist(), (amount[seen] * metric.factor).tolist()
        self._columns.setdefault(group, set()).add(column)
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
        for (start, end), row in sorted(self.spans.items()):
            recording.spans.add(start, end, row)
        return len({span for spans in self._lost.values() for span in spans})


def _series(path: Path, one: dict) -> Series:
    labels, points = one.get("metric"), one.get("values")
    if not isinstance(labels, dict) or not isinstance(points, list):
        raise StallmarkError(f"{path} holds a series without points: ask /api/v1/query_range, which gives a matrix.")
    try:
        at = np.array([float(point[0]) for point in points])
        values = np.array([float(point[1]) for point in points])
    except (TypeError, ValueError, IndexError, KeyError):
        raise StallmarkError(
            f"{path} has a point of {str(labels.get('__name__', ''))[:80]} that is no number."
        ) from None
    return {str(key): str(value) for key, value in labels.items()}, at, values


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
