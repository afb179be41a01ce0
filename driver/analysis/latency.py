"""Latency histograms: merging what the driver wrote per second, and percentiles the sample is large enough
for.

Blobs are the HDR histograms of the `hdrhistogram` package (1 µs … 1 hour, 3 significant digits). Counts are
added as arrays over the range that is in use; the package's own `decode` and `add` walk all 23,552 counters
each time, which is four times slower for a day of them.
"""

import math
from dataclasses import dataclass

import numpy as np
from hdrh.codec import HdrPayload
from hdrh.histogram import HdrHistogram

from stallmark.driver.analysis.thresholds import SAMPLES_BEYOND

_LAYOUT = HdrHistogram(1, 3_600_000_000, 3)
_WORD_BYTES = 8
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass
class Latencies:
    """Merged counts of one histogram layout."""

    counts: np.ndarray

    @classmethod
    def empty(cls) -> "Latencies":
        return cls(np.zeros(_LAYOUT.counts_len, dtype=np.int64))

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def merge(self, blob: bytes | None) -> None:
        """Add an encoded histogram. Raises ValueError when its layout is another one."""
        if not blob:
            return
        payload = HdrPayload(_WORD_BYTES, compressed_payload=blob)
        header = payload.payload
        if (header.significant_figures, header.highest_trackable_value) != (
            _LAYOUT.significant_figures,
            _LAYOUT.highest_trackable_value,
        ):
            raise ValueError(
                "a latency histogram has another range or precision than 1 µs … 1 hour, 3 digits"
            )
        found = payload.init_counts(_LAYOUT.counts_len)
        if found["total"]:
            used = slice(found["min_nonzero_index"], found["max_nonzero_index"] + 1)
            self.counts[used] += np.frombuffer(payload.counts, dtype=np.int64)[used]

    def add(self, other: "Latencies") -> None:
        self.counts += other.counts

    def percentile_ms(self, share: float) -> float | None:
        """The latency that `share` of all transactions did not exceed; None for too small a sample."""
        size = self.size
        # Rounded before it is compared: 1 − 0.9 is a little less than 0.1 in binary.
        if size < round(SAMPLES_BEYOND / (1 - share), 6):
            return None
        rank = math.ceil(round(share * size, 6))
        return self._value_ms(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def max_ms(self) -> float | None:
        used = np.flatnonzero(self.counts)
        return self._value_ms(int(used[-1])) if len(used) else None

    def summary(self) -> dict[str, float | None]:
        return {name: self.percentile_ms(share) for name, share in PERCENTILES.items()} | {
            "max": self.max_ms()
        }

    @staticmethod
    def _value_ms(index: int) -> float:
        value: int = _LAYOUT.get_highest_equivalent_value(_LAYOUT.get_value_from_index(index))
        return value / 1000
