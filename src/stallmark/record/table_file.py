"""The files of a table: an Arrow stream while it grows, Parquet once it is closed, both with checksums."""

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.files import PIECE_BYTES, crc32, is_file, new_file, read, replacing
from stallmark.record.histogram import with_service
from stallmark.record.manifest.course import TableFile
from stallmark.record.schema import BYTES_AT_ONCE, ROWS_AT_ONCE

# A table while it grows: an Arrow stream `<table>.arrows`, and beside it the checksums of its batches.
#
# `<table>.sums` has an entry for the schema and one for each batch, written after it: the place in the stream where it
# ends, the rows up to there, and the CRC-32 of all bytes and entries up to there. A batch without an entry was being
# written.

_PLACE = struct.Struct("<QQ")
_ENTRY = struct.Struct("<QQI")
Bytes: TypeAlias = bytes | pa.Buffer


class Extent(NamedTuple):
    """The part of a stream that was written completely. `rows` is None if no checksums were written."""

    bytes: int
    rows: int | None


class StreamWriter:
    """A new stream. After an OSError it must not be written any more: a reader stops at the torn batch."""

    def __init__(self, path: Path, schema: pa.Schema, options: pa.ipc.IpcWriteOptions | None = None):
        self._path, self._file, self._sums = path, new_file(path, buffering=0), new_file(sums_of(path), buffering=0)
        self._message: Callable[[pa.RecordBatch], Bytes] = pa.RecordBatch.serialize
        if options is not None:
            self._message = _Messages(schema, options).serialize
        self._bytes = self._crc = self.rows = 0
        self._add(schema.serialize())

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch; it is in the hands of the operating system when this returns. Raise OSError if it is not."""
        self._path.stat()  # a removed file takes rows as before, and nobody can read them
        self.rows += batch.num_rows
        self._add(self._message(batch))

    def close(self) -> None:
        self._file.close()
        self._sums.close()

    def _add(self, message: Bytes) -> None:
        _write_all(self._file, message)
        self._bytes += len(message)
        place = _PLACE.pack(self._bytes, self.rows)
        self._crc = zlib.crc32(place, zlib.crc32(message, self._crc))
        _write_all(self._sums, _ENTRY.pack(self._bytes, self.rows, self._crc))


class _Messages:
    """Batches as Arrow writes them with options, which `RecordBatch.serialize` does not take; it is several times as
    fast."""

    def __init__(self, schema: pa.Schema, options: pa.ipc.IpcWriteOptions):
        self._written = io.BytesIO()
        self._arrow = pa.ipc.new_stream(self._written, schema, options=options)
        # Arrow writes the schema with the first batch.
        self._begins = len(schema.serialize())

    def serialize(self, batch: pa.RecordBatch) -> bytes:
        self._arrow.write_batch(batch)
        message = self._written.getvalue()[self._begins :]
        self._begins = 0
        self._written.seek(0)
        self._written.truncate()
        return message


def _write_all(file: BinaryIO, data: Bytes) -> None:
    left = memoryview(data)
    while left:
        # An unbuffered file may take only a part of what it is given.
        left = left[file.write(left) :]


def sums_of(path: Path) -> Path:
    return path.with_suffix(".sums")


def remove(path: Path) -> None:
    """Remove a stream, then its checksums: checksums without a stream show that the stream is missing."""
    path.unlink()
    sums_of(path).unlink(missing_ok=True)


def whole_extent(path: Path) -> Extent:
    """Return the part of a stream that was written whole by now; one that has no checksums is not examined.

    Raise FileNotFoundError if it is not there, StallmarkError if it was changed after it was written.
    """
    if not is_file(path):
        raise FileNotFoundError(path)
    size = path.stat().st_size
    # Older streams have no checksums.
    try:
        sums = read(sums_of(path))
    except FileNotFoundError:
        return Extent(size, None)
    crc = begin = rows = 0
    with path.open("rb") as file:
        # The last entry may be half written.
        for end, up_to, noted in _ENTRY.iter_unpack(sums[: len(sums) - len(sums) % _ENTRY.size]):
            if end > size:  # it has grown meanwhile
                if end > path.stat().st_size:
                    raise _damaged(path, f"it ends after {size} bytes, and {end} were written")
                return Extent(begin, rows)
            crc = zlib.crc32(_PLACE.pack(end, up_to), _crc32(file, end - begin, crc))
            if crc != noted or end <= begin:
                raise _damaged(path, f"a checksum does not match between its bytes {begin} and {end}")
            begin, rows = end, up_to
    return _with_last(path, Extent(begin, rows), size)


def _with_last(path: Path, noted: Extent, size: int) -> Extent:
    """Return the extent with the one message behind it that has no checksum yet, where that is there whole."""
    if noted.bytes == size:
        return noted
    try:
        with pa.memory_map(str(path)) as file:
            schema = pa.ipc.read_schema(file) if noted.bytes else None
            file.seek(noted.bytes)
            message = pa.ipc.read_message(file)
            end = file.tell()
            rows = pa.ipc.read_record_batch(message, schema).num_rows if schema else 0
    except (EOFError, OSError, pa.ArrowException):
        return noted  # it was being written
    if end < size:
        raise _damaged(path, f"its checksums end after {noted.bytes} of its {size} bytes")
    return Extent(end, (noted.rows or 0) + rows)


def _crc32(file: BinaryIO, size: int, crc: int) -> int:
    """Return the checksum of a file up to the end of its next bytes, continuing from the checksum before them."""
    while size > 0 and (piece := file.read(min(size, PIECE_BYTES))):
        crc = zlib.crc32(piece, crc)
        size -= len(piece)
    return crc


def read_stream(path: Path, extent: Extent | None = None) -> Iterator[pa.Table]:
    """Return the rows of a stream as far as it was written whole, some 65,000 or 64 MiB at a time; at least one table,
    if its schema was written. It may be removed meanwhile.

    Raise FileNotFoundError if it is not there, StallmarkError if it was changed after it was written.
    """
    extent = extent or whole_extent(path)
    return _tables(path, pa.OSFile(str(path)), extent) if extent.bytes else iter(())


def _tables(path: Path, file: pa.OSFile, extent: Extent) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        # Not mapped: what was read of a mapped file counts as memory until all of it was.
        with file, pa.ipc.open_stream(file) as reader:
            yield reader.schema.empty_table()
            while file.tell() < extent.bytes and (batch := next(reader, None)) is not None:
                waiting.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                    yield pa.Table.from_batches(waiting)
                    waiting, rows, size = [], 0, 0
    except (pa.ArrowException, OSError) as error:
        if extent.rows is not None:
            raise _damaged(path, str(error).splitlines()[0]) from None
        # A stream without checksums was cut at its end: the rows read so far are kept.
    if waiting:
        yield pa.Table.from_batches(waiting)


def _damaged(path: Path, reason: str) -> StallmarkError:
    return StallmarkError(
        f"{path} is damaged ({reason}): restore it, or leave this record out. To read what is left of it unchecked, "
        f"remove {sums_of(path).name}."
    )


# The Parquet file of a closed table: written whole with a checksum for each page, and read when it is as written.

LEAVE_OUT = "restore it, or leave this record out"
_LISTS_PIECE_BYTES = 3 << 19
_HISTOGRAMS = ("latency_gaps", "latency_counts", "service_gaps", "service_counts")


class Layout(NamedTuple):
    """The columns and the footer of a table."""

    schema: pa.Schema
    footer: pq.FileMetaData

    @property
    def values(self) -> int:
        """Return the number of values in the table, counting each value of a list."""
        groups = map(self.footer.row_group, range(self.footer.num_row_groups))
        return sum(group.column(place).num_values for group in groups for place in range(group.num_columns))

    @property
    def bytes(self) -> int:
        """Return the uncompressed size of the table."""
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


def find(path: Path, noted: TableFile | None, *, remedy: str) -> bool:
    """Return True if a table exists. Raise StallmarkError if it differs from the state `noted` for it, or if a noted
    table is missing."""
    if not is_file(path):
        if noted:
            raise StallmarkError(f"{path} is missing: {remedy}.")
        return False
    if noted:
        with readable(path, remedy=remedy):
            columns_written = written(path)
        if columns_written != noted:
            raise StallmarkError(f"{path} is damaged (it is not as it was written): {remedy}.")
    return True


@contextmanager
def readable(path: Path, *, remedy: str = LEAVE_OUT) -> Iterator[None]:
    """Raise StallmarkError naming the file if a table cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        message = as_reason(str(error).splitlines()[0])
        raise StallmarkError(f"{path} is damaged ({message}): {remedy}.") from None


