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
"""At most so many extremes are drawn of a line, and half as many means."""
PALE = 0.4
"""The opacity of extremes behind their means."""
ROWS = 12  # of a run, in the coarse table below a chart


def scale(runs: Sequence[RunSummary]) -> tuple[int, str]:
    """Return the seconds in a unit of the axis of time, and the unit."""
    return format.of_time(max(float(run.series.second[-1] - run.series.second[0]) for run in runs))


def bucket_width(samples: int, parts: int = 1) -> int:
    """Return the samples per bucket, so that `parts` stretches together have at most POINTS extremes; 1 where they have
    no more samples than that."""
    return 1 if samples <= POINTS else math.ceil(samples / max(POINTS // 2 - parts, 1))


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


def extremes(x: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest of `width` neighbours each, with their own x and in its order; NaN where a
    bucket holds nothing else."""
    padded = np.full(math.ceil(len(values) / width) * width, np.nan)
    padded[: len(values)] = values
    buckets = padded.reshape(-1, width)
    known = np.isfinite(buckets)
    ends = [np.where(known, buckets, np.inf).argmin(axis=1), np.where(known, buckets, -np.inf).argmax(axis=1)]
    at = (np.sort(ends, axis=0) + np.arange(len(buckets)) * width).T.ravel()
    return np.asarray(x)[at], padded[at]


def coarse(lines: Sequence[np.ndarray]) -> Iterator[tuple[float, ...]]:
    """Yield the rows of a coarse table of lines of equal length: means of at most about ROWS buckets."""
    width = math.ceil(len(lines[0]) / ROWS)
    return zip(*(bucket_means(line, width) for line in lines), strict=True)


def measuring_began(run: RunSummary) -> float:
    """Return the second at which the first measured interval began."""
    return min((step.measure_s for step in run.manifest.steps), default=0.0)


def drawn(name: str, x: np.ndarray, y: np.ndarray, width: int, **more: Any) -> Iterator[go.Scatter]:
    """Yield a line of the means of `width` samples each, and behind it their extremes: no peak is lost in a mean."""
    if width > 1:
        pale = {"opacity": PALE * more.get("opacity", 1.0), "line": more.get("line", {}) | {"width": 1}}
        yield line(f"{name} (least and most)", *extremes(x, y, width), **more | pale)
    yield line(name, bucket_means(x, width), bucket_means(y, width), **more)


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
