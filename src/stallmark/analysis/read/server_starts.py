"""Starts of the server while a run lasted, from the epochs of its I/O counters."""

import re

import numpy as np

from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.sample_times import dated, first_of_runs
from stallmark.record.reader import Record

_START = re.compile(r"\bstart (\S+)")


def server_starts(record: Record) -> np.ndarray:
    """Return the samples between which the server had another start: (n, 2), the times of the last sample before and of
    the first after it. Behind one address that may be another server. Nothing if the epochs name no start."""
    epochs = Codes()
    numbers: dict[str, int] = {}
    spans: list[tuple[float, float]] = []
    last: tuple[float, int] | None = None
    for t, batch in dated(record, "server_io", ["epoch"]):
        codes = epochs.of(batch, "epoch")
        by_code = np.array([_number(name, numbers) for name in epochs.names])
        for at in np.flatnonzero(first_of_runs(t)):
            now = int(by_code[codes[at]]) if len(by_code) else -1
            if now < 0:
                continue
            if last and last[1] != now:
                spans.append((last[0], float(t[at])))
            last = float(t[at]), now
    return np.array(spans).reshape(-1, 2)


def _number(epoch: str, numbers: dict[str, int]) -> int:
    """Return the number of the start that an epoch names, in the order in which they were met; -1 if it names none."""
    found = _START.search(epoch)
    return numbers.setdefault(found[1], len(numbers)) if found else -1
