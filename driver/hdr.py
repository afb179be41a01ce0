"""Latency histograms: the HDR histograms of the `hdrhistogram` package, µs, 1 µs to 1 h, 3 significant digits."""

from collections.abc import Sequence

import numpy as np
from hdrh.codec import HdrPayload
from hdrh.histogram import HdrHistogram

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
_WORD_BYTES = 8


def empty() -> HdrHistogram:
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS, word_size=_WORD_BYTES, b64_wrap=False)


LAYOUT = empty()
VALUES_US = np.array([LAYOUT.get_value_from_index(index) for index in range(LAYOUT.counts_len)], np.int64)
"""The lowest value that each counter counts."""


def encode(values_us: np.ndarray) -> bytes:
    """The histogram of `values_us`, compressed; values beyond the range count at its ends."""
    places = np.searchsorted(VALUES_US, np.clip(values_us, LOWEST_US, HIGHEST_US), side="right") - 1
    return _encode(np.bincount(places))


def _encode(counts: np.ndarray) -> bytes:
    """The histogram of counters from the lowest on; straight into the package's own, which takes a value at a time."""
    histogram = empty()
    np.frombuffer(histogram.counts, np.int64)[: len(counts)] = counts
    used = np.flatnonzero(counts)
    if len(used):
        histogram.set_internal_tacking_values(int(used[0]), int(used[-1]), int(counts.sum()))
    return histogram.encode()


def add(total: np.ndarray, blob: bytes) -> None:
    """Add an encoded histogram to counters, one for each of VALUES_US.

    Raises ValueError when its range or precision is another one. Over the range in use only: the package's own `decode`
    and `add` walk all 23,552 counters each time, which is four times slower for a day of them.
    """
    payload = HdrPayload(_WORD_BYTES, compressed_payload=blob)
    header = payload.payload
    if (header.significant_figures, header.highest_trackable_value) != (DIGITS, HIGHEST_US):
        raise ValueError("a latency histogram has another range or precision than 1 µs … 1 hour, 3 digits")
    found = payload.init_counts(LAYOUT.counts_len)
    if found["total"]:
        used = slice(found["min_nonzero_index"], found["max_nonzero_index"] + 1)
        total[used] += np.frombuffer(payload.counts, dtype=np.int64)[used]


def counts(*blobs: bytes) -> np.ndarray:
    """The counters of encoded histograms together."""
    total = np.zeros(LAYOUT.counts_len, np.int64)
    for blob in blobs:
        add(total, blob)
    return total


def merge(blobs: Sequence[bytes]) -> bytes:
    """One encoded histogram out of several."""
    if len(blobs) == 1:
        return blobs[0]
    return _encode(counts(*blobs))
