"""A progress bar for a build, with the time that its load still takes."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stallmark import format
from stallmark.experiment.progress import Phase, Show
from stallmark.loaders.load import BuildProgress

LATELY_S = 60.0
FEWEST = 6  # batches that a rate goes by
LEAST_S = 5.0  # seconds of load that a rate requires
WILD = 3.0  # times: between rates that differ by more, nothing is said
STEADY = 1.25  # times: of two times that differ by no more, the longer one will do


class LoadPace:
    """The rate of a load lately: rows and moments of the batches of the last minute, and of the last ones at least."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, rows: int) -> None:
        if self._seen and rows == self._seen[-1][1]:
            return
        self._seen.append((now_s, rows))
        while len(self._seen) > FEWEST + 1 and now_s - self._seen[1][0] >= LATELY_S:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Return the rows per second, or None while too little was loaded for a rate."""
        return self._rate(0, -1) if self._is_known() else None

    def left_s(self, rows: int) -> tuple[float, float] | None:
        """Return the shortest and the longest time for `rows` more rows, at the rates of the two halves seen so far.

        None if too little was loaded, or if the two rates have nothing in common.
        """
        if not self._is_known():
            return None
        middle = len(self._seen) // 2
        rates = self._rate(0, middle), self._rate(middle, -1)
        return (rows / max(rates), rows / min(rates)) if max(rates) <= WILD * min(rates) else None

    def _is_known(self) -> bool:
        return len(self._seen) > FEWEST and self._seen[-1][0] - self._seen[0][0] >= LEAST_S

    def _rate(self, first: int, last: int) -> float:
        (began_s, before), (ended_s, rows) = self._seen[first], self._seen[last]
        return (rows - before) / max(ended_s - began_s, 1e-3)


@contextmanager
def show_build(show: Show, title: str) -> Iterator[Callable[[BuildProgress], None]]:
    """Show a bar for a build; yield the function to which its progress is reported.

    The time for keys and statistics is unknown: a line announces it as additional, and their bar shows the share done.
    """
    pace: LoadPace | None = None

    def report(progress: BuildProgress) -> None:
        nonlocal pace
        note = f"{progress.phase}, {progress.rows:,} rows"
        if progress.phase != "load":
            # The next of several databases has its own rate.
            pace = None
            note += f", {100 * progress.done:.0f} % done" if progress.done else ""
            show.advance(progress.done, note, 1.0)
            return
        pace = pace or LoadPace()
        pace.note(time.monotonic(), progress.rows)
        left = pace.left_s(max(0, progress.rows_total - progress.rows))
        note += f", {format.size(progress.bytes)}" if pace.rate is None else f", {pace.rate:,.0f} rows/s"
        note += f", {_time_left(*left)}" if left else ""
        show.advance(progress.rows, note, progress.rows_total)

    with show.bar(title, None, Phase.LOADING, says_left=False):
        yield report


def _time_left(least_s: float, most_s: float) -> str:
    """Return the time that a load still takes: one, or two if the rate was not steady."""
    least, most = format.roughly(least_s), format.roughly(most_s)
    if most_s < 1:
        return "then keys and statistics"
    between = f"about {most}" if most_s <= STEADY * least_s or least == most else f"{least} to {most}"
    return f"{between} left, then keys and statistics"
