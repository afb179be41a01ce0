"""Merged latency histograms, and percentiles for which the sample is large enough."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.record import histogram as hdr
from stallmark.stats.thresholds import SAMPLES_BEYOND

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass
class Latencies:
    """The merged counts of one histogram layout."""

    counts: np.ndarray

    @classmethod
    def empty(cls) -> "Latencies":
        return cls(np.zeros(hdr.BUCKETS, dtype=np.int64))

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def merge(self, gaps: pa.ListArray, counts: pa.ListArray) -> None:
        """Add the histograms in two columns of a record. Raise ValueError when one is damaged."""
        self.counts += hdr.total(gaps, counts)

    def add(self, other: "Latencies") -> None:
        self.counts += other.counts

    def percentile_ms(self, share: float, never: int = 0) -> float | None:
        """Return the latency that `share` of all transactions did not exceed; None for too small a sample. `never`
        more took longer than any, and the latency is infinite if it is of one of these."""
        size = self.size + never
        # Rounded before it is compared: 1 − 0.9 is a little less than 0.1 in binary.
        if size < round(SAMPLES_BEYOND / (1 - share), 6):
            return None
        rank = math.ceil(round(share * size, 6))
        if rank > self.size:
            return math.inf
        return self._value_ms(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def share_over(self, limit_ms: float, never: int = 0) -> float | None:
        """Return the share that took longer than the limit, to the precision of the histogram, with `never` more that
        did; None if there are none at all."""
        within, size = int(np.searchsorted(hdr.VALUES_US, limit_ms * 1000, side="right")), self.size + never
        return float((self.counts[within:].sum() + never) / size) if size else None

    def sum_ms(self) -> float:
        """Return the sum of all, to the precision of the histogram."""
        return float(self.counts @ hdr.VALUES_US) / 1000

    def max_ms(self) -> float | None:
        used = np.flatnonzero(self.counts)
        return self._value_ms(int(used[-1])) if len(used) else None

    def summary(self, never: int = 0) -> dict[str, float | None]:
        longest = math.inf if never else self.max_ms()
        return {name: self.percentile_ms(share, never) for name, share in PERCENTILES.items()} | {"max": longest}

    @staticmethod
    def _value_ms(index: int) -> float:
        return float(hdr.TOPS_US[index] / 1000)
