"""The files of a database in folders of a variant, outside its own; noted, so that a killed run’s are removed later."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from stallmark.engines.abilities import Folders
from stallmark.engines.postgres.embedded.copies import bytes_in, clear_outside, shares_blocks
from stallmark.engines.postgres.embedded.ownership import OUTSIDE_MARKER, claim_outside, end_leftover, is_of
from stallmark.errors import StallmarkError
from stallmark.format import size

LEAST_LOG_BYTES = 512 * 1024**2
"""The WAL segments that the server keeps at least (min_wal_size)."""

_NOTE = "placed.json"


def enter(database: Path, to: Folders) -> None:
    """Make the folders ours for the files of the database whose folder is `database`. Raise StallmarkError."""
    (database / _NOTE).write_text(json.dumps({"data": to.data, "log": to.log}) + "\n")
    for folder in _outside(to):
        claim_outside(folder, database)


def leave(database: Path) -> None:
    """Remove the files of the database that lie in folders of a variant, and end a server left behind in them.

    Do nothing where there are none.
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


def refuse_impossible(database: Path, to: Folders, size_bytes: int) -> None:
    """Raise StallmarkError where a database of `size_bytes` cannot lie in the folders."""
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
        there = bytes_in(folder) if is_of(folder, database) else 0
        free = shutil.disk_usage(nearest).free + there
        if needed > free and not (_on_one_file_system(nearest, database) and shares_blocks(database)):
            raise StallmarkError(
                f"{folder} has {size(free)} free, and the files there need {size(needed)}: free some space, or name "
                "another folder."
            )


def _on_one_file_system(a: Path, b: Path) -> bool:
    return os.stat(a).st_dev == os.stat(b).st_dev


def _outside(to: Folders) -> list[Path]:
    return [Path(folder) for folder in (to.data, to.log) if folder]
