"""Read and write `manifest.json`, the one file that holds the manifest of a record."""

import os
from pathlib import Path

import pydantic_core
from pydantic import ValidationError

from stallmark.errors import StallmarkError, as_reason, mistake
from stallmark.record.manifest import FORMAT, Manifest

FILE = "manifest.json"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a record's folder; raise StallmarkError, which names the file and the key at fault."""
    path = folder / FILE
    try:
        found = pydantic_core.from_json(path.read_bytes())
    except FileNotFoundError:
        raise StallmarkError(f"{folder} is not a run record: it has no {FILE}.") from None
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StallmarkError(f"{path} is damaged ({error}): restore it, or leave this record out.") from None
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is not int:
        raise StallmarkError(f"{path} is damaged (it has no format number): restore it, or leave this record out.")
    if format != FORMAT:
        older = "run the experiment again" if format < FORMAT else "update Stallmark"
        raise StallmarkError(
            f"{folder} has record format {format} and this version reads format {FORMAT}: {older}, or read it with the "
            "Stallmark that made it."
        )
    try:
        return Manifest.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise StallmarkError(
            f"{path} is damaged ({key}: {as_reason(mistake(first))}): restore it, or leave this record out."
        ) from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    draft = folder / f"{FILE}.new"
    draft.write_text(manifest.model_dump_json(indent=2) + "\n")
    os.replace(draft, folder / FILE)
