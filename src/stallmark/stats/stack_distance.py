"""The stack distances of a sequence of accesses, from which the hits of an LRU cache of every size follow at once.

R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal
9 (1970) 78-117.
"""

import numpy as np

COLD = -1
"""The distance of the first access to a page, which no cache answers."""


def stack_distances(pages: np.ndarray) -> np.ndarray:
    """Return, for each access, the number of different pages accessed since the last access to its page, that page
    included.

    An LRU cache of at least that many pages answers the access. The distance is COLD for the first access to a page.
    For example, the pages 7 8 8 7 have the distances COLD, COLD, 1 and 2.

    Takes about a second for a million accesses.
    """
    last = previous_accesses(pages)
    # Between two accesses to a page each other page counts at its first one there, whose own last access lies before
    # both. Of all accesses so far those with an earlier last one are counted; all up to the page's last access are.
    earlier = _smaller_before(last)
    return np.where(last < 0, COLD, earlier - last).astype(np.int64)


def previous_accesses(pages: np.ndarray) -> np.ndarray:
    """Return, for each access, the index of the last access to the same page, or -1 for the first one."""
    order = np.argsort(pages, kind="stable")
    ordered = pages[order]
    last = np.full(len(pages), -1, dtype=np.int64)
    same = ordered[1:] == ordered[:-1]
    last[order[1:][same]] = order[:-1][same]
    return last


def _smaller_before(values: np.ndarray) -> np.ndarray:
    """Return, for each value, how many of those before it are smaller; of values that are all -1 or different. The
    first of several that are -1 count as smaller than the later ones.

    The values in ascending order are split by the bits of their places, from the highest on: of two places that differ
    first in this bit, the one without it comes first.
    """
    count = len(values)
    places = np.argsort(values, kind="stable").astype(np.int32)
    smaller = np.zeros(count, dtype=np.int32)  # counts for each of `places`
    begins = np.zeros(count, dtype=np.int32)  # begin of each place's part
    for bit in reversed(range(max(1, (count - 1).bit_length()))):
        later = (places >> bit & 1).astype(bool)
        before = np.zeros(count + 1, dtype=np.int32)
        np.cumsum(~later, out=before[1:], dtype=np.int32)
        zeros = before[-1]
        left = before[begins]  # zeros in front of its part
        smaller += np.where(later, before[:-1] - left, 0)
        # All parts' halves without the bit move to the front, in order; then all with it.
        begins = np.where(later, zeros + begins - left, left)
        places, smaller, begins = (
            np.concatenate([values[~later], values[later]]) for values in (places, smaller, begins)
        )
    counts = np.empty(count, dtype=np.int32)
    counts[places] = smaller
    return counts
