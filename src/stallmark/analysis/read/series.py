"""The lines of one run for the charts, second by second."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallmark.analysis.read.active_set import ActiveOverTime
from stallmark.analysis.read.io import SERVER, Io, per_second_mean, summed
from stallmark.analysis.read.server_state import StateViews
from stallmark.analysis.read.throughput import Load


@dataclass(frozen=True)
class RunSeries:
    """Per-second lines of one run for the charts, in single precision; NaN if nothing is known. All arrays have equal
    length. Loads of one run share the lines of their server."""

    second: np.ndarray
    tps: np.ndarray
    read_ms: np.ndarray
    read_stall_ms_per_s: np.ndarray
    users: np.ndarray
    primary_tps: np.ndarray | None = None  # rate of the transaction that is the result
    checkpoint_pages: np.ndarray | None = None  # written by checkpoints, of all databases; None where not counted
    background_pages: np.ndarray | None = None  # written by the background writer, for indirect checkpoints
    flash_share: np.ndarray | None = (
        None  # share of the data device's reads that its flash answered; None without flash
    )
    active_bytes: np.ndarray | None = None  # different extents touched since the run began; a bound where not counted
    active_minute_bytes: np.ndarray | None = None  # bytes active in the last full minute; None if not counted

    def line(self, name: str) -> np.ndarray:
        """Return a line by its name; NaN throughout where the run has no such line."""
        line = getattr(self, name)
        return np.full(len(self.second), np.nan) if line is None else line


def server_lines(io: Io, active: ActiveOverTime, state: StateViews, seconds: int) -> dict[str, np.ndarray | None]:
    """Return the lines that all loads of a run have in common, by name, shape (seconds,). Means are of the second's
    I/Os; NaN for a second without I/Os, or if nothing was measured."""
    rise = io.data.per_second(seconds, *SERVER.read_ms, *SERVER.reads) if io.data else {}

    def rate(names: tuple[str, ...]) -> np.ndarray:
        total = summed(rise, names)
        return np.full(seconds, np.nan) if total is None else total

    read_stall = rate(SERVER.read_ms)
    device = io.data_device.per_second(seconds, "flash_reads", "reads") if io.data_device else {}
    lines = {
        "read_ms": per_second_mean(read_stall, rate(SERVER.reads)),
        "read_stall_ms_per_s": read_stall,
        "checkpoint_pages": state.pool_pages("Checkpoint pages/sec", seconds),
        "background_pages": state.pool_pages("Background writer pages/sec", seconds),
        "flash_share": per_second_mean(device["flash_reads"], device["reads"]) if "flash_reads" in device else None,
        "active_bytes": active.run,
        "active_minute_bytes": active.minute,
    }
    return {"second": np.arange(seconds, dtype=np.int32)} | {
        name: _in_single_precision(line) for name, line in lines.items()
    }


def make_series(
    load: Load, server: Mapping[str, np.ndarray | None], primary: str | None = None, until: int | None = None
) -> RunSeries:
    """Return the lines of a load beside those of its `server`. `until`: the second at which the load ends; after it
    users stop one by one."""
    lines = dict(server) | {
        "tps": _in_single_precision(load.all("committed")),
        "users": _in_single_precision(load.user_sum("running")),
        "primary_tps": _in_single_precision(_committed(load, primary)) if primary else None,
    }
    cut: dict[str, Any] = {name: None if line is None else line[: load.seconds][:until] for name, line in lines.items()}
    return RunSeries(**cut)


def _in_single_precision(line: np.ndarray | None) -> np.ndarray | None:
    """Return a line in half of the memory, which days of many loads would fill. Counts of a second stay exact up to
    16 million."""
    return None if line is None else line.astype(np.float32)


def _committed(load: Load, transaction: str) -> np.ndarray:
    counts = load.counts.get(transaction)
    return counts["committed"] if counts else np.zeros(load.seconds)
