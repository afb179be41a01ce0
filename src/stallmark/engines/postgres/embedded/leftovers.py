"""Servers that outlived their Stallmark, because their guard was killed too, and shared memory of killed ones."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from stallmark.engines.postgres.embedded import sysv
from stallmark.engines.postgres.embedded.ownership import DATABASE, end_leftover, hold
from stallmark.leftovers import SHARED_MEMORY, Leftover, is_own, size_of

_YOUNG_S = 60.0
"""A segment so young may be one that nobody has mapped yet."""

_KILLED = "shared memory of a PostgreSQL that was killed"


def servers() -> Iterator[Leftover]:
    """Yield the socket folders of databases that no Stallmark has open, with the server that may still listen there.
    Removing one ends that server in order."""
    for sockets in Path(tempfile.gettempdir()).glob(f"stallmark-{os.getuid()}-*"):
        if is_own(sockets) and (sockets / DATABASE).is_file() and (lock := _free(sockets)) is not None:
            os.close(lock)
            yield Leftover("of a server whose Stallmark was killed", sockets, size_of(sockets), partial(_end, sockets))


def _end(sockets: Path) -> None:
    lock = _free(sockets)
    if lock is None:  # somebody has opened the database meanwhile
        return
    try:
        for file in sockets.glob(".s.PGSQL.*.lock"):
            end_leftover(Path(file.read_text().splitlines()[1]))
        shutil.rmtree(sockets, ignore_errors=True)
    finally:
        os.close(lock)


def _free(sockets: Path) -> int | None:
    """Return the lock of the database whose sockets these are; None if somebody has it, it is gone or not yet named."""
    with suppress(OSError, ValueError):
        folder = Path((sockets / DATABASE).read_text())
        return hold(folder) if folder.is_absolute() else None  # empty: a server that starts is about to write it
    return None


def segments() -> Iterator[Leftover]:
    """Yield shared memory of this user's PostgreSQL servers, ours or not, that belongs to none that runs."""
    yield from _attached_by_nobody()
    yield from _mapped_by_nobody()


def _attached_by_nobody() -> Iterator[Leftover]:
    """Yield segments of System V: every process of a server has the server's attached."""
    for one in sysv.unattached():
        if one.age_s > _YOUNG_S and one.is_postgres:
            yield Leftover(_KILLED, f"System V segment {one.number}", one.size_bytes, one.remove)


def _mapped_by_nobody() -> Iterator[Leftover]:
    """Yield files that nobody has mapped, nor are in the list of segments that every server keeps mapped. Yield none
    where that cannot be seen."""
    found = [path for path in SHARED_MEMORY.glob("PostgreSQL.*") if is_own(path)]
    mapped = _mapped() if found else None
    if mapped is None:
        return
    lists = b"".join(_content(path) for path in found if str(path) in mapped)
    for path in found:
        handle = int(path.suffix[1:]).to_bytes(4, "little") if path.suffix[1:].isdecimal() else None
        if handle is None or str(path) in mapped or handle in lists:
            continue
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG_S:
                yield Leftover(_KILLED, path, size_of(path), path.unlink)


def _mapped() -> set[str] | None:
    """Return the files in shared memory that processes of this user have mapped; None where a PostgreSQL does not show
    them."""
    mapped = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if is_own(process):
                lines = (process / "maps").read_text(errors="replace").splitlines()
                mapped |= {line.split(maxsplit=5)[-1] for line in lines if str(SHARED_MEMORY) in line}
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        except OSError:
            if (process / "comm").read_text().strip() == "postgres":
                return None
    return mapped


def _content(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""
