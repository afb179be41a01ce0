"""The files of a record: none is followed out of its folder, each is replaced whole, and damage is found by checksums.

A record may come from somebody else. So a link in its place is never read, nor written through.
"""

import os
import platform
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import psutil

from stallmark.errors import StallmarkError, named

PIECE_BYTES = 1 << 22
_HERE = f"{zlib.crc32(platform.node().encode()):08x}"
"""This machine, in the name of a draft: of a process on another one nobody can tell here whether it still writes."""


def is_file(path: Path) -> bool:
    """Tell whether there is a file. Raise StallmarkError for what is none, as a link or a pipe."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "no file"
        raise StallmarkError(f"{path} is {what}: a record holds its files itself. Put the file there, or leave it out.")
    return True


def read(path: Path) -> bytes:
    """Return the content of a file. Raise FileNotFoundError, and StallmarkError for a link or a pipe."""
    if not is_file(path):
        raise FileNotFoundError(path)
    return path.read_bytes()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of another when it is written whole, and is gone else. A link there is replaced
    and not followed. An error of the system names the file."""
    sweep(path.parent)
    draft = path.with_name(f"{path.name}.{_HERE}-{os.getpid()}.new")
    draft.unlink(missing_ok=True)  # of a process that was killed, and had the same number
    try:
        with new_file(draft) as file:
            yield file
        os.replace(draft, path)
    except BaseException as error:
        with suppress(OSError):  # its folder may take no change any more
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and not error.filename:
            raise named(error, path) from error
        raise


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder that processes of this machine have left which are gone."""
    for draft in folder.glob(f"*.{_HERE}-*.new"):
        number = draft.stem.rpartition("-")[2]
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            with suppress(OSError):  # its folder may take no change any more
                draft.unlink()


def new_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Return a file that was not there, opened for writing. Raise FileExistsError, also for a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return open(os.open(path, flags, 0o666), "wb", buffering=buffering)  # type: ignore[return-value]


def crc32(path: Path) -> int:
    """Return the checksum of a file; it is read once as long as it does not change."""
    found = path.stat()
    return _crc32(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4096)
def _crc32(path: Path, inode: int, size: int, changed_ns: int) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            found = zlib.crc32(piece, found)
    return found
