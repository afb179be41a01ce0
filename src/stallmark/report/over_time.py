"""Lines over time: the series of a run as points of a chart, and the shading of its warm-up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.run import RunSummary
from stallmark.report.figures import rounded

POINTS = 2000
ROWS = 12  # of a run, in the coarse table below a chart


def scale(runs: Sequence[RunSummary]) -> tuple[int, str]:
    """Return the seconds in a unit of the axis of time, and the unit."""
    return format.of_time(max(float(run.series.second[-1] - run.series.second[0]) for run in runs))


def bucket_width(samples: int, parts: int = 1) -> int:
    """Return the samples per drawn point, so that `parts` stretches together give at most POINTS points."""
    return max(1, math.ceil(samples / max(POINTS - parts, 1)))


def bucket_means(values: np.ndarray, width: int) -> np.ndarray:
    """Return means of `width` neighbours each, ignoring NaN; NaN where a bucket holds nothing else."""
    values = np.asarray(values, dtype=float)
    if width == 1 or not len(values):
        return values
    padded = np.full(math.ceil(len(values) / width) * width, np.nan)
    padded[: len(values)] = values
    buckets = padded.reshape(-1, width)
    known = np.isfinite(buckets)
    counts = known.sum(axis=1)
    sums = np.where(known, buckets, 0.0).sum(axis=1)
    return np.divide(sums, counts, out=np.full(len(buckets), np.nan), where=counts > 0)


def coarse(lines: Sequence[np.ndarray]) -> Iterator[tuple[float, ...]]:
    """Yield the rows of a coarse table of lines of equal length: means of at most about ROWS buckets."""
    width = math.ceil(len(lines[0]) / ROWS)
    return zip(*(bucket_means(line, width) for line in lines), strict=True)


def measuring_began(run: RunSummary) -> float:
    """Return the second at which the first measured interval began."""
    return min((step.measure_s for step in run.manifest.steps), default=0.0)


def line(name: str, x: np.ndarray, y: np.ndarray, digits: int = 6, **more: Any) -> go.Scatter:
    """Return a line over time. `name` is plain text already; `digits` are the significant ones of x."""
    more = {"mode": "lines", "hovertemplate": "%{y:,.3~r}"} | more
    return go.Scatter(name=name, x=rounded(x.tolist(), digits), y=rounded(y.tolist()), **more)


def shade(begin: float, end: float, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return shapes that shade a warm-up, on the axis of time, in the plots of these `places`."""
    return [
        {
            **{"type": "rect", "yref": f"y{place} domain", "x0": begin, "x1": end, "y0": 0, "y1": 1},
            **{"line": {"width": 0}, "fillcolor": "#888", "opacity": 0.1, "layer": "below"},
        }
        for place in places
    ]
