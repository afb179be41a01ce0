"""The lateness of the deferred queue: how far background sessions were behind."""

from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.interval import Interval
from stallmark.record.reader import Record

_SUMS = ("taken", "late_us", "waiting")


@dataclass(frozen=True)
class Lateness:
    """The lateness over one interval. `waiting` are mean lengths of the queue over its first and its last third."""

    mean_s: float  # started − due
    worst_s: float
    per_second: float  # transactions taken up
    waiting_first: float
    waiting_last: float


@dataclass(frozen=True)
class QueueSeries:
    """The deferred queue per second, summed over the executors; `late_max_us` is the largest of any."""

    columns: dict[str, np.ndarray]

    def lateness(self, interval: Interval) -> Lateness | None:
        """Return the lateness over an interval; None where nothing was taken up or waiting."""
        of = {name: interval.of(values) for name, values in self.columns.items()}
        taken, third = of["taken"].sum(), max(1, interval.seconds // 3)
        waiting = of["waiting"]
        if not taken and not waiting.any():
            return None
        return Lateness(
            mean_s=float(of["late_us"].sum() / max(taken, 1) / 1e6),
            worst_s=float(of["late_max_us"].max() / 1e6),
            per_second=float(taken / interval.seconds),
            waiting_first=float(waiting[:third].mean()),
            waiting_last=float(waiting[-third:].mean()),
        )


def read_deferred_queue(record: Record, seconds: int) -> QueueSeries:
    columns = {name: np.zeros(seconds) for name in (*_SUMS, "late_max_us")}
    for batch in record.batches("deferred_queue", ["second", *columns]):
        second = batch.column("second").to_numpy()
        inside = second < seconds
        for name in _SUMS:
            np.add.at(columns[name], second[inside], batch.column(name).to_numpy()[inside])
        np.maximum.at(columns["late_max_us"], second[inside], batch.column("late_max_us").to_numpy()[inside])
    return QueueSeries(columns)
