"""Read and write `sizing.json`, the one file that holds the manifest of a sizing."""

from pathlib import Path

from stallmark.record.json_file import read_model, write_whole
from stallmark.record.sizing.manifest import FORMAT, Sizing

FILE = "sizing.json"
_REMEDY = "restore it, or run the sizing again"


def is_sizing(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_sizing(folder: Path) -> Sizing:
    """Read the manifest of a sizing's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(Sizing, folder, FILE, "sizing", FORMAT, _REMEDY)


def write_sizing(folder: Path, manifest: Sizing) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)
