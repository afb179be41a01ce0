"""The windows of a profile that a sizing plays, by what they ask for: I/Os, reads, writes and log writes, and the bytes
of each.

The busiest window by I/Os hides a backup, which reads few large pieces. So every measure has its window, and so has
what asks for several measures at once, unless a window that is played already asks for as much.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from stallmark.analysis.profile.windows import MORE, sliding
from stallmark.record.profile.intervals import Intervals, is_known
from stallmark.record.sizing.manifest import Beyond, Measured, Peak, Piece, Window

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
