"""A folder of records held for one process: two that write into it would disturb each other."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stallmark.errors import StallmarkError


@contextmanager
def alone(folder: Path, *, taken: str) -> Iterator[None]:
    """Hold a folder, which is made if need be and removed at the end where nothing lies in it. Raise StallmarkError
    with the sentence `taken` where another process holds it."""
    if sys.platform == "win32":  # a folder cannot be locked there
        yield
        return
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # of a file system without locks
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StallmarkError(taken) from None
        yield
    finally:
        os.close(held)
        with suppress(OSError):  # it holds records, as it should
            folder.rmdir()
