"""Marks of the folders, sockets and servers that are ours. Nothing else is ever written to, removed or signalled."""

import json
import os
import signal
import uuid
from pathlib import Path

import psutil

from stallmark.errors import StallmarkError

MARKER = "stallmark-embedded.json"
DATABASE = "database"  # in a folder of sockets: the path of the database that they are of
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

    What such a folder holds may be removed; the number in both keeps anything else from being taken for it.
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
    """Tell whether a folder outside that of a database was made its own."""
    try:
        return (outside / OUTSIDE_MARKER).read_text() == (folder / OUTSIDE_MARKER).read_text()
    except OSError:
        return False


def outside_contents(outside: Path) -> list[Path]:
    """Return what is in such a folder, without our mark and that of a file system."""
    return [path for path in outside.iterdir() if path.name not in (OUTSIDE_MARKER, "lost+found")]


def private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StallmarkError(f"{folder} belongs to somebody else: remove it, or set TMPDIR to a folder of your own.")


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
        try:
            process.wait(within_s)
            return
        except psutil.TimeoutExpired:
            continue
    raise StallmarkError(f"The server an earlier run left behind (process {pid}) does not stop: end it by hand.")
