"""The demand of a profile on storage: its busiest windows, interval by interval, as a sizing plays them again."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from stallmark.analysis.profile.intervals import intervals_of
from stallmark.analysis.profile.memory import pool_bytes
from stallmark.analysis.profile.placed import Placed, is_known
from stallmark.analysis.profile.rates import MINUTE_S, Counted, Measure, Rates, rates_of
from stallmark.analysis.profile.totals import class_totals
from stallmark.analysis.profile.windows import WINDOW_S, Window, busiest
from stallmark.errors import StallmarkError
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.intervals import FileClass, Intervals
from stallmark.record.profile.manifest import ProfileManifest
from stallmark.record.sizing import manifest as record

_Because = Literal["ios_per_s", "writes_per_s", "log_writes_per_s"]
_DEMANDING: Final[dict[Measure, _Because]] = {
    Measure.IOS: "ios_per_s",
    Measure.WRITES: "writes_per_s",
    Measure.LOG_WRITES: "log_writes_per_s",
}


def demand_of(folder: Path, *, window_s: float = WINDOW_S) -> record.Demand:
    """Return the demand of the profile in a folder, with windows of `window_s` seconds.

    Raise StallmarkError where its I/O is not known well enough to be played again.
    """
    manifest, intervals = read_profile(folder), intervals_of(folder)
    placed, rates = Placed(intervals), rates_of(intervals, manifest)
    if Measure.IOS not in rates.counted:
        raise StallmarkError(f"The profile in {folder} has no interval with I/O yet: let it run longer.")
    log_known = _log_is_known(placed)
    columns = _columns(placed, log_known)
    windows = []
    for because, window in _windows(_of_pieces(rates, columns), window_s):
        inside = (rates.middle >= window.begin) & (rates.middle < window.end)
        if pieces := _pieces(columns, placed.seconds, inside):
            windows.append(record.Window(begin=window.begin, because=because, pieces=pieces))
    if not windows or windows[0].because != Measure.IOS:
        raise StallmarkError(
            f"The profile in {folder} does not tell reads and writes with their bytes in its busiest "
            f"{window_s / 60:g} minutes, and a sizing plays both: record both, or let it run longer."
        )
    busy = rates.between(windows[0].begin, windows[0].begin + window_s)
    means = {name: one.mean() for name, one in busy.counted.items()}
    cpu_s, known = placed.server("cpu_s"), rates.middle >= windows[0].begin
    known &= (rates.middle < windows[0].begin + window_s) & np.isfinite(cpu_s)
    sizes = [one.size_bytes for one in class_totals(intervals) if one.file_class is FileClass.DATA and one.size_bytes]
    return record.Demand(
        profile=mark_of(manifest, rates),
        windows=tuple(windows),
        transactions=means.get(Measure.TRANSACTIONS),
        cpu_cores=float(cpu_s[known].sum() / placed.seconds[known].sum()) if known.any() else None,
        cores=manifest.server.cores,
        pool_bytes=pool_bytes(manifest, intervals),
        database_bytes=sum(sizes) or manifest.server.database_bytes,
        read_ms=means.get(Measure.READ_MS),
        log_ms=means.get(Measure.LOG_MS),
        log_known=log_known,
    )


def ios_of_minutes(intervals: Intervals, rates: Rates) -> np.ndarray:
    """Return the I/Os per second of every minute in which they are known, counted as in the pieces of a window."""
    placed = Placed(intervals)
    columns = _columns(placed, _log_is_known(placed))
    total = columns["reads"] + columns["writes"] + columns["log_writes"]
    found = replace(rates, counted={Measure.IOS: Counted(total, rates.seconds)}).by(MINUTE_S).values[Measure.IOS]
    return found[np.isfinite(found)]


def mark_of(manifest: ProfileManifest, rates: Rates) -> str:
    """Return a short hash of the profile: another, or the same with more hours, has another."""
    server: Sequence[str] = manifest.files if manifest.marks is None else (manifest.marks.server,)
    text = "\n".join([manifest.started, *server, f"{rates.end[-1]:.3f}"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _log_is_known(placed: Placed) -> bool:
    """Tell whether writes of the log are known apart from those of data."""
    known = is_known(placed.log("writes", "log_flushes")) and is_known(placed.log("write_bytes", "log_bytes"))
    return known and (placed.has(FileClass.LOG) or not placed.has(FileClass.DEVICE))


def _of_pieces(rates: Rates, columns: Mapping[str, np.ndarray]) -> Rates:
    """Return the rates with writes and writes of the log as pieces have them: a write of the log is none of data."""
    counted = {
        Measure.WRITES: Counted(columns["writes"], rates.seconds),
        Measure.LOG_WRITES: Counted(columns["log_writes"], rates.seconds),
    }
    return replace(rates, counted={**rates.counted, **counted})


def _windows(rates: Rates, window_s: float) -> Iterator[tuple[_Because, Window]]:
    """Yield the windows that ask for most, by I/Os first. By another measure one follows only where it asks for more
    than those before it. All of a profile that is no longer than a window is one."""
    begin, end = float(rates.start[0]), float(rates.end[-1])
    if end - begin <= window_s:
        yield "ios_per_s", Window(begin, begin + window_s, float(rates.seconds.sum()), {})
        return
    found: list[Window] = []
    for measure, because in _DEMANDING.items():
        for window in busiest(rates, measure, window_s, 1, apart=found):
            if all(_rate(window, measure) > _rate(one, measure) for one in found):
                found.append(window)
                yield because, window


def _rate(window: Window, measure: Measure) -> float:
    return window.values.get(measure) or 0.0


def _columns(placed: Placed, log_known: bool) -> dict[str, np.ndarray]:
    """Return the columns of a piece in all intervals. Reads of the log are among the reads."""
    apart = FileClass.LOG if log_known else None
    nothing = np.zeros(len(placed.start))
    return {
        "reads": placed.total("reads"),
        "read_bytes": placed.total("read_bytes"),
        "writes": placed.total("writes", without=apart),
        "write_bytes": placed.total("write_bytes", without=apart),
        "log_writes": placed.log("writes", "log_flushes") if log_known else nothing,
        "log_bytes": placed.log("write_bytes", "log_bytes") if log_known else nothing,
    }


def _pieces(columns: Mapping[str, np.ndarray], seconds: np.ndarray, inside: np.ndarray) -> tuple[record.Piece, ...]:
    """Return the intervals inside a window in which all is known, per second."""
    known = inside & np.all([np.isfinite(values) for values in columns.values()], axis=0)
    return tuple(
        record.Piece(seconds=seconds[at], **{name: values[at] / seconds[at] for name, values in columns.items()})
        for at in np.flatnonzero(known)
    )
