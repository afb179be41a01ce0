"""Leftovers of killed Stallmark processes on this machine, outside the folders of its databases."""

import os
from collections.abc import Iterator
from contextlib import suppress

from stallmark.errors import StallmarkError
from stallmark.leftovers import Leftover, leftovers_of_dead_processes


def ours() -> Iterator[Leftover]:
    """Yield the leftovers that are certainly Stallmark's."""
    yield from leftovers_of_dead_processes()
    if os.name == "posix":
        from stallmark.engines.postgres.embedded_ownership import leftover_servers

        yield from leftover_servers()


def everything() -> Iterator[Leftover]:
    """Yield all leftovers, including shared memory of PostgreSQL servers that may not be Stallmark's."""
    yield from ours()
    if os.name == "posix":
        from stallmark.engines.postgres.embedded_ownership import leftover_segments

        yield from leftover_segments()


def sweep() -> None:
    """Remove our leftovers, at the start of every command. Errors are ignored: `doctor` lists what is left."""
    with suppress(OSError, StallmarkError):
        for leftover in ours():
            with suppress(OSError, StallmarkError):
                leftover.remove()
