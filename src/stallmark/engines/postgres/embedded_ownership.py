"""Marks of the folders, sockets, servers and shared memory that are ours, and the leftovers of a killed Stallmark."""

import ctypes
import json
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from stallmark.errors import StallmarkError
from stallmark.processes import SHARED_MEMORY, Leftover, is_own, size_of

# Marks of the folders, sockets and servers that are ours. Nothing else is ever written to, removed or signalled.


MARKER = "stallmark-embedded.json"
DATABASE = "database"  # file in a folder of sockets: the path of their database
OUTSIDE_MARKER = "stallmark-wal"  # holds the same number in a database's folder and in those of it that lie outside


def claim(folder: Path) -> int:
    """Make `folder` ours alone; return the descriptor that holds the lock until it is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = any(folder.iterdir()) and not (folder / MARKER).exists()
    except OSError as error:
        raise StallmarkError(f"{folder} cannot be used ({error.strerror}): choose another.") from None
    if foreign:
        raise StallmarkError(f"{folder} holds files that Stallmark did not make: choose an empty folder or a new one.")
    (folder / MARKER).write_text(json.dumps({"made by": "stallmark"}) + "\n")
    try:
        lock = hold(folder)
    except BlockingIOError:
        owner = (folder / "lock").read_text()[:32] or "unknown"
        raise StallmarkError(
            f"{folder} is in use by another Stallmark (process {owner}): wait for it or stop it."
        ) from None
    os.truncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def hold(folder: Path) -> int:
    """Take the lock of a database's folder; return the descriptor that holds it until it is closed. Raise OSError;
    BlockingIOError where another process has it."""
    import fcntl  # not on Windows, where there is no embedded server

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def claim_outside(outside: Path, folder: Path) -> None:
    """Make `outside` a folder for the files or the WAL of the database in `folder`: an empty one, or one it made its
    own before.

    The contents of such a folder may be removed; the same number in both folders prevents confusion with others.
    """
    ours, mark = folder / OUTSIDE_MARKER, outside / OUTSIDE_MARKER
    try:
        outside.mkdir(mode=0o700, parents=True, exist_ok=True)
        if outside_contents(outside) and not is_of(outside, folder):
            raise StallmarkError(
                f"The folder {outside} is not empty, and what it holds is not this database's: name an empty or a new "
                "one."
            )
        if not ours.exists():
            ours.write_text(uuid.uuid4().hex)
        mark.write_text(ours.read_text())
    except OSError as error:
        raise StallmarkError(f"The folder {outside} cannot be used ({error.strerror}).") from None


def is_of(outside: Path, folder: Path) -> bool:
    """Return True if a folder outside was marked as a database's own."""
    try:
        return (outside / OUTSIDE_MARKER).read_text() == (folder / OUTSIDE_MARKER).read_text()
    except OSError:
        return False


def outside_contents(outside: Path) -> list[Path]:
    """Return the contents of such a folder, without our mark and that of a file system."""
    return [path for path in outside.iterdir() if path.name not in (OUTSIDE_MARKER, "lost+found")]


def private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StallmarkError(f"{folder} belongs to someone else: remove it, or set TMPDIR to a folder of your own.")


def end_leftover(data: Path) -> None:
    """End the server a killed Stallmark left behind in `data`; nothing else is ever signalled."""
    try:
        pid = int((data / "postmaster.pid").read_text().splitlines()[0])
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        ours = alive and process.name() == "postgres" and Path(process.cwd()) == data.resolve()
    except (FileNotFoundError, IndexError, ValueError, psutil.NoSuchProcess):
        return
    except psutil.AccessDenied:
        raise StallmarkError(f"Process {pid} holds {data} and belongs to another user: stop it first.") from None
    if not ours:
        # The server refuses to start beside a process that now has its old number.
        (data / "postmaster.pid").unlink(missing_ok=True)
        return
    for how, within_s in ((signal.SIGINT, 30), (signal.SIGQUIT, 10)):
        process.send_signal(how)
        process.resume()  # a server that was stopped obeys neither
        try:
            process.wait(within_s)
            return
        except psutil.TimeoutExpired:
            continue
    raise StallmarkError(f"The server an earlier run left behind (process {pid}) does not stop: end it by hand.")


# System V shared memory of PostgreSQL: one small segment per server, which outlives a killed one and its folder.

_SEGMENTS = Path("/proc/sysvipc/shm")  # Linux alone
_MAGIC = (679834894).to_bytes(4, "little")
"""The first bytes of the header of every PostgreSQL's segment (PGShmemMagic, src/include/storage/pg_shmem.h)."""

