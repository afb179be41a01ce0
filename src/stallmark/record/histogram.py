"""Latency histograms: the HDR histograms of the `hdrhistogram` package, µs, 1 µs to 1 h, 3 significant digits."""

import zlib
from collections.abc import Sequence

import numpy as np
from hdrh.codec import HdrPayload
from hdrh.histogram import HdrHistogram

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
_WORD_BYTES = 8
OTHER_LAYOUT = "a latency histogram has another range or precision than 1 µs … 1 hour, 3 digits"


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
        raise ValueError(OTHER_LAYOUT)
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


def add_all(total: np.ndarray, blobs: Sequence[bytes]) -> None:
    """Add many encoded histograms at once: `add` of each, some three times as fast, for a day of them.

    Raises ValueError when the range or precision of one is another one, or when one is damaged. The encoding is V2
    of the HDR histogram: behind a head, ZigZag LEB128 numbers, each a counter, or how many are zero if negative.
    """
    for begin in range(0, len(blobs), _AT_ONCE):
        total += _decode(blobs[begin : begin + _AT_ONCE])


_AT_ONCE = 1024  # their numbers stay in the processor's cache
_HEAD = 40  # bytes before the counters
_LENGTH, _DIGITS_AT, _HIGHEST = slice(4, 8), slice(12, 16), slice(24, 32)


def _decode(blobs: Sequence[bytes]) -> np.ndarray:
    """The sum of some."""
    try:
        parts = [zlib.decompress(blob) for blob in blobs]
    except zlib.error as error:
        raise ValueError(f"a latency histogram is damaged ({error})") from None
    sizes = np.array([len(part) for part in parts])
    if sizes.min() < _HEAD:
        raise ValueError("a latency histogram is damaged (it is too short)")
    data = np.frombuffer(b"".join(parts), np.uint8)
    heads = (np.cumsum(sizes) - sizes)[:, None] + np.arange(_HEAD)
    _check(data[heads], sizes - _HEAD)
    inside = np.ones(len(data), bool)
    inside[heads] = False
    payload = data[inside]
    values, numbers = _numbers(payload, sizes - _HEAD)
    steps = np.maximum(-values, 1)
    places = np.cumsum(steps, dtype=np.int64) - steps
    firsts = (np.cumsum(numbers) - numbers)[numbers > 0]
    places -= np.repeat(places[firsts], numbers[numbers > 0])
    used = places[values > 0]
    if len(used) and not 0 <= used.max() < LAYOUT.counts_len:
        raise ValueError("a latency histogram is damaged (it has too many counters)")
    counted = np.bincount(used, minlength=LAYOUT.counts_len)
    several = values > 1
    np.add.at(counted, places[several], values[several] - 1)
    return counted


def _check(heads: np.ndarray, payloads: np.ndarray) -> None:
    def field(at: slice, kind: str) -> np.ndarray:
        return np.ascontiguousarray(heads[:, at]).view(kind)[:, 0]

    if (field(_DIGITS_AT, ">i4") != DIGITS).any() or (field(_HIGHEST, ">i8") != HIGHEST_US).any():
        raise ValueError(OTHER_LAYOUT)
    if (field(_LENGTH, ">i4") != payloads).any():
        raise ValueError("a latency histogram is damaged (its length is another one than it says)")


def _numbers(payload: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ZigZag LEB128: seven bits a byte, the lowest first, the eighth says that more follow. And how many there are in
    each part of `sizes` bytes."""
    last = payload < 0x80
    first = np.empty_like(last)
    first[:1], first[1:] = True, last[:-1]
    values = (payload[first] & 0x7F).astype(np.int64)
    before = np.append(0, np.cumsum(last))
    ends = np.cumsum(sizes)
    at = np.flatnonzero(first & ~last)  # where a number of several bytes begins
    which, shift = before[at], 7
    while len(at):
        at += 1
        values[which] |= (payload[at] & 0x7F).astype(np.int64) << shift
        more = ~last[at]
        at, which, shift = at[more], which[more], shift + 7
    return (values >> 1) ^ -(values & 1), before[ends] - before[ends - sizes]
