"""A progress bar for a build."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stallmark import format
from stallmark.experiment.progress import Phase, Show
from stallmark.loaders.load import BuildProgress


@contextmanager
def show_build(show: Show, title: str) -> Iterator[Callable[[BuildProgress], None]]:
    """Show a bar for a build; yield the function to which its progress is reported."""
    began: tuple[float, int] | None = None

    def report(progress: BuildProgress) -> None:
        nonlocal began
        now = time.monotonic()
        if progress.phase == "load":
            began = began or (now, progress.rows)
        note = f"{progress.phase}, {progress.rows:,} rows, {format.size(progress.bytes)}"
        if began and progress.rows < progress.rows_total and now > began[0]:
            note += f", {(progress.rows - began[1]) / (now - began[0]):,.0f} rows/s"
        show.advance(progress.rows, note, progress.rows_total)

    with show.bar(title, None, Phase.LOADING):
        yield report