def read_layout(path: Path, *, remedy: str) -> Layout:
    """Return the columns and the footer of a table."""
    with readable(path, remedy=remedy), pq.ParquetFile(path) as file:
        return Layout(file.schema_arrow, file.metadata)


def read_pieces(path: Path, layout: Layout, columns: Sequence[str], *, remedy: str) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table, some 65,000 rows, 4 MiB, or 1.5 MiB with lists at a time, strings as dictionaries.
    The row groups of a table are no larger than `read_stream` made them."""
    footer = layout.footer
    of_service = not {"service_gaps", "service_counts"}.isdisjoint(columns)
    read = list(dict.fromkeys([*columns, *(_HISTOGRAMS if of_service else ())]))
    strings = [field.name for field in layout.schema if pa.types.is_string(field.type)]
    # Lists take many times their size in the file, and their readers more.
    piece_bytes = _LISTS_PIECE_BYTES if any(pa.types.is_list(field.type) for field in layout.schema) else PIECE_BYTES
    at_once = max(1, min(ROWS_AT_ONCE, piece_bytes * footer.num_rows // max(1, layout.bytes)))
    # Not mapped: what was read of a mapped file counts as memory until all of it was. In one thread: each has
    # memory of its own, and two cores are used better by two records.
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
    # Where a sample has several rows, the value before is another entity's, and their difference is large.
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
        else:
            differs = pa.types.is_integer(kind) and not several
            encodings[name] = "DELTA_BINARY_PACKED" if differs else "BYTE_STREAM_SPLIT"
    return {"use_dictionary": dictionaries, "column_encoding": encodings}
