"""The file that a probe or a raw load works on: made by us, marked, and removed; nothing else is ever written to.

Its first MiB holds our mark, and no I/O goes there. A probe that was killed leaves its file, and a link to it among the
temporary files. The next `run` or `probe` finds the file by the link, and one in that folder also by its name. Its mark
shows that it is ours, and holds the number of its process; the process table shows whether that is gone.
"""

import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from stallmark.errors import StallmarkError
from stallmark.processes import Leftover, temporary_name
from stallmark.storage.fio import SKIP_BYTES

PREFIX, SUFFIX = "stallmark-probe-", ".data"
_MADE_BY = "stallmark probe"
_MARK_BYTES = 4096
_PIECE_BYTES = 4 * 2**20
_PAGE_BYTES = 4096
LEAST_BYTES = 32 * 2**20
"""The smallest file: with 32 blocks of 1 MiB outstanding, a smaller one would be read several times a second."""
_CLOCK_SET_S = 60.0
"""Seconds by which a process's start time may seem to move when the machine's clock is set. A process number is not
reused as soon as that."""
_SPARE = 0.05
"""Share of the file system that stays free, because others write to it as well."""


@dataclass(frozen=True)
class ProbeFile:
    """A file or device under a probe. `ours`: it may be written to."""

    path: Path
    bytes: int
    ours: bool

    @property
    def place(self) -> str:
        """Return the path that the user named."""
        return str(self.path.parent if self.ours else self.path)


def refuse_small(size_bytes: int) -> None:
    if size_bytes < LEAST_BYTES:
        raise StallmarkError(
            f"A file of {size_bytes / 2**20:.0f} MiB is too small to distinguish a device from its caches: choose "
            f"at least {LEAST_BYTES // 2**20} MiB."
        )


@contextmanager
def make_probe_file(folder: Path, size_bytes: int) -> Iterator[ProbeFile]:
    """Yield a file of that size in `folder` (made if missing), written whole with half-compressible data, on the
    device. The file is removed afterwards. Raise StallmarkError if it cannot be made."""
    refuse_small(size_bytes)
    made = not folder.exists()
    name = uuid.uuid4().hex
    path = folder.resolve() / f"{PREFIX}{name}{SUFFIX}"
    link = Path(tempfile.gettempdir(), f"{temporary_name('elsewhere')}{name}")
    try:
        with suppress(OSError):  # creating links needs a privilege on Windows
            link.symlink_to(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)
            refuse_little_space(folder, size_bytes)
            _fill(path, size_bytes)
        except OSError as error:
            raise StallmarkError(
                f"The file for reads and writes in {folder} could not be made ({error.strerror or error}): choose "
                "another folder or a smaller size."
            ) from None
        yield ProbeFile(path, size_bytes, ours=True)
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
        link.unlink(missing_ok=True)
        if made:
            _remove_empty(folder)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove and return the files of probes whose process is gone; unmarked files, or another machine's, stay."""
    gone = []
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):
            if _is_left(path):
                gone.append(path)
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def leftover_behind(link: Leftover, target: Path) -> Leftover | None:
    """Return the file that a killed probe's link leads to, removed together with the link; the link alone if no such
    file is there; None while its folder cannot be read, which may be on an array that is not mounted."""
    if not target.match(f"{PREFIX}*{SUFFIX}"):
        return link
    try:
        size_bytes = target.stat().st_size
        left = _is_left(target)
    except FileNotFoundError:
        return link if target.parent.is_dir() else None
    except OSError:
        return None
    return Leftover("of raw I/O that was killed", target, size_bytes, partial(_remove, target, link)) if left else link


def _remove(path: Path, link: Leftover) -> None:
    path.unlink(missing_ok=True)
    # Last, because it alone leads to the file.
    link.remove()


def _is_left(path: Path) -> bool:
    """Return True for the file of a probe whose process is gone. Raise OSError if it cannot be read."""
    try:
        with path.open("rb") as file:
            mark = json.loads(file.read(_MARK_BYTES).rstrip(b"\0"))
        if mark["made by"] != _MADE_BY or mark["host"] != socket.gethostname():
            return False
        return abs(psutil.Process(mark["process"]).create_time() - mark["process started"]) > _CLOCK_SET_S
    except psutil.NoSuchProcess:
        return True
    except (ValueError, KeyError, TypeError, psutil.AccessDenied):
        return False


def _mark() -> bytes:
    us = psutil.Process()
    text = json.dumps(
        {"made by": _MADE_BY, "host": socket.gethostname(), "process": us.pid, "process started": us.create_time()}
    )
    return text.encode().ljust(SKIP_BYTES, b"\0")


@contextmanager
def existing_file(path: Path, most_bytes: int, i_know: bool) -> Iterator[ProbeFile]:
    """Yield the beginning of the file or device, at most `most_bytes`. `i_know`: reading it was expressly asked for.

    Raise StallmarkError if it was not, or where it cannot be probed.
    """
    if not i_know:
        kind = "device" if path.is_block_device() else "file"
        raise StallmarkError(
            f"{path} is an existing {kind}, which a probe leaves alone: name a folder on that storage, or give "
            "--i-know to have it read (it is never written to)."
        )
    if not (path.is_file() or path.is_block_device()):
        raise StallmarkError(f"{path} is neither a folder, a file nor a block device: name one of these.")
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}): probe it as a user who may.") from None
    if size < LEAST_BYTES:
        raise StallmarkError(
            f"{path} has {size / 2**20:.0f} MiB, too few to distinguish a device from its caches: a probe needs at "
            f"least {LEAST_BYTES // 2**20} MiB."
        )
    yield ProbeFile(path, min(size, most_bytes), ours=False)


def refuse_little_space(folder: Path, size_bytes: int) -> None:
    """Raise StallmarkError if a file of that size would leave the file system of a folder too full."""
    space = shutil.disk_usage(folder)
    room = space.free - round(_SPARE * space.total)
    if size_bytes > room:
        most = max(0, room) // 2**20
        advice = f"give it at most {most}MiB, or make room" if most * 2**20 >= LEAST_BYTES else "make room"
        raise StallmarkError(
            f"{folder} has {space.free / 2**30:.1f} GiB free, too little for "
            f"{size_bytes / 2**30:.1f} GiB to read and write beside {_SPARE:.0%} of the file system that stay free: "
            f"{advice}."
        )


def _fill(path: Path, size_bytes: int) -> None:
    with path.open("xb") as file:
        file.write(_mark())
        # The mark by itself: after a kill, the next probe must be able to tell whose file this is.
        file.flush()
        source = np.random.default_rng()
        left = size_bytes - SKIP_BYTES
        while left > 0:
            left -= file.write(compressible_bytes(source, _PIECE_BYTES)[: min(left, _PIECE_BYTES)])
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def compressible_bytes(source: np.random.Generator, size_bytes: int) -> memoryview:
    """Return pages that compress 2 to 1, as databases' do, and are all different. Arrays that compress or deduplicate
    would otherwise look too fast.
    """
    pages = np.zeros((size_bytes // _PAGE_BYTES, _PAGE_BYTES), dtype=np.uint8)
    half = _PAGE_BYTES // 2
    pages[:, :half] = np.frombuffer(source.bytes(len(pages) * half), dtype=np.uint8).reshape(len(pages), half)
    return pages.reshape(-1).data


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # another file is in it, or it was never made
        pass
