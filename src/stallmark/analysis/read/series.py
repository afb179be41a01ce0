"""The lines of one run for the charts, second by second."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stallmark.analysis.read.active_set import ActiveOverTime
from stallmark.analysis.read.io import SERVER, Io, per_second_mean, summed
from stallmark.analysis.read.server_state import StateViews
from stallmark.analysis.read.throughput import Load

_EXACT = {"second": np.int32, "tps": np.float64, "primary_tps": np.float64}
"""Lines that are more than drawn. Of days and many loads the others would fill the memory in full precision."""


@dataclass(frozen=True)
class RunSeries:
    """Per-second lines of one run for the charts; NaN where nothing is known. All arrays have equal length."""

    second: np.ndarray
    tps: np.ndarray
    read_ms: np.ndarray
    read_stall_ms_per_s: np.ndarray
    users: np.ndarray
    primary_tps: np.ndarray | None = None  # of the transaction whose rate is the result
    checkpoint_pages: np.ndarray | None = None  # written by checkpoints, of all databases; None where not counted
    background_pages: np.ndarray | None = None  # written by the background writer, for indirect checkpoints
    flash_share: np.ndarray | None = None  # of the data device's reads, answered by its flash; None without
    active_bytes: np.ndarray | None = None  # different extents touched since the run began; a bound where not counted
    active_minute_bytes: np.ndarray | None = None  # in the last full minute; None where it is not counted

    def line(self, name: str) -> np.ndarray:
        """Return a line by its name; NaN throughout where the run has no such line."""
        found = getattr(self, name)
        return np.full(len(self.second), np.nan) if found is None else found


def make_series(
    load: Load, io: Io, active: ActiveOverTime, state: StateViews, primary: str | None = None, until: int | None = None
) -> RunSeries:
    """Return the lines of a run. Means are of the second's I/Os or transactions; NaN where there were none or nothing
    was measured. `until`: the second at which the load ends; after it users stop one by one."""
    seconds = load.seconds
    unknown = np.full(seconds, np.nan)
    rise = io.data.per_second(seconds) if io.data else {}

    def rate(names: tuple[str, ...]) -> np.ndarray:
        found = summed(rise, names)
        return unknown if found is None else found

    read_stall = rate(SERVER.read_ms)
    device = io.data_device.per_second(seconds) if io.data_device else {}
    whole = RunSeries(
        second=np.arange(seconds),
        tps=load.all("committed"),
        read_ms=per_second_mean(read_stall, rate(SERVER.reads)),
        read_stall_ms_per_s=read_stall,
        users=load.user_sum("running"),
        primary_tps=_committed(load, primary) if primary else None,
        checkpoint_pages=state.pool_pages("Checkpoint pages/sec", seconds),
        background_pages=state.pool_pages("Background writer pages/sec", seconds),
        flash_share=per_second_mean(device["flash_reads"], device["reads"]) if "flash_reads" in device else None,
        active_bytes=active.run,
        active_minute_bytes=active.minute,
    )
    lines = {field.name: getattr(whole, field.name) for field in fields(whole)}
    cut: dict[str, Any] = {
        name: None if line is None else line[:until].astype(_EXACT.get(name, np.float32))
        for name, line in lines.items()
    }
    return RunSeries(**cut)


def _committed(load: Load, transaction: str) -> np.ndarray:
    counts = load.counts.get(transaction)
    return counts["committed"] if counts else np.zeros(load.seconds)
