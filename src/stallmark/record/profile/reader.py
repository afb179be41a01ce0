"""Read the raw tables of a profile that was collected from a server, also while it is collected."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.files import is_file
from stallmark.record.manifest.part import TableFile
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.plausible import wrong_rows
from stallmark.record.profile.raw import RAW_TABLES
from stallmark.record.stream import read_stream
from stallmark.record.table_file import find, read_layout, read_pieces, readable

_ENCODED = pa.dictionary(pa.int32(), pa.string())
_REMEDY = "restore it, or collect the profile anew"


def read_raw(folder: Path, name: str) -> pa.Table:
    """Return a raw table with the parts of all sessions, in the order of their samples."""
    schema = RAW_TABLES[name]
    found = pa.Table.from_batches([batch.cast(schema) for batch in raw_batches(folder, name)], schema)
    _refuse(folder / name, wrong_rows(found))  # its first time and its last may be in two batches
    return found


def raw_batches(folder: Path, name: str) -> Iterator[pa.RecordBatch]:
    """Yield what `read_raw` returns, a batch of rows at a time. Strings may come dictionary-encoded."""
    encoded = pa.schema(
        [field.with_type(_ENCODED) if field.type == pa.string() else field for field in RAW_TABLES[name]]
    )
    noted = {stem: file for stem, file in read_profile(folder).tables.items() if stem.rpartition("-")[0] == name}
    there = {path.stem for kind in ("arrows", "sums", "parquet") for path in folder.glob(f"{name}-*.{kind}")}
    for stem in sorted(there | set(noted)):
        path = folder / f"{stem}.parquet"
        for part in _part(path, noted.get(stem)):
            with readable(path, remedy=_REMEDY):
                batch = part.cast(encoded)
                batch.validate(full=True)  # texts that are none would fail where they are read
            _refuse(folder / name, wrong_rows(batch))
            if batch.num_rows:
                yield batch


def _refuse(path: Path, why: str | None) -> None:
    if why:
        raise StallmarkError(f"{path} is damaged ({why}): {_REMEDY}.")


def _part(path: Path, noted: TableFile | None) -> Iterator[pa.RecordBatch]:
    """Yield what a session has in a table; of one without rows a batch without rows, for its columns."""
    if not find(path, noted, remedy=_REMEDY):
        stream = path.with_suffix(".arrows")
        try:
            with readable(stream, remedy=_REMEDY):
                parts = read_stream(stream)
        except FileNotFoundError:  # its session has ended meanwhile
            if not is_file(path):
                raise StallmarkError(f"{stream} is missing, and was there: {_REMEDY}.") from None
        else:
            for part in parts:
                yield from part.combine_chunks().to_batches()
            return
    layout = read_layout(path, remedy=_REMEDY)
    yield pa.RecordBatch.from_pylist([], layout.schema)
    yield from read_pieces(path, layout, layout.schema.names, remedy=_REMEDY)


def last_sample(folder: Path) -> int:
    """Return the number of the last sample that is whole; -1 where there is none."""
    samples = read_raw(folder, "samples")
    return samples.column("sample")[-1].as_py() if samples.num_rows else -1
