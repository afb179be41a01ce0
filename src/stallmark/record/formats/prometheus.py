"""A range query of Prometheus: the JSON of /api/v1/query_range.

    {"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"__name__":"node_disk_reads_completed_total","device":"sda",…},"values":[[1772445600,"812344"],…]},…]}}

(https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries) One series follows another, each with
times of its own, in seconds since 1970.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from stallmark.record.formats.sample import JsonArray, head_of
from stallmark.record.formats.sentences import refusal

_RESULT = re.compile(r'"result"\s*:\s*\[')
_KIND = re.compile(r'"resultType"\s*:\s*"([^"]*)"')
_ERROR = re.compile(r'"error"\s*:\s*"((?:[^"\\]|\\.)*)"')
Labels = Mapping[str, str]
Series = tuple[Labels, np.ndarray, np.ndarray]


def as_json(metrics: str = "node_disk_.*", labels: Labels | None = None) -> str:
    """Return the command that gets a day of metrics with these labels."""
    selected = "".join(f',{label}="{text}"' for label, text in (labels or {"instance": "sql01:9100"}).items())
    query = f"'query={{__name__=~\"{metrics}\"{selected}}}'"
    return (
        f"`curl -G http://prometheus:9090/api/v1/query_range --data-urlencode {query} -d start=2026-03-02T00:00:00Z "
        "-d end=2026-03-03T00:00:00Z -d step=15s`"
    )


class RangeQuery:
    """The series of a file, one by one. After the last series, `whole` is true if the file was not cut."""

    def __init__(self, path: Path):
        self.path = path
        self.whole = True

    def __iter__(self) -> Iterator[Series]:
        """Yield labels, times and values. Raise StallmarkError if the file has no series of points."""
        head = head_of(self.path, 4096)
        if '"status":"error"' in head.replace(" ", ""):
            reason = _ERROR.search(head)
            raise refusal("prometheus_error", self.path, reason=f", “{reason[1]}”" if reason else "")
        kind = _KIND.search(head)
        results = JsonArray(self.path, _RESULT)
        for result in results if not kind or kind[1] == "matrix" else [{}]:
            labels, points = result.get("metric"), result.get("values")
            if not isinstance(labels, dict) or not isinstance(points, list):
                raise refusal("no_matrix", self.path, query=as_json())
            try:
                times, values = np.array([[float(point[0]), float(point[1])] for point in points]).reshape(-1, 2).T
            except (TypeError, ValueError, IndexError, KeyError):
                raise refusal("bad_point", self.path, name=str(labels.get("__name__", ""))[:80]) from None
            yield {str(key): str(value) for key, value in labels.items()}, times, values
        self.whole = results.whole
