"""A latency histogram as messages carry it: who only passes it on needs no NumPy, which takes long to import."""

from typing import NamedTuple


class Histogram(NamedTuple):
    """The buckets in use, as arrays of GAP and COUNT (histogram.py) in bytes."""

    gaps: bytes
    counts: bytes