_NONE = bytes(len(_MAGIC))
_HEADER_BYTES = 56
"""A segment of our servers is as large as its header: what they share is in memory that they inherit (mmap)."""

_REMOVE, _READ_ONLY = 0, 0o10000  # IPC_RMID, SHM_RDONLY
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Segment:
    """A segment of this user that no process has attached."""

    number: int
    key: int
    """PostgreSQL takes the inode of the data directory, or the next number that is free."""

    size_bytes: int
    age_s: float

    def begins_with(self) -> bytes:
        """Return the first four bytes; none where the segment is gone."""
        library = ctypes.CDLL(None)
        library.shmat.restype = ctypes.c_void_p
        address = library.shmat(self.number, None, _READ_ONLY)
        if address == _FAILED:
            return b""
        try:
            return ctypes.string_at(address, min(self.size_bytes, len(_MAGIC)))
        finally:
            library.shmdt(ctypes.c_void_p(address))

    @property
    def is_postgres(self) -> bool:
        return self.begins_with() == _MAGIC

    def remove(self) -> None:
        ctypes.CDLL(None).shmctl(self.number, _REMOVE, None)


def unattached_segments() -> Iterator[Segment]:
    """Yield this user's segments that no process has attached; none where they cannot be seen."""
    with suppress(OSError):
        names, *lines = (line.split() for line in _SEGMENTS.read_text().splitlines())
        for line in lines:
            values = {name: int(value) for name, value in zip(names, line, strict=True)}
            if values["uid"] == os.getuid() and not values["nattch"]:
                age_s = time.time() - values["ctime"]  # the other times are also those of a look at what it holds
                yield Segment(values["shmid"], values["key"] % 2**32, values["size"], age_s)


def remove_segment(data: Path, *, unfinished: bool = False) -> None:
    """Remove the segment of a server that was killed in `data`; with `unfinished`, only one without a header.

    A server that starts in the same folder removes the segment itself, with all that its header leads to. One whose
    header was not written yet it takes for someone else's, and leaves there.
    """
    with suppress(FileNotFoundError):
        key = data.stat().st_ino % 2**32
        for segment in unattached_segments():
            if segment.key != key or segment.size_bytes != _HEADER_BYTES:
                continue
            if segment.begins_with() in ({_NONE} if unfinished else {_NONE, _MAGIC}):
                segment.remove()


# Servers that outlived their Stallmark, because their guard was killed too, and shared memory of killed ones.

_YOUNG_S = 60.0
"""Age below which a segment may simply not be mapped yet."""

_KILLED = "shared memory of a PostgreSQL that was killed"


def leftover_servers() -> Iterator[Leftover]:
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
    """Return the lock of the database whose sockets these are; None if someone has it, it is gone or not yet named."""
    with suppress(OSError, ValueError):
        folder = Path((sockets / DATABASE).read_text())
        return hold(folder) if folder.is_absolute() else None  # empty: a server that starts is about to write it
    return None


def leftover_segments() -> Iterator[Leftover]:
    """Yield shared memory of this user's PostgreSQL servers, ours or not, that belongs to none that runs."""
    yield from _attached_by_nobody()
    yield from _mapped_by_nobody()


def _attached_by_nobody() -> Iterator[Leftover]:
    """Yield segments of System V: every process of a server has the server's attached."""
    for segment in unattached_segments():
        if segment.age_s > _YOUNG_S and segment.is_postgres:
            yield Leftover(_KILLED, f"System V segment {segment.number}", segment.size_bytes, segment.remove)


def _mapped_by_nobody() -> Iterator[Leftover]:
    """Yield files that no process has mapped, and that are not in the list of segments that every server keeps mapped.
    Yield nothing if mappings cannot be read."""
    paths = [path for path in SHARED_MEMORY.glob("PostgreSQL.*") if is_own(path)]
    mapped = _mapped() if paths else None
    if mapped is None:
        return
    lists = b"".join(_content(path) for path in paths if str(path) in mapped)
    for path in paths:
        handle = int(path.suffix[1:]).to_bytes(4, "little") if path.suffix[1:].isdecimal() else None
        if handle is None or str(path) in mapped or handle in lists:
            continue
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG_S:
                yield Leftover(_KILLED, path, size_of(path), path.unlink)


def _mapped() -> set[str] | None:
    """Return the files in shared memory that processes of this user have mapped; None if a PostgreSQL does not show
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
