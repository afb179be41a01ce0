"""Read and write `sizing.json`, the one file that holds the manifest of a sizing."""

from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.json_file import as_model, read_json, write_whole
from stallmark.record.sizing.manifest import FORMAT, Sizing

FILE = "sizing.json"
_REMEDY = "restore it, or run the sizing again"


def is_sizing(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_sizing(folder: Path) -> Sizing:
    """Read the manifest of a sizing's folder; raise StallmarkError, which names the file and the key at fault."""
    path = folder / FILE
    found = read_json(path, absent=f"{folder} is not a sizing: it has no {FILE}.", remedy=_REMEDY)
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is int and format > FORMAT:
        raise StallmarkError(
            f"{folder} has sizing format {format} and this version reads format {FORMAT}: update Stallmark."
        )
    return as_model(Sizing, found, path, remedy=_REMEDY)


def write_sizing(folder: Path, manifest: Sizing) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)
