"""The demand of a profile on storage: the windows that a sizing replays, interval by interval.

The windows are those with the most I/Os, reads, writes and log writes, and with the most bytes of each. The busiest
window by I/Os hides a backup, which reads few large pieces. So every measure has its window, and so has a combined
demand on several measures, unless a window that is played already demands as much.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final, Literal

import numpy as np

from stallmark.analysis.profile import pool_bytes
from stallmark.analysis.profile_intervals import intervals_of
from stallmark.analysis.profile_rates import (
    MINUTE_S,
    MORE,
    SEEN_SHARE,
    WINDOW_S,
    Measure,
    Quotient,
    Rates,
    class_totals,
    rates_of,
    sliding,
)
from stallmark.errors import StallmarkError
from stallmark.format import short
from stallmark.record.profile import FileClass, Intervals, ProfileManifest, is_known, read_profile
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
"""The columns of a piece that are added up for each measure."""
TOGETHER = 0.2
"""A window is played for its combined demand if that exceeds the nearest played window by this share of a measure's
peak."""
MOST_TOGETHER = 2
"""The most windows of combined demand: every window is played at every level, and more would take hours."""


class WindowSearch:
    """The search for the windows of a profile that demand most."""

    def __init__(self, intervals: Intervals, columns: Mapping[str, np.ndarray], window_s: float):
        """`columns` are the counts of each column of a piece, in all intervals."""
        self._intervals, self._columns, self._window_s = intervals, columns, window_s
        self._rates: dict[Measured, np.ndarray] = {}
        """The means of the windows that begin with each interval, by measure. A measure that is always 0 is missing,
        except I/Os."""
        for measure, names in COLUMNS.items():
            amount = np.sum([columns[name] for name in names], axis=0)
            rates, _ = sliding(intervals.start, intervals.end, amount, intervals.seconds, window_s)
            if is_known(rates) and (np.nanmax(rates) > 0 or measure == "ios_per_s"):
                self._rates[measure] = rates

    def windows(self) -> tuple[Window, ...]:
        """Return the windows to play, the one with the most I/Os first; empty if its I/Os are not fully known.

        They may overlap, since each peak is played completely. A profile that is no longer than a window is one window.
        """
        begin, end = float(self._intervals.start[0]), float(self._intervals.end[-1])
        if end - begin <= self._window_s:
            return self._window(begin, "ios_per_s")
        chosen: tuple[Window, ...] = ()
        for peak in self.peaks(()):
            if peak.per_s > MORE * _highest_mean(chosen, peak.measure) or not chosen:
                chosen += self._window(peak.begin, peak.measure)
            # The need is a multiple of the I/Os of the first window: another one in its place would falsify every
            # answer.
            if not chosen or chosen[0].because != "ios_per_s":
                return ()
        for _ in range(MOST_TOGETHER):
            beyond = self.unplayed_window(chosen)
            if beyond is None or beyond.share <= TOGETHER:
                break
            chosen += self._window(beyond.begin, "together")
        return chosen

    def peaks(self, played: Sequence[Window]) -> tuple[Peak, ...]:
        """Return the peak of each measure, next to the highest of the windows that are `played`."""
        found_peaks = []
        for measure, rates in self._rates.items():
            place = int(np.nanargmax(rates))
            begin, per_s = float(self._intervals.start[place]), float(rates[place])
            found_peaks.append(Peak(measure=measure, begin=begin, per_s=per_s, played=_highest_mean(played, measure)))
        return tuple(found_peaks)

    def unplayed_window(self, played: Sequence[Window]) -> Beyond | None:
        """Return the window that is furthest beyond the nearest `played` one, or None without one.

        A window that overlaps a played one is a mixture of that and its neighbourhood, and demands neither at once. A
        window with an unknown measure cannot be judged.
        """
        highest = {peak.measure: peak.per_s for peak in self.peaks(played) if peak.per_s > 0}
        if not highest:
            return None
        # A point per window, each measure as a share of its peak: the distance is the largest excess in any measure.
        rates = np.array([self._rates[measure] / per_s for measure, per_s in highest.items()]).T
        points = [np.array([_mean(window, name) / per_s for name, per_s in highest.items()]) for window in played]
        shares = np.min([(rates - point).max(axis=1) for point in points], axis=0)
        for window in played:
            shares[np.abs(self._intervals.start - window.begin) < self._window_s] = np.nan
        if not (shares > 0).any():
            return None
        place = int(np.nanargmax(shares))
        more = min((rates[place] - point for point in points), key=max)
        measure = list(highest)[int(more.argmax())]
        return Beyond(begin=float(self._intervals.start[place]), measure=measure, share=float(shares[place]))

    def _window(self, begin: float, because: Measured | Literal["together"]) -> tuple[Window, ...]:
        """Return a window with its fully known intervals, per second; empty without such intervals."""
        middle = (self._intervals.start + self._intervals.end) / 2
        known = (middle >= begin) & (middle < begin + self._window_s)
        known &= np.all([np.isfinite(values) for values in self._columns.values()], axis=0)
        seconds = self._intervals.seconds
        pieces = [
            Piece(
                seconds=seconds[place],
                **{name: values[place] / seconds[place] for name, values in self._columns.items()},
            )
            for place in np.flatnonzero(known)
        ]
        return (Window(begin=begin, because=because, pieces=tuple(pieces)),) if pieces else ()


def _mean(window: Window, measure: Measured) -> float:
    return sum(window.mean(name) for name in COLUMNS[measure])


def _highest_mean(windows: Sequence[Window], measure: Measured) -> float:
    return max((_mean(window, measure) for window in windows), default=0.0)


def demand_of(folder: Path, *, window_s: float = WINDOW_S) -> record.Demand:
    """Return the demand of the profile in a folder, with windows of `window_s` seconds.

    Raise StallmarkError if its I/O is not known well enough to be replayed.
    """
    manifest, intervals = read_profile(folder), intervals_of(folder)
    rates = rates_of(intervals, manifest)
    log_known = _log_is_known(intervals)
    columns = _columns(intervals, log_known)
    # Without I/O in any interval there is nothing to replay.
    if not is_known(columns["reads"] + columns["writes"]):
        _refuse_without_io(folder, manifest)
    asked = WindowSearch(intervals, columns, window_s)
    if not (windows := asked.windows()):
        _refuse_without_windows(folder, manifest, window_s)
    busy = rates.part(windows[0].begin, windows[0].begin + window_s)
    means = {name: quotient.mean() for name, quotient in busy.measures.items()}
    cpu_s, known = intervals.column("server.cpu_s"), rates.middle >= windows[0].begin
    # CPU time and duration must come from the same intervals.
    known &= (rates.middle < windows[0].begin + window_s) & np.isfinite(cpu_s)
    sizes = [
        total.size_bytes for total in class_totals(intervals) if total.file_class is FileClass.DATA and total.size_bytes
    ]
    return record.Demand(
        profile=profile_fingerprint(manifest, rates),
        windows=tuple(window.changed(read_ms=_read_ms(rates, window, window_s)) for window in windows),
        transactions=means.get(Measure.TRANSACTIONS),
        cpu_cores=float(cpu_s[known].sum() / intervals.seconds[known].sum()) if known.any() else None,
        cores=manifest.server.cores,
        pool_bytes=pool_bytes(manifest, intervals),
        database_bytes=sum(sizes) or manifest.server.database_bytes,
        read_ms=means.get(Measure.READ_MS),
        log_ms=means.get(Measure.LOG_MS),
        log_known=log_known,
        peaks=asked.peaks(windows),
        beyond=asked.unplayed_window(windows),
    )


def _read_ms(rates: Rates, window: record.Window, window_s: float) -> float | None:
    quotient = rates.part(window.begin, window.begin + window_s).measures.get(Measure.READ_MS)
    return quotient.mean() if quotient else None


def with_peaks(demand: record.Demand, intervals: Intervals) -> record.Demand:
    """Return a demand from an older record completed with the peaks of its profile's intervals."""
    asked = WindowSearch(intervals, _columns(intervals, demand.log_known), demand.windows[0].seconds)
    return demand.changed(peaks=asked.peaks(demand.windows), beyond=asked.unplayed_window(demand.windows))


