"""The demand of a profile on storage: its busiest windows, interval by interval, as a sizing plays them again."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np

from stallmark.analysis.profile.asked import Asked
from stallmark.analysis.profile.intervals import intervals_of
from stallmark.analysis.profile.memory import pool_bytes
from stallmark.analysis.profile.rates import MINUTE_S, Counted, Measure, Rates, rates_of
from stallmark.analysis.profile.totals import class_totals
from stallmark.analysis.profile.windows import SEEN_SHARE, WINDOW_S
from stallmark.errors import StallmarkError
from stallmark.format import short
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.intervals import FileClass, Intervals, is_known
from stallmark.record.profile.manifest import ProfileManifest
from stallmark.record.sizing import manifest as record


def demand_of(folder: Path, *, window_s: float = WINDOW_S) -> record.Demand:
    """Return the demand of the profile in a folder, with windows of `window_s` seconds.

    Raise StallmarkError where its I/O is not known well enough to be played again.
    """
    manifest, intervals = read_profile(folder), intervals_of(folder)
    rates = rates_of(intervals, manifest)
    log_known = _log_is_known(intervals)
    columns = _columns(intervals, log_known)
    if not is_known(columns["reads"] + columns["writes"]):
        _refuse_without_io(folder, manifest)
    asked = Asked(intervals, columns, window_s)
    if not (windows := asked.windows()):
        _refuse_without_windows(folder, manifest, window_s)
    busy = rates.between(windows[0].begin, windows[0].begin + window_s)
    means = {name: one.mean() for name, one in busy.counted.items()}
    cpu_s, known = intervals.column("server.cpu_s"), rates.middle >= windows[0].begin
    known &= (rates.middle < windows[0].begin + window_s) & np.isfinite(cpu_s)
    sizes = [one.size_bytes for one in class_totals(intervals) if one.file_class is FileClass.DATA and one.size_bytes]
    return record.Demand(
        profile=mark_of(manifest, rates),
        windows=tuple(one.changed(read_ms=_read_ms(rates, one, window_s)) for one in windows),
        transactions=means.get(Measure.TRANSACTIONS),
        cpu_cores=float(cpu_s[known].sum() / intervals.seconds[known].sum()) if known.any() else None,
        cores=manifest.server.cores,
        pool_bytes=pool_bytes(manifest, intervals),
        database_bytes=sum(sizes) or manifest.server.database_bytes,
        read_ms=means.get(Measure.READ_MS),
        log_ms=means.get(Measure.LOG_MS),
        log_known=log_known,
        peaks=asked.peaks(windows),
        beyond=asked.beyond(windows),
    )


def _read_ms(rates: Rates, window: record.Window, window_s: float) -> float | None:
    counted = rates.between(window.begin, window.begin + window_s).counted.get(Measure.READ_MS)
    return counted.mean() if counted else None


def with_peaks(demand: record.Demand, intervals: Intervals) -> record.Demand:
    """Return a demand that was made before peaks were looked for, with those of its profile's intervals."""
    asked = Asked(intervals, _columns(intervals, demand.log_known), demand.windows[0].seconds)
    return demand.changed(peaks=asked.peaks(demand.windows), beyond=asked.beyond(demand.windows))


def _refuse_without_io(folder: Path, manifest: ProfileManifest) -> None:
    """Raise StallmarkError: there is nothing to play, and why."""
    if manifest.source == "server":
        raise StallmarkError(f"The profile in {folder} has no interval with I/O yet: let it run longer.")
    why = manifest.missing.get("disk counters", "the files have no I/O of disks")
    if manifest.source == "sar":
        raise StallmarkError(
            f"The profile in {folder} does not tell its reads from its writes ({why}), and a sizing plays both: import "
            "it without --class, from files that have sar -b as well, or record with iostat -x."
        )
    raise StallmarkError(
        f"The profile in {folder} does not tell its reads and writes ({why}), and a sizing plays both: import files "
        "that have them."
    )


def _refuse_without_windows(folder: Path, manifest: ProfileManifest, window_s: float) -> None:
    """Raise StallmarkError: no window can be played, and why."""
    whole = window_s // manifest.interval_s
    if whole * manifest.interval_s < SEEN_SHARE * window_s:
        least_min = ceil((whole + 1) * manifest.interval_s / 60)
        raise StallmarkError(
            f"The profile in {folder} has a sample every {short(manifest.interval_s / 60)} minutes, too few for "
            f"windows of {window_s / 60:g} minutes: give the scenario longer ones (--set replay.window={least_min}min)."
        )
    raise StallmarkError(
        f"The profile in {folder} does not tell reads and writes with their bytes in its busiest {window_s / 60:g} "
        "minutes, and a sizing plays both: record both, or let it run longer."
    )


def ios_of_minutes(intervals: Intervals, rates: Rates) -> np.ndarray:
    """Return the I/Os per second of every minute in which they are known, counted as in the pieces of a window."""
    columns = _columns(intervals, _log_is_known(intervals))
    total = columns["reads"] + columns["writes"] + columns["log_writes"]
    found = replace(rates, counted={Measure.IOS: Counted(total, rates.seconds)}).by(MINUTE_S).values[Measure.IOS]
    return found[np.isfinite(found)]


def mark_of(manifest: ProfileManifest, rates: Rates) -> str:
    """Return a short hash of the profile: another, or the same with more hours, has another."""
    server: Sequence[str] = manifest.files if manifest.marks is None else (manifest.marks.server,)
    text = "\n".join([manifest.started, *server, f"{rates.end[-1]:.3f}"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _log_is_known(intervals: Intervals) -> bool:
    """Tell whether writes of the log are known apart from those of data."""
    known = is_known(intervals.log("writes", "log_flushes")) and is_known(intervals.log("write_bytes", "log_bytes"))
    return known and (FileClass.LOG in intervals.classes or FileClass.DEVICE not in intervals.classes)


def _columns(intervals: Intervals, log_known: bool) -> dict[str, np.ndarray]:
    """Return the columns of a piece in all intervals. Reads of the log are among the reads."""
    apart = FileClass.LOG if log_known else None
    nothing = np.zeros(len(intervals.start))
    return {
        "reads": intervals.total("reads"),
        "read_bytes": intervals.total("read_bytes"),
        "writes": intervals.total("writes", without=apart),
        "write_bytes": intervals.total("write_bytes", without=apart),
        "log_writes": intervals.log("writes", "log_flushes") if log_known else nothing,
        "log_bytes": intervals.log("write_bytes", "log_bytes") if log_known else nothing,
    }
