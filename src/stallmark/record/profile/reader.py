"""Read the raw tables of a profile that was collected from a server, also while it is collected."""

from pathlib import Path

import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.files import is_file
from stallmark.record.manifest.part import TableFile
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.plausible import wrong_rows
from stallmark.record.profile.raw import RAW_TABLES
from stallmark.record.stream import read_stream
from stallmark.record.table_file import find, read_whole, readable

_REMEDY = "restore it, or collect the profile anew"


def read_raw(folder: Path, name: str) -> pa.Table:
    """Return a raw table with the parts of all sessions, in the order of their samples."""
    schema = RAW_TABLES[name]
    noted = {stem: file for stem, file in read_profile(folder).tables.items() if stem.rpartition("-")[0] == name}
    there = {path.stem for kind in ("arrows", "sums", "parquet") for path in folder.glob(f"{name}-*.{kind}")}
    parts = [schema.empty_table()]
    for stem in sorted(there | set(noted)):
        parts += _part(folder / f"{stem}.parquet", schema, noted.get(stem))
    found = pa.concat_tables(parts)
    if why := wrong_rows(found):
        raise StallmarkError(f"{folder / name} is damaged ({why}): {_REMEDY}.")
    return found


def _part(path: Path, schema: pa.Schema, noted: TableFile | None) -> list[pa.Table]:
    if not find(path, noted, remedy=_REMEDY):
        stream = path.with_suffix(".arrows")
        try:
            with readable(stream, remedy=_REMEDY):
                return [part.cast(schema) for part in read_stream(stream)]
        except FileNotFoundError:  # its session has ended meanwhile
            if not is_file(path):
                raise StallmarkError(f"{stream} is missing, and was there: {_REMEDY}.") from None
    return [read_whole(path, schema, remedy=_REMEDY)]


def last_sample(folder: Path) -> int:
    """Return the number of the last sample that is whole; -1 where there is none."""
    samples = read_raw(folder, "samples")
    return samples.column("sample")[-1].as_py() if samples.num_rows else -1
