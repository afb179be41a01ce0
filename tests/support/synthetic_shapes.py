"""Records whose seconds follow a known shape: a trend, reads that depend on the second before, throughput that follows
reads late, outliers, a server clock that jumps. (Counters that begin again are `Truth.epoch_change_at` and `falls_at`.)

    folder = make_shaped_run(tmp_path / "run", Shape(phi=0.8, lag_s=2, elasticity=-0.6), Truth(measured_s=300))
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stallmark.record.writer import RecordWriter
from support.synthetic import Truth, make_run
from support.synthetic_rows import Tables


@dataclass(frozen=True)
class Shape:
    """ln TPS(t) = ln tps + trend_per_s · t + elasticity · (ln read time(t − lag_s) − ln read_ms) + scatter; the
    logarithm of the read time is autoregressive (`phi`) with standard deviation `swing`."""

    trend_per_s: float = 0.0  # of ln TPS and, with the opposite sign, of the read time: they go together for no reason
    phi: float = 0.0
    swing: float = 0.1
    lag_s: int = 0
    elasticity: float = -0.7
    scatter: float = 0.02
    outliers: tuple[int, ...] = ()  # seconds in which a read took eight times as long, and TPS did not care
    clock_jump_at: float | None = None  # s since run start
    clock_jump_s: float = 60.0

    def draw(self, seconds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """ln of TPS and of the read time, less their levels, for as many seconds."""
        read = np.zeros(seconds + self.lag_s)
        noise = rng.normal(scale=self.swing * np.sqrt(1 - self.phi**2), size=len(read))
        for t in range(1, len(read)):
            read[t] = self.phi * read[t - 1] + noise[t]
        t = np.arange(seconds)
        tps = self.elasticity * read[:seconds] + rng.normal(scale=self.scatter, size=seconds)
        read = read[self.lag_s :].copy()
        read[list(self.outliers)] += np.log(8)
        return tps + self.trend_per_s * t, read - self.trend_per_s * t


def make_shaped_run(folder: Path, shape: Shape, truth: Truth) -> Path:
    """Write one record of this shape into the new `folder` and return it."""
    tables: Callable[[Truth, RecordWriter], Tables] = partial(_Shaped, shape)
    return make_run(folder, truth, tables=tables)


class _Shaped(Tables):
    def __init__(self, shape: Shape, truth: Truth, writer: RecordWriter):
        super().__init__(truth, writer)
        self.shape = shape
        tps, read = shape.draw(truth.seconds, self.rng)
        levels = np.array([truth.plan[0].tps] * truth.seconds)
        self.committed = np.rint(levels * np.exp(tps)).astype(int)
        self.read_ms = truth.read_ms * np.exp(read)

    def _collectors(self, end: int) -> dict[str, list[dict[str, Any]]]:
        tables = super()._collectors(end)
        if (at := self.shape.clock_jump_at) is not None:
            for row in (row for rows in tables.values() for row in rows if "server_time" in row):
                row["server_time"] += self.shape.clock_jump_s if row["t"] >= at else 0.0
        return tables
