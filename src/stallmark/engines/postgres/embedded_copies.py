"""Copies of a data directory whose server is stopped, and files that are in folders outside it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stallmark.engines.abilities import Folders
from stallmark.engines.postgres.embedded_ownership import (
    OUTSIDE_MARKER,
    claim_outside,
    end_leftover,
    is_of,
    outside_contents,
)
from stallmark.errors import StallmarkError
from stallmark.format import size
from stallmark.processes import exit_clause, run_guarded

# Copies of a data directory whose server is stopped, and WAL that lies in a folder of its own.


WORTH_FLUSHING = 1024**2  # bytes of a file; a thousand small ones would take longer than they matter

# Where the file system can, a copy shares its blocks with the original until either is written to.
_CP = {"linux": ["cp", "-a", "--reflink=auto"], "darwin": ["cp", "-a", "-c"]}.get(sys.platform, ["cp", "-a"])


class Snapshot:
    """The copy that every restore starts from: `data`, its WAL inside, and `of`, which holds the label."""

    def __init__(self, folder: Path):
        self._folder = folder

    @property
    def label(self) -> str | None:
        """Return the label of the copy, or None."""
        label = self._folder / "of"
        return label.read_text() if label.exists() else None

    def keep(self, data: Path, name: str) -> None:
        """Copy `data` into the place of an earlier copy."""
        self.drop()
        _refuse_full_disk(data, self._folder.parent)
        with appearing(self._folder) as draft:
            draft.mkdir()
            _copy([data], draft / "data")
            wal = draft / "data" / "pg_wal"
            if wal.is_symlink():
                wal.unlink()
                wal.mkdir(mode=0o700)
                _copy(outside_contents(data / "pg_wal"), wal)
            (draft / "of").write_text(name)

    def restore(self, data: Path, wal: Path | None) -> None:
        """Put the copy in the place of `data`, and its WAL into `wal` if that is given.

        The old data goes first: few disks have room for three. An interrupted restore leaves no `data`, which shows
        that it must be repeated.
        """
        remove(data)
        with appearing(data) as draft:
            _copy([self._folder / "data"], draft)
            if wal:
                place_wal(draft, wal)

    def drop(self) -> None:
        remove(self._folder)


def draft_of(folder: Path) -> Path:
    """Return the place of a folder until it is complete."""
    return folder.with_name(f"{folder.name}.new")


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Yield the path of a draft that becomes `folder` when it is whole, and is removed when it does not."""
    draft = draft_of(folder)
    shutil.rmtree(draft, ignore_errors=True)
    try:
        yield draft
        _flush(draft)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def remove(folder: Path) -> None:
    """Remove a folder as a whole: a removal that is cut must not leave half of it under its name."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        shutil.rmtree(old)


def sweep(folder: Path) -> None:
    """Remove drafts and half-removed folders that a killed Stallmark left in the folder of its database."""
    for leftover in (*folder.glob("*.new"), *folder.glob("*.old")):
        shutil.rmtree(leftover)


def place_wal(data: Path, wal: Path) -> None:
    """Move the WAL out of `data` into `wal`, which is ours: what it holds is of a database that is gone.

    The folder itself stays, for it may be a mount point.
    """
    clear_outside(wal)
    inside = data / "pg_wal"
    for file in inside.iterdir():
        shutil.move(file, wal / file.name)
    inside.rmdir()
    inside.symlink_to(wal.resolve())


def clear_outside(folder: Path) -> None:
    """Remove what is in a folder outside that of its database, which is ours."""
    for old in outside_contents(folder):
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def shares_blocks(folder: Path) -> bool:
    """Return True if a copy made in `folder` uses no additional space; False if that cannot be tried."""
    if sys.platform != "linux":
        return False
    probe = folder / "probe.new"
    probe.mkdir()
    try:
        (probe / "original").write_bytes(bytes(4096))
        clone: list[str | Path] = ["cp", "--reflink=always", probe / "original", probe / "copy"]
        return subprocess.run(clone, capture_output=True, check=False).returncode == 0
    finally:
        shutil.rmtree(probe)


def _copy(sources: Iterable[Path], target: Path) -> None:
    done = run_guarded("copy", [*_CP, *map(str, sources), str(target)])
    if done.returncode:
        reason = [exit_clause(done.returncode), *done.stderr.strip().splitlines()][-1]
        raise StallmarkError(f"Copying to {target} failed: {reason}. Is the disk full?")


def _flush(folder: Path) -> None:
    """Have the bulk of a copy written now; it would be written while we measure. Not by a sync of everything, which
    would wait for others' data too."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.lstat(path).st_size >= WORTH_FLUSHING:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def _refuse_full_disk(data: Path, folder: Path) -> None:
    wal = data / "pg_wal"
    needed = bytes_in(data) + (bytes_in(wal.resolve()) if wal.is_symlink() else 0)
    free = shutil.disk_usage(folder).free
    if needed > free and not shares_blocks(folder):
        raise StallmarkError(
            f"The disk is too small: the copy that every run starts from needs {size(needed)}, "
            f"{size(free)} are free in {folder}. Free some space, place the data on another "
            "disk, or use `reset: continue`."
        )