def _refuse_without_io(folder: Path, manifest: ProfileManifest) -> None:
    """Raise StallmarkError with the reason why the profile has nothing to play."""
    if manifest.source == "server":
        raise StallmarkError(f"The profile in {folder} has no interval with I/O yet: let it run longer.")
    reason = manifest.missing.get("disk counters", "the files have no I/O of disks")
    if manifest.source == "sar":
        raise StallmarkError(
            f"The profile in {folder} does not separate reads from writes ({reason}), and a sizing plays both: import "
            "it without --class, from files that have sar -b as well, or record with iostat -x."
        )
    raise StallmarkError(
        f"The profile in {folder} does not record its reads and writes ({reason}), and a sizing plays both: import "
        "files that have them."
    )


def _refuse_without_windows(folder: Path, manifest: ProfileManifest, window_s: float) -> None:
    """Raise StallmarkError with the reason why no window can be played."""
    whole = window_s // manifest.interval_s
    if whole * manifest.interval_s < SEEN_SHARE * window_s:
        least_min = ceil((whole + 1) * manifest.interval_s / 60)
        raise StallmarkError(
            f"The profile in {folder} has a sample every {short(manifest.interval_s / 60)} minutes, too few for "
            f"windows of {window_s / 60:g} minutes: give the scenario longer ones (--set replay.window={least_min}min)."
        )
    raise StallmarkError(
        f"The profile in {folder} does not record reads and writes with their bytes in its busiest {window_s / 60:g} "
        "minutes, and a sizing plays both: record both, or let it run longer."
    )


def ios_of_minutes(intervals: Intervals, rates: Rates) -> np.ndarray:
    """Return the I/Os per second of every minute in which they are known, counted as in the pieces of a window."""
    columns = _columns(intervals, _log_is_known(intervals))
    total = columns["reads"] + columns["writes"] + columns["log_writes"]
    by_minute = (
        replace(rates, measures={Measure.IOS: Quotient(total, rates.seconds)}).slots(MINUTE_S).values[Measure.IOS]
    )
    return by_minute[np.isfinite(by_minute)]


def profile_fingerprint(manifest: ProfileManifest, rates: Rates) -> str:
    """Return a short hash of the profile. It changes with the profile's source and with its length."""
    server: Sequence[str] = manifest.files if manifest.marks is None else (manifest.marks.server,)
    text = "\n".join([manifest.started, *server, f"{rates.end[-1]:.3f}"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _log_is_known(intervals: Intervals) -> bool:
    """Return True if log writes are known separately from data writes."""
    known = is_known(intervals.log("writes", "log_flushes")) and is_known(intervals.log("write_bytes", "log_bytes"))
    return known and (FileClass.LOG in intervals.classes or FileClass.DEVICE not in intervals.classes)


def _columns(intervals: Intervals, log_known: bool) -> dict[str, np.ndarray]:
    """Return the columns of a piece in all intervals. Reads of the log count as reads."""
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
