"""Read and write `manifest.json`, the one file that holds the manifest of a record."""

from pathlib import Path

from stallmark.errors import StallmarkError, named
from stallmark.record.json_file import as_model, as_text, read_json, write_whole
from stallmark.record.manifest import FORMAT, Manifest

FILE = "manifest.json"
_REMEDY = "restore it, or leave this record out"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a record's folder; raise StallmarkError, which names the file and the key at fault."""
    path = folder / FILE
    found = read_json(path, absent=f"{folder} is not a run record: it has no {FILE}.", remedy=_REMEDY)
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is not int:
        raise StallmarkError(f"{path} is damaged (it has no format number): {_REMEDY}.")
    if format != FORMAT:
        older = "run the experiment again" if format < FORMAT else "update Stallmark"
        raise StallmarkError(
            f"{folder} has record format {format} and this version reads format {FORMAT}: {older}, or read it with the "
            "Stallmark that made it."
        )
    return as_model(Manifest, found, path, remedy=_REMEDY)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment. In a folder that takes no new file any
    more, its file is written over.

    Raise OSError, which names the file.
    """
    path = folder / FILE
    try:
        try:
            write_whole(path, manifest)
        except PermissionError:
            with path.open("r+") as file:
                file.write(as_text(manifest))
                file.truncate()
    except OSError as error:
        raise named(error, path) from None
