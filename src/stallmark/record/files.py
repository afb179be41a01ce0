"""The files of a record: none is followed out of its folder, each is replaced whole, and damage is found."""

import json
import os
import platform
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import psutil
import pydantic_core
from pydantic import BaseModel, ValidationError

from stallmark.errors import StallmarkError, as_reason, mistake, with_path

# The files of a record: none is followed out of its folder, each is replaced whole, and damage is found by checksums.
#
# A record may come from somebody else. So a link in its place is never read, nor written through.

PIECE_BYTES = 1 << 22
_HERE = f"{zlib.crc32(platform.node().encode()):08x}"
"""This machine, in the name of a draft: whether a process on another machine still writes cannot be checked here."""


def is_file(path: Path) -> bool:
    """Return True if a file exists. Raise StallmarkError for anything else, such as a link or a pipe."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    # Reading a pipe would block, and a link may lead out of the record.
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "not a file"
        raise StallmarkError(f"{path} is {kind}: a record holds its files itself. Put the file there, or leave it out.")
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
    draft.unlink(missing_ok=True)  # left by a killed process with the same number
    try:
        with new_file(draft) as file:
            yield file
        os.replace(draft, path)
    except BaseException as error:
        with suppress(OSError):  # the folder may be read-only by now
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and not error.filename:
            raise with_path(error, path) from error
        raise


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder that processes of this machine have left which are gone."""
    for draft in folder.glob(f"*.{_HERE}-*.new"):
        number = draft.stem.rpartition("-")[2]
        # A draft of a living process is still being written.
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            with suppress(OSError):  # the folder may be read-only by now
                draft.unlink()


def new_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Return a file that was not there, opened for writing. Raise FileExistsError, also for a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return open(os.open(path, flags, 0o666), "wb", buffering=buffering)  # type: ignore[return-value]


def refuse_unwritable(folder: Path, remedy: str) -> None:
    """Raise StallmarkError with the `remedy` if a folder, which need not be there yet, cannot take a file."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    reason = None if nearest.is_dir() else f"{nearest} is not a folder"
    try:
        # Only a new file shows whether there can be one: rights alone do not show that a file system is read-only.
        if not reason:
            tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        reason = error.strerror
    if reason:
        raise StallmarkError(f"Nothing can be written to {folder} ({reason}): {remedy}.")


def crc32(path: Path) -> int:
    """Return the checksum of a file. The file is read again only after it changed."""
    status = path.stat()
    return _crc32(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _crc32(path: Path, inode: int, size: int, changed_ns: int) -> int:
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            crc = zlib.crc32(piece, crc)
    return crc


# A folder of records held for one process: two that write into it would disturb each other.
@contextmanager
def exclusive_folder(folder: Path, *, taken: str) -> Iterator[None]:
    """Lock a folder for one process. The folder is created if needed, and removed at the end if empty. Raise
    StallmarkError with the message `taken` if another process has locked it."""
    if sys.platform == "win32":  # a folder cannot be locked there
        yield
        return
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # the file system has no locks
            try:
                # A held lock is an OSError as well, so it becomes a sentence before `suppress` can swallow it.
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StallmarkError(taken) from None
        yield
    finally:
        os.close(held)
        with suppress(OSError):  # it holds records, as it should
            folder.rmdir()


# Space on a record's disk that is kept for closing it: where the disk fills, the record itself still says so.

RESERVED_BYTES = 4 << 20
"""More than twice the largest manifest: the new one is written next to the old one."""


class Reserve:
    """Space that is taken in a folder until it is freed. The file has no name there: a kill leaves none behind."""

    def __init__(self, folder: Path):
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `free`)
        try:
            # The space must be taken: a file that is merely made longer takes none until it is written.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, RESERVED_BYTES)
            else:
                self._file.write(bytes(RESERVED_BYTES))
                self._file.flush()
        except OSError as error:
            self._file.close()
            raise with_path(error, folder) from None

    def free(self) -> None:
        """Give the space back. A second call does nothing."""
        self._file.close()


# A file of JSON that holds one part of a record as a model: read in sentences, written whole.
#
# Its last key is the checksum of all others, so that no damage gives other figures. The checksum covers values, not
# text: a file that was merely reformatted has the same. Files from before there were checksums have none.

CHECKSUM = "checksum"
Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, *, absent: str, remedy: str) -> Any:
    """Return the content. Raise StallmarkError if it cannot be read: with the message `absent` if the file does not
    exist; else naming the file, with the `remedy` for a damaged one."""
    try:
        content = pydantic_core.from_json(read(path), allow_inf_nan=False)
    except FileNotFoundError:
        raise StallmarkError(absent) from None
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StallmarkError(f"{path} is damaged ({error}): {remedy}.") from None
    # Files from before the checksums lack the key.
    if isinstance(content, dict) and CHECKSUM in content and content.pop(CHECKSUM) != checksum(content):
        raise StallmarkError(
            f"{path} is not as it was written (its checksum does not match): {remedy}. If you changed it on purpose, "
            f"remove its key “{CHECKSUM}”."
        )
    return content


def read_model(kind: type[Model], folder: Path, file: str, title: str, known: int, remedy: str) -> Model:
    """Return the model in the one file that makes a folder a `title`. Raise StallmarkError naming the file and the
    invalid key, or the format if it is not the `known` one."""
    return as_model(kind, read_format(folder, file, title, known, remedy), folder / file, remedy)


def read_format(folder: Path, file: str, title: str, known: int, remedy: str) -> dict[str, Any]:
    """Return the content of the one file that makes a folder a `title`. Raise StallmarkError if its format is not the
    `known` one."""
    path = folder / file
    content = read_json(path, absent=f"{folder} is not a {title}: it has no {file}.", remedy=remedy)
    format = content.get("format") if isinstance(content, dict) else None
    # Not isinstance, as a bool is an int too, and `true` is not a format.
    if type(format) is not int:
        raise StallmarkError(f"{path} is damaged (it has no format number): {remedy}.")
    if format != known:
        advice = "make it again" if format < known else "update Stallmark"
        raise StallmarkError(
            f"{folder} has {title} format {format} and this version reads format {known}: {advice}, or read it with "
            "the Stallmark that made it."
        )
    return content


def as_model(kind: type[Model], content: Any, path: Path, remedy: str) -> Model:
    """Return the content of a file as a model. Raise StallmarkError naming the file and the invalid key."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise StallmarkError(f"{path} is damaged ({key}: {as_reason(mistake(first))}): {remedy}.") from None


def write_whole(path: Path, model: BaseModel) -> None:
    """Replace a file whole or not at all: it may be read at any moment."""
    with replacing(path) as file:
        file.write(as_text(model).encode())


def as_text(model: BaseModel) -> str:
    """Return the content of such a file: the model, and the checksum of its values."""
    text = model.model_dump_json(indent=2)
    expected = checksum(pydantic_core.from_json(text))
    return f'{text[:-2]},\n  "{CHECKSUM}": "{expected}"\n}}\n'


def checksum(content: dict[str, Any]) -> str:
    """Return the CRC-32 of values, whatever their order and layout."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, separators=(',', ':')).encode()):08x}"
