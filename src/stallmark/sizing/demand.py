"""The demand of a profile on storage: the windows that a sizing plays again, interval by interval.

They are those that ask for the most I/Os, reads, writes and log writes, and for the most bytes of each. The busiest
window by I/Os hides a backup, which reads few large pieces. So every measure has its window, and so has what asks for
several measures at once, unless a window that is played already asks for as much.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final, Literal

import numpy as np

from stallmark.analysis.profile.intervals import intervals_of
from stallmark.analysis.profile.rates import (
    MINUTE_S,
    MORE,
    SEEN_SHARE,
    WINDOW_S,
    Counted,
    Measure,
    Rates,
    class_totals,
    rates_of,
    sliding,
)
from stallmark.analysis.profile.summary import pool_bytes
from stallmark.errors import StallmarkError
from stallmark.format import short
from stallmark.record.profile.intervals import FileClass, Intervals, is_known
from stallmark.record.profile.manifest import ProfileManifest, read_profile
from stallmark.sizing import manifest as record
from stallmark.sizing.manifest import Beyond, Measured, Peak, Piece, Window

COLUMNS: Final[Mapping[Measured, tuple[str, ...]]] = {
    "ios_per_s": ("reads", "writes", "log_writes"),
    "reads_per_s": ("reads",),
    "writes_per_s": ("writes",),
    "log_writes_per_s": ("log_writes",),
    "read_bytes_per_s": ("read_bytes",),
    "write_bytes_per_s": ("write_bytes",),
    "log_bytes_per_s": ("log_bytes",),
}
"""The columns of a piece that are summed into each measure."""
TOGETHER = 0.2
"""A window is played for what it asks for together if it asks for more than the nearest that is played, by this share
of the peak of a measure."""
MOST_TOGETHER = 2
"""Every window is played at every level: more of them would take hours."""


class Asked:
    """The demand of all windows of a profile that are `window_s` long. `columns`: the counts of each column of a piece,
    in all intervals."""

    def __init__(self, intervals: Intervals, columns: Mapping[str, np.ndarray], window_s: float):
        self._intervals, self._columns, self._window_s = intervals, columns, window_s
        self._rates: dict[Measured, np.ndarray] = {}
        """The means of the windows that begin with each interval, by measure; of one that never rises there are none,
        except of the I/Os."""
        for measure, names in COLUMNS.items():
            amount = np.sum([columns[name] for name in names], axis=0)
            rates, _ = sliding(intervals.start, intervals.end, amount, intervals.seconds, window_s)
            if is_known(rates) and (np.nanmax(rates) > 0 or measure == "ios_per_s"):
                self._rates[measure] = rates

    def windows(self) -> tuple[Window, ...]:
        """Return the windows to play, that with the most I/Os first; none if that is not known whole. They may overlap,
        since each peak is played whole. All of a profile that is no longer than a window is one."""
        begin, end = float(self._intervals.start[0]), float(self._intervals.end[-1])
        if end - begin <= self._window_s:
            return self._window(begin, "ios_per_s")
        found: tuple[Window, ...] = ()
        for one in self.peaks(()):
            if one.per_s > MORE * _most(found, one.measure) or not found:
                found += self._window(one.begin, one.measure)
            if not found or found[0].because != "ios_per_s":
                return ()
        for _ in range(MOST_TOGETHER):
            beyond = self.beyond(found)
            if beyond is None or beyond.share <= TOGETHER:
                break
            found += self._window(beyond.begin, "together")
        return found

    def peaks(self, played: Sequence[Window]) -> tuple[Peak, ...]:
        """Return the peak of each measure, beside the highest of the windows that are `played`."""
        found = []
        for measure, rates in self._rates.items():
            place = int(np.nanargmax(rates))
            begin, per_s = float(self._intervals.start[place]), float(rates[place])
            found.append(Peak(measure=measure, begin=begin, per_s=per_s, played=_most(played, measure)))
        return tuple(found)

    def beyond(self, played: Sequence[Window]) -> Beyond | None:
        """Return the window that is furthest beyond the nearest of those that are `played`, or None if there is none.

        One that overlaps a played window is a blend of that and of what lies beside it, and asks for neither at once.
        One of which a measure is not known cannot be told."""
        highest = {one.measure: one.per_s for one in self.peaks(played) if one.per_s > 0}
        if not highest:
            return None
        rates = np.array([self._rates[measure] / per_s for measure, per_s in highest.items()]).T
        points = [np.array([_mean(one, name) / per_s for name, per_s in highest.items()]) for one in played]
        shares = np.min([(rates - point).max(axis=1) for point in points], axis=0)
        for one in played:
            shares[np.abs(self._intervals.start - one.begin) < self._window_s] = np.nan
        if not (shares > 0).any():
            return None
        place = int(np.nanargmax(shares))
        more = min((rates[place] - point for point in points), key=max)
        measure = list(highest)[int(more.argmax())]
        return Beyond(begin=float(self._intervals.start[place]), measure=measure, share=float(shares[place]))

    def _window(self, begin: float, because: Measured | Literal["together"]) -> tuple[Window, ...]:
        """Return a window with the intervals in which all is known, per second; nothing if there are none."""
        middle = (self._intervals.start + self._intervals.end) / 2
        known = (middle >= begin) & (middle < begin + self._window_s)
        known &= np.all([np.isfinite(values) for values in self._columns.values()], axis=0)
        seconds = self._intervals.seconds
        pieces = [
            Piece(seconds=seconds[at], **{name: values[at] / seconds[at] for name, values in self._columns.items()})
            for at in np.flatnonzero(known)
        ]
        return (Window(begin=begin, because=because, pieces=tuple(pieces)),) if pieces else ()


def _mean(window: Window, measure: Measured) -> float:
    return sum(window.mean(name) for name in COLUMNS[measure])


def _most(windows: Sequence[Window], measure: Measured) -> float:
    return max((_mean(one, measure) for one in windows), default=0.0)


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
