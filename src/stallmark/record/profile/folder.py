"""Read and write the folder of a profile: its manifest, and the intervals of one that was imported."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.files import is_file
from stallmark.record.json_file import read_model, write_whole
from stallmark.record.profile.intervals import TABLES, Intervals, intervals_of_tables
from stallmark.record.profile.manifest import FORMAT, ProfileManifest
from stallmark.record.profile.plausible import wrong_rows
from stallmark.record.table_file import find, read_whole, writing, written

FILE = "profile.json"
_REMEDY = "restore it, or collect the profile anew"
_ANEW = "restore it, or import the profile anew"


def is_profile(folder: Path) -> bool:
    return is_file(folder / FILE)


def read_profile(folder: Path) -> ProfileManifest:
    """Read the manifest of a profile's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(ProfileManifest, folder, FILE, "profile", FORMAT, _REMEDY)


def write_profile(folder: Path, manifest: ProfileManifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)


def write_imported(folder: Path, manifest: ProfileManifest, tables: Mapping[str, pa.Table]) -> None:
    """Write a new folder of an imported profile. It is one only when it is whole: the manifest comes last."""
    folder.mkdir(parents=True, exist_ok=False)
    files = {}
    for name, schema in TABLES.items():
        path = folder / f"{name}.parquet"
        with writing(path, schema) as writer:
            writer.write_table(tables[name].cast(schema))
        files[name] = written(path)
    write_profile(folder, manifest.changed(tables=files))


def read_imported(folder: Path) -> Intervals:
    """Return the intervals of an imported profile; a table that it lacks is empty."""
    files, found = read_profile(folder).tables, {}
    for name, schema in TABLES.items():
        path = folder / f"{name}.parquet"
        there = find(path, files.get(name), remedy=_ANEW)
        found[name] = read_whole(path, schema, remedy=_ANEW) if there else schema.empty_table()
        if why := wrong_rows(found[name]):
            raise StallmarkError(f"{path} is damaged ({why}): {_ANEW}.")
    return intervals_of_tables(**found)
