"""The run record: the folder that a run leaves, from which all reports are made.

Its packed histogram is here, for processes that have no NumPy.
"""

from typing import NamedTuple


class Histogram(NamedTuple):
    """The buckets in use, as arrays of GAP and COUNT (histogram.py) in bytes."""

    gaps: bytes
    counts: bytes
