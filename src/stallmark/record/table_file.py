"""The Parquet file of a closed table: written whole with a checksum for each page, and read when it is as written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.files import crc32, is_file, replacing
from stallmark.record.histogram import with_service
from stallmark.record.manifest.part import TableFile
from stallmark.record.schema import ROWS_AT_ONCE

_LEAVE_OUT = "restore it, or leave this record out"
_PIECE_BYTES = 1 << 22
_HISTOGRAMS = ("latency_gaps", "latency_counts", "service_gaps", "service_counts")


class Layout(NamedTuple):
    """The columns and the footer of a table."""

    schema: pa.Schema
    footer: pq.FileMetaData

    @property
    def values(self) -> int:
        """Return how many values the table has, each of a list counted."""
        groups = map(self.footer.row_group, range(self.footer.num_row_groups))
        return sum(group.column(place).num_values for group in groups for place in range(group.num_columns))

    @property
    def bytes(self) -> int:
        """Return how large the table is that is not compressed."""
        return sum(self.footer.row_group(group).total_byte_size for group in range(self.footer.num_row_groups))


@contextmanager
def writing(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a table that replaces the one in `path` when it is whole."""
    options = {"compression": "zstd", "write_page_checksum": True} | _encodings(schema)
    with replacing(path) as file, pq.ParquetWriter(file, schema, **options) as writer:
        yield writer


def written(path: Path) -> TableFile:
    """Return a file as it is to be noted in the manifest."""
    return TableFile(bytes=path.stat().st_size, crc32=crc32(path))


def find(path: Path, noted: TableFile | None, *, remedy: str = _LEAVE_OUT) -> bool:
    """Tell whether there is a table. Raise StallmarkError where it is not as it was `noted`, or is missing then."""
    if not is_file(path):
        if noted:
            raise StallmarkError(f"{path} is missing: {remedy}.")
        return False
    if noted:
        with readable(path, remedy=remedy):
            found = written(path)
        if found != noted:
            raise StallmarkError(f"{path} is damaged (it is not as it was written): {remedy}.")
    return True


@contextmanager
def readable(path: Path, *, remedy: str = _LEAVE_OUT) -> Iterator[None]:
    """Raise StallmarkError, which names the file, where a table cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        said = as_reason(str(error).splitlines()[0])
        raise StallmarkError(f"{path} is damaged ({said}): {remedy}.") from None


def read_whole(path: Path, schema: pa.Schema | None = None, *, remedy: str = _LEAVE_OUT) -> pa.Table:
    """Return a table, in the columns of `schema`."""
    with readable(path, remedy=remedy):
        found = pq.read_table(path, page_checksum_verification=True)
        return found.cast(schema) if schema else found


def read_layout(path: Path, *, remedy: str = _LEAVE_OUT) -> Layout:
    """Return the columns and the footer of a table."""
    with readable(path, remedy=remedy), pq.ParquetFile(path) as file:
        return Layout(file.schema_arrow, file.metadata)


def read_pieces(
    path: Path, layout: Layout, columns: Sequence[str], *, remedy: str = _LEAVE_OUT
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table, some 65,000 rows or 4 MiB at a time, strings as dictionaries. The row groups of a
    table are no larger than `read_stream` made them."""
    footer = layout.footer
    of_service = not {"service_gaps", "service_counts"}.isdisjoint(columns)
    read = list(dict.fromkeys([*columns, *(_HISTOGRAMS if of_service else ())]))
    strings = [field.name for field in layout.schema if pa.types.is_string(field.type)]
    # Arrow takes several times the memory of a batch to read its lists.
    at_once = max(1, min(ROWS_AT_ONCE, _PIECE_BYTES * footer.num_rows // max(1, layout.bytes)))
    # Not mapped: what was read of a mapped file counts as memory until all of it was. In one thread: each has memory of
    # its own, and two cores are used better by two records.
    options = {"read_dictionary": strings, "memory_map": False, "pre_buffer": False}
    with (
        readable(path, remedy=remedy),
        pq.ParquetFile(path, metadata=footer, page_checksum_verification=True, **options) as file,
    ):
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(at_once, row_groups=[group], columns=read, use_threads=False):
                yield with_service(batch).select(columns) if of_service else batch


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Return Parquet's options. Dictionaries are for what repeats: texts, and counts of histograms, mostly 1."""
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    # Of many entities in a sample most are as in the sample before: the compression sees that in whole values alone.
    several = "t" in schema.names and bool(texts - {"epoch", "collector"})
    dictionaries, encodings = [], {}
    for field in schema:
        name, kind = field.name, field.type
        if pa.types.is_list(kind):
            name, kind = f"{name}.list.element", kind.value_type
        if field.name.endswith("_gaps"):
            encodings[name] = "BYTE_STREAM_SPLIT"
        elif field.name.endswith("_counts") or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            dictionaries.append(name)
        elif several:
            encodings[name] = "PLAIN"
        else:
            encodings[name] = "DELTA_BINARY_PACKED" if pa.types.is_integer(kind) else "BYTE_STREAM_SPLIT"
    return {"use_dictionary": dictionaries, "column_encoding": encodings}
