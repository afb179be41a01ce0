"""Read and write the folder of a profile: its manifest, and the intervals of one that was imported."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic_core
from pydantic import ValidationError

from stallmark.errors import StallmarkError, as_reason, mistake
from stallmark.record.profile.intervals import TABLES, Intervals
from stallmark.record.profile.manifest import FORMAT, ProfileManifest

FILE = "profile.json"


def is_profile(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_profile(folder: Path) -> ProfileManifest:
    """Read the manifest of a profile's folder; raise StallmarkError, which names the file and the key at fault."""
    path = folder / FILE
    try:
        found = pydantic_core.from_json(path.read_bytes())
    except FileNotFoundError:
        raise StallmarkError(f"{folder} is not a profile: it has no {FILE}.") from None
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StallmarkError(f"{path} is damaged ({error}): restore it, or collect the profile anew.") from None
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is int and format > FORMAT:
        raise StallmarkError(
            f"{folder} has profile format {format} and this version reads format {FORMAT}: update Stallmark."
        )
    try:
        return ProfileManifest.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise StallmarkError(
            f"{path} is damaged ({key}: {as_reason(mistake(first))}): restore it, or collect the profile anew."
        ) from None


def write_profile(folder: Path, manifest: ProfileManifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    draft = folder / f"{FILE}.new"
    draft.write_text(manifest.model_dump_json(indent=2) + "\n")
    os.replace(draft, folder / FILE)


def write_imported(folder: Path, manifest: ProfileManifest, intervals: Intervals) -> None:
    """Write a new folder of an imported profile. It is one only when it is whole: the manifest comes last."""
    folder.mkdir(parents=True, exist_ok=False)
    for name, table in intervals.tables().items():
        pq.write_table(table.cast(TABLES[name]), folder / f"{name}.parquet", compression="zstd")
    write_profile(folder, manifest)


def read_imported(folder: Path) -> Intervals:
    """Return the intervals of an imported profile; a table that it lacks is empty."""
    return Intervals(**{name: _table(folder / f"{name}.parquet", schema) for name, schema in TABLES.items()})


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    if not path.exists():
        return schema.empty_table()
    try:
        return pq.read_table(path).cast(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = as_reason(str(error).splitlines()[0])
        raise StallmarkError(f"{path} is damaged ({said}): restore it, or import the profile anew.") from None
