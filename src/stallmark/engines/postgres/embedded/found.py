"""Embedded databases as they lie on disk, found without starting a server."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stallmark.engines.postgres.embedded.copies import bytes_in
from stallmark.engines.postgres.embedded.ownership import MARKER, is_of
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import StallmarkError

_CONTENT = "content.json"


@dataclass(frozen=True)
class FoundDatabase:
    """A folder of ours. `holds`: workload, scale and seed of each database in it; empty where an older version did not
    note them.
    `in_use_by`: the process that has it now."""

    folder: Path
    wal_folder: Path | None
    holds: Sequence[Mapping[str, Any]]
    bytes: int
    used: datetime
    in_use_by: str | None

    @property
    def name(self) -> str:
        return self.folder.name

    def remove(self) -> None:
        """Remove it with its copy and its WAL. Raise StallmarkError when it is in use."""
        wal = self.wal_folder
        if wal and not is_of(wal, self.folder):
            raise StallmarkError(f"The WAL of {self.folder} lies in {wal}, which is not marked as its own: look at it.")
        EmbeddedServer(self.folder, wal).remove()


def find(*places: Path) -> Iterator[FoundDatabase]:
    """Yield the databases that lie in these folders, or are these folders, by name."""
    for place in places:
        within = sorted(place.iterdir()) if place.is_dir() else []
        for folder in [place, *within]:
            if (folder / MARKER).is_file():
                yield _found(folder)


def note_content(folder: Path, content: Mapping[str, Any]) -> None:
    """Note a database in the place of what was noted of the same workload: a folder may hold one of each."""
    others = [one for one in _holds(folder) if one.get("workload") != content["workload"]]
    (folder / _CONTENT).write_text(json.dumps([*others, content]) + "\n")


def _found(folder: Path) -> FoundDatabase:
    wal = folder / "data" / "pg_wal"
    elsewhere = wal.resolve() if wal.is_symlink() else None
    used = datetime.fromtimestamp((folder / MARKER).stat().st_mtime, UTC)
    size = bytes_in(folder) + (bytes_in(elsewhere) if elsewhere and is_of(elsewhere, folder) else 0)
    return FoundDatabase(folder, elsewhere, _holds(folder), size, used, _user(folder))


def _holds(folder: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads((folder / _CONTENT).read_text())
    except (OSError, ValueError):
        return []
    noted = content if isinstance(content, list) else [content]  # a version before noted the last database alone
    return [one for one in noted if isinstance(one, dict)]


def _user(folder: Path) -> str | None:
    """Return the process that has the lock of a database; None where none has it."""
    import fcntl  # not on Windows, where there is no embedded server

    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(lock, 32).decode() or "unknown"
    finally:
        os.close(lock)
    return None
