"""Shows a build while it runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import humanize

from stallmark.loaders.load import Progress
from stallmark.scenarios.show import Show


@contextmanager
def show_build(show: Show, title: str) -> Iterator[Callable[[Progress], None]]:
    """A bar for a build; yields the function its progress is reported to."""

    def report(progress: Progress) -> None:
        sent = humanize.naturalsize(progress.bytes)
        show.advance(progress.rows, f"{progress.phase}, {progress.rows:,} rows, {sent}", progress.rows_total)

    with show.bar(title, None):
        yield report
