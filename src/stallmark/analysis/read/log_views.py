"""The log of a database in a measured interval, by SQL Server's counters and samples: each has one of its own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.lines import Line, inside, rate, total
from stallmark.analysis.read.server_summary import LogState

FLUSHES, FLUSHED, WAITS, GROWTHS = "Log Flushes/sec", "Log Bytes Flushed/sec", "Log Flush Waits/sec", "Log Growths"
WRITE_TIME, WAIT_TIME = "Log Flush Write Time (ms)", "Log Flush Wait Time"
COUNTERS = (FLUSHES, FLUSHED, WAITS, GROWTHS, WRITE_TIME, WAIT_TIME)


@dataclass(frozen=True)
class LogViews:
    """The samples of one log, or the sums of several: performance counters by name, planned every
    `interval_s`; the share in use; what kept it from being reused, by when."""

    counters: Mapping[str, Line] = field(default_factory=dict)
    interval_s: float = 1.0
    used: Line | None = None
    kept_by: Sequence[tuple[float, str]] = ()

    def summary(self, interval: Interval) -> LogState:
        """Return the state over an interval."""
        flushes, waits, flushed = (self._rate(interval, name) for name in (FLUSHES, WAITS, FLUSHED))
        growths, used = self._values(interval, GROWTHS), inside(self.used, interval)
        kept = Counter(why for t, why in self.kept_by if interval.begin <= t <= interval.end and why != "NOTHING")
        return LogState(
            flushes_per_s=flushes,
            bytes_per_flush=flushed / flushes if flushes and flushed is not None else None,
            write_ms=self._write_ms(interval, flushes),
            waits_per_s=waits,
            wait_ms=self._wait_ms(interval, waits),
            growths=int(growths[-1] - growths[0]) if len(growths) > 1 else None,
            used_share=float(used.max()) if len(used) else None,
            kept_by=kept.most_common(1)[0][0] if kept else None,
        )

    def _write_ms(self, interval: Interval, flushes_per_s: float | None) -> float | None:
        """Return the mean time of a flush: the counter holds the time of those completed in the second before."""
        spent = self._values(interval, WRITE_TIME)
        return float(spent.mean()) / flushes_per_s if len(spent) and flushes_per_s else None

    def _wait_ms(self, interval: Interval, waits_per_s: float | None) -> float | None:
        """Return the mean time that a commit waited for a flush.

        Microsoft does not say whether the counter is a total or of the last second: one that never falls is a total.
        """
        samples, spent = self.counters.get(WAIT_TIME), self._values(interval, WAIT_TIME)
        if samples is None or not len(spent) or not waits_per_s:
            return None
        t, values = samples
        rises = not np.any(total(samples, WAIT_TIME, self.interval_s).breaks) and len(t) > 1 and np.ptp(values) > 0
        per_s = self._rate(interval, WAIT_TIME) if rises else float(spent.mean())
        return None if per_s is None else per_s / waits_per_s

    def _values(self, interval: Interval, name: str) -> np.ndarray:
        return inside(self.counters.get(name), interval)

    def _rate(self, interval: Interval, name: str) -> float | None:
        return rate(self.counters.get(name), self.interval_s, interval)
