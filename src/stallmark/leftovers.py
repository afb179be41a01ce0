"""Files in places for temporary ones that carry the number of the process they belong to: what a killed one has left is
known by that, and removed by the next."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")

_OURS = re.compile(r"stallmark-[a-z]+-(\d+)-.*")


@dataclass(frozen=True)
class Leftover:
    """A thing that no process uses any more; `remove` may raise OSError or StallmarkError."""

    kind: str
    place: Path | str
    """A file or folder; the name of what is neither."""

    bytes: int
    remove: Callable[[], None]


def temporary_name(word: str) -> str:
    """Return the beginning of the name of a temporary file or folder of this process; `word` is one word."""
    return f"stallmark-{word}-{os.getpid()}-"


def leftovers_of_dead_processes() -> Iterator[Leftover]:
    """Yield the leftovers of dead processes in memory and in the folder for temporary files."""
    for place in (SHARED_MEMORY, Path(tempfile.gettempdir())):
        for path in place.glob("stallmark-*"):
            match = _OURS.fullmatch(path.name)
            if match and is_own(path) and not _runs(int(match[1])):
                yield Leftover("of a process that was killed", path, size_of(path), partial(_remove, path))


def is_own(path: Path) -> bool:
    """Return True if a file exists and belongs to this user."""
    with suppress(OSError):
        # The link itself is looked at: whoever can write to the folder may have put one there that leads to a file of
        # ours.
        return not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid()
    return False


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    total = 0
    for path_within in [path, *path.rglob("*")] if path.is_dir() else [path]:
        with suppress(OSError):
            total += path_within.lstat().st_size if not path_within.is_dir() else 0
    return total


def _runs(process: int) -> bool:
    # Imported late: a command that meets no leftovers is spared the import.
    import psutil

    return psutil.pid_exists(process)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