def bytes_in(folder: Path) -> int:
    """Return the disk space that a folder takes."""
    return sum(
        os.lstat(os.path.join(place, name)).st_blocks * 512 for place, _, names in os.walk(folder) for name in names
    )


# The files of a database in folders of a variant, outside its own; noted, so that a killed run’s are removed later.

LEAST_LOG_BYTES = 512 * 1024**2
"""The WAL segments that the server keeps at least (min_wal_size)."""

_NOTE = "placed.json"


def enter_folders(database: Path, to: Folders) -> None:
    """Make the folders ours for the files of the database whose folder is `database`. Raise StallmarkError."""
    (database / _NOTE).write_text(json.dumps({"data": to.data, "log": to.log}) + "\n")
    for folder in _outside(to):
        claim_outside(folder, database)


def leave_folders(database: Path) -> None:
    """Remove the files of the database in folders of a variant, and end a server left behind in them.

    Do nothing without such folders.
    """
    try:
        noted = json.loads((database / _NOTE).read_text())
    except FileNotFoundError:
        return
    to = Folders(noted["data"], noted["log"])
    end_leftover(Path(to.data) / "data")
    for folder in _outside(to):
        if is_of(folder, database):
            clear_outside(folder)
            with suppress(FileNotFoundError):
                (folder / OUTSIDE_MARKER).unlink()
    (database / _NOTE).unlink()


def refuse_impossible_folders(database: Path, to: Folders, size_bytes: int) -> None:
    """Raise StallmarkError if a database of `size_bytes` cannot be in the folders."""
    if to.filegroups:
        raise StallmarkError("place.filegroups: PostgreSQL has no filegroups: write data and log alone.")
    needs = {Path(to.data): size_bytes}
    if to.log:
        needs[Path(to.log)] = LEAST_LOG_BYTES
    if len(needs) == 1 and to.log:
        raise StallmarkError(f"place: data and log both name {to.data}: leave log out to have it with the data.")
    for folder, needed in needs.items():
        if folder.resolve().is_relative_to(database.resolve()):
            raise StallmarkError(f"{folder} is in the database's own folder: name one outside it.")
        nearest = folder if folder.is_dir() else folder.parent
        copied_bytes = bytes_in(folder) if is_of(folder, database) else 0
        free = shutil.disk_usage(nearest).free + copied_bytes
        if needed > free and not (_on_one_file_system(nearest, database) and shares_blocks(database)):
            raise StallmarkError(
                f"{folder} has {size(free)} free, and the files there need {size(needed)}: free some space, or name "
                "another folder."
            )


def _on_one_file_system(a: Path, b: Path) -> bool:
    return os.stat(a).st_dev == os.stat(b).st_dev


def _outside(to: Folders) -> list[Path]:
    return [Path(folder) for folder in (to.data, to.log) if folder]
