"""The lines of a run for the live page: sums of every second, from which means of any stretch follow."""

import numpy as np

from stallmark.analysis.read.driver_tables import read_load
from stallmark.analysis.read.io import SERVER, Io, read_io, summed
from stallmark.analysis.read.rises import Codes
from stallmark.analysis.read.server_state import read_state_views
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.record.reader import Record

Sums = dict[str, np.ndarray]
"""Arrays of one value a second; NaN in seconds of which nothing is known."""

MEANS: dict[str, tuple[str, str | None]] = {
    "tps": ("committed", None),
    "latency_ms": ("latency_sum_ms", "done"),
    "read_ms": ("read_stall_ms", "reads"),
    "log_ms": ("log_stall_ms", "log_flushes"),
    "hit_share": ("hits", "asked"),
}
"""The lines that every run has, each a sum per second, or one divided by another."""
WAITS = tuple(f"waits_{name}" for name in WAIT_CLASSES if name not in ("client", "cpu"))
"""The lines of sessions that wait, by class: not for their client, nor on a CPU."""


def sums(record: Record, seconds: int) -> Sums:
    """Return the sums of a run's seconds 0 … seconds − 1."""
    io, unknown = read_io(record), np.full(seconds, np.nan)
    found: Sums = dict.fromkeys(("committed", "done", "latency_sum_ms", "users"), unknown)
    if record.manifest.kind != "queries":
        load = read_load(record, seconds, [])
        found = {
            "committed": load.all("committed"),
            "done": load.all("committed") + load.all("rolled_back"),
            "latency_sum_ms": load.all("latency_us") / 1000,
            "users": load.user_sum("running"),
        }
    data = io.data.per_second(seconds) if io.data else {}
    for name, counters in (("reads", SERVER.reads), ("read_stall_ms", SERVER.read_ms)):
        line = summed(data, counters)
        found[name] = unknown if line is None else line
    found["log_flushes"], found["log_stall_ms"] = _log(io, seconds)
    found["hits"], found["asked"] = _asked(record, io, seconds)
    return found | _waits(record, seconds)


def means(of: Sums, line: str, width: int = 1) -> np.ndarray:
    """Return a line as means of `width` seconds each, the last of fewer: each I/O, each transaction counts as much as
    every other. NaN where there was none, or nothing was measured."""
    over, under = MEANS.get(line, (line, None))
    above = of[over]
    below = np.ones(len(above)) if under is None else of[under]
    known = np.isfinite(above) & np.isfinite(below)
    begins = np.arange(0, len(above), width)
    if not len(begins):
        return np.empty(0)
    total, count = (np.add.reduceat(np.where(known, part, 0.0), begins) for part in (above, below))
    return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)


def mean(of: Sums, line: str, pick: slice | np.ndarray) -> float | None:
    """Return the mean of a line over some seconds, as `means`; None where there is none."""
    picked = {name: values[pick] for name, values in of.items()}
    found = means(picked, line, max(1, len(picked["committed"])))
    return float(found[0]) if len(found) and np.isfinite(found[0]) else None


def _log(io: Io, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the flushes of the log per second, and the time they took. A flush is a sync where the server counts
    syncs, else a write."""
    unknown = np.full(seconds, np.nan)
    log = io.wal.per_second(seconds) if io.wal else {}
    names = io.wal_names
    writes, write_ms = summed(log, names.writes), summed(log, names.write_ms)
    syncs, sync_ms = summed(log, names.syncs), summed(log, names.sync_ms)
    if writes is None or write_ms is None:
        return unknown, unknown
    if syncs is None or sync_ms is None:
        return writes, write_ms
    return np.where(syncs > 0, syncs, writes), write_ms + sync_ms


def _asked(record: Record, io: Io, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pages per second that the buffer pool had, and those it was asked for: of our database where it is
    counted, else of the server."""
    if io.own_database:
        blocks = io.own_database.per_second(seconds)
        return blocks["blocks_hit"], blocks["blocks_hit"] + blocks["blocks_read"]
    state, unknown = read_state_views(record), np.full(seconds, np.nan)
    asked = state.pool_pages("Page lookups/sec", seconds)
    read = state.pool_pages("Page reads/sec", seconds)
    return (unknown, unknown) if asked is None or read is None else (np.maximum(asked - read, 0), asked)


def _waits(record: Record, seconds: int) -> Sums:
    """Return the mean number of sessions that waited, by class; NaN in seconds without a sample."""
    found = {line: np.zeros(seconds) for line in WAITS}
    sampled, classes = np.zeros(seconds, dtype=bool), Codes()
    for batch in record.batches("waits", ["second", "wait_class", "samples", "polls"]):
        second = batch.column("second").to_numpy()
        of_row = classes.of(batch, "wait_class")
        line_of = np.array([f"waits_{name if name in WAIT_CLASSES else 'other'}" for name in classes.names])
        waiting = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        sampled[second[second < seconds]] = True
        for line in WAITS:
            rows = (second < seconds) & (line_of[of_row] == line)
            np.add.at(found[line], second[rows], waiting[rows])
    return {line: np.where(sampled, values, np.nan) for line, values in found.items()}
