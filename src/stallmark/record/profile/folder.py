"""Read and write the folder of a profile: its manifest, and the intervals of one that was imported."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.json_file import as_model, read_json, write_whole
from stallmark.record.profile.intervals import TABLES, Intervals
from stallmark.record.profile.manifest import FORMAT, ProfileManifest

FILE = "profile.json"
_REMEDY = "restore it, or collect the profile anew"


def is_profile(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_profile(folder: Path) -> ProfileManifest:
    """Read the manifest of a profile's folder; raise StallmarkError, which names the file and the key at fault."""
    path = folder / FILE
    found = read_json(path, absent=f"{folder} is not a profile: it has no {FILE}.", remedy=_REMEDY)
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is int and format > FORMAT:
        raise StallmarkError(
            f"{folder} has profile format {format} and this version reads format {FORMAT}: update Stallmark."
        )
    return as_model(ProfileManifest, found, path, remedy=_REMEDY)


def write_profile(folder: Path, manifest: ProfileManifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)


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
