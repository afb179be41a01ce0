"""Progress of an experiment, and of the build before it: a bar on a terminal, plain lines elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from stallmark import format

if TYPE_CHECKING:
    from stallmark.analysis.finding import Finding
    from stallmark.experiment.estimate import Estimate
    from stallmark.loaders.load import BuildProgress

PLAIN_EVERY_S = 15
MIN_TITLE, MIN_BAR = 12, 8


class Phase(StrEnum):
    LOADING = "loading"
    PREPARING = "preparing"
    PROBING = "probing the storage"
    WARM_UP = "warming up"
    UNSTEADY = "waiting until it is steady"
    MEASURING = "measuring"
    CHECKING = "checking consistency"
    REPORTING = "writing the report"


@dataclass(frozen=True)
class Doing:
    """The work of this moment, for the live page. `run` is the number of the run in its experiment, None before the
    first; `done` of `total` is in the unit of the work, `total` None if it is not known. `asks`: the variant
    before which the operator is asked, and the question."""

    phase: Phase = Phase.LOADING
    run: int | None = None
    note: str = ""
    done: float = 0.0
    total: float | None = None
    asks: tuple[str, str] | None = None


class Show:
    """A display of one bar at a time. On a terminal it moves; into a file or a pipe goes a line now and then."""

    def __init__(self, console: Console):
        self.console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._said = 0.0
        # When work was first reported, and how much was done then.
        self._first: tuple[float, float] | None = None
        self.doing = Doing()
        self._ends: float | None = None

    def enter(self, phase: Phase, run: int | None = None) -> None:
        """Note which phase begins, of the run of this number or of the same one as before."""
        self.doing = Doing(phase, run or self.doing.run)

    def waits(self, note: str = "", asks: tuple[str, str] | None = None) -> None:
        """Note what is waited for, for the live page, until other work begins."""
        self.doing = replace(self.doing, note=note, asks=asks)

    def tell(self, finding: "Finding") -> None:
        """Show a finding, on a display that has words for it."""

    def expect(self, expected: "Estimate") -> None:
        """Note the time left in all, for the live page while nothing is recorded yet."""
        self._ends = time.monotonic() + expected.total_s

    @property
    def left_s(self) -> float | None:
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    @contextmanager
    def bar(
        self, title: str, total: float | None, phase: Phase | None = None, *, says_left: bool = True
    ) -> Iterator[None]:
        """Show a bar for one piece of work; `advance` moves it. It leaves one line behind when done.

        `total` is for work by the clock, in seconds. For other work, or when the end has moved, `advance` is told
        the total. How much time is left is left to the notes unless it `says_left`.
        """
        began = time.monotonic()
        self._title = title
        self.doing = Doing(phase or self.doing.phase, self.doing.run, total=total)
        self._said = began
        self._first = None
        self._total = total
        self._says_left = says_left
        if self.console.is_terminal:
            columns: tuple[ProgressColumn, ...] = (
                TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True)),
            )
            if says_left:
                columns = (*columns, TimeRemainingColumn(compact=True))
            self._progress = Progress(*columns, console=self.console, transient=True, expand=True)
            self._task = self._progress.add_task(self._fitting(""), total=total, note="")
            self._progress.start()
        try:
            yield
        except BaseException:
            self._stop()
            raise
        self._stop()
        self.say(f"{title}: done in {time.monotonic() - began:.1f} s")

    def advance(self, done: float, note: str = "", total: float | None = None, phase: Phase | None = None) -> None:
        was = self.doing
        self.doing = replace(was, phase=phase or was.phase, note=note, done=done, total=total or was.total)
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, note=note, total=total, description=self._fitting(note))
            return
        now = time.monotonic()
        first, before = self._first = self._first or (now, done)
        if now - self._said >= PLAIN_EVERY_S:
            self._said = now
            if not self._says_left:
                left = 0.0
            elif self._total:
                left = (total or self._total) - done
            else:
                left = (now - first) * (total - done) / (done - before) if total and done > before else 0
            self.say(f"{self._title}: {note}" + (f", about {format.duration(left)} left" if left >= 1 else ""))

    def _fitting(self, note: str) -> str:
        """Return the title, cut where the window has no room for it next to the note, a short bar and the time."""
        room = max(MIN_TITLE, self.console.width - cell_len(note) - MIN_BAR - len(" 00:00  "))
        return self._title if cell_len(self._title) <= room else set_cell_size(self._title, room - 1) + "…"

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=not self.console.is_terminal)

    def _stop(self) -> None:
        if self._progress:
            self._progress.stop()
            self._progress = None


# The bar of a build, with the time that its load still takes.

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
def show_build(show: Show, title: str) -> Iterator[Callable[["BuildProgress"], None]]:
    """Show a bar for a build; yield the function to which its progress is reported.

    The time for keys and statistics is unknown: a line announces it as additional, and their bar shows the share done.
    """
    pace: LoadPace | None = None

    def report(progress: "BuildProgress") -> None:
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
