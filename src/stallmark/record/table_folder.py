"""Read the tables of a folder, closed or still growing: those of a run and of a profile."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.files import is_file
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import TableFile
from stallmark.record.profile import ProfileManifest
from stallmark.record.table_file import (
    LEAVE_OUT,
    Extent,
    Layout,
    find,
    read_layout,
    read_pieces,
    read_stream,
    sums_of,
    whole_extent,
)

SMALL_VALUES, SMALL_BYTES = 1 << 17, 1 << 20
"""A table of no more, uncompressed, stays in memory once it was read: the analysis asks for it column by column.
Encoded values take few bytes in the file and more in memory, texts take many in both."""
TABLE_FILES = (".parquet", ".arrows", ".sums")


@dataclass(frozen=True)
class TableSource:
    """The file that a table is read from, and as many of its `rows` as it had when it was first read."""

    path: Path
    rows: int | None = None
    extent: Extent | None = None
    """The extent of a stream; None of a closed table."""


class TableFolder(ABC):
    """The tables in a folder, closed or still growing."""

    manifest_file: ClassVar[str]
    """The name of the manifest."""
    manifest: Manifest | ProfileManifest
    remedy = LEAVE_OUT

    def __init__(self, folder: Path):
        self.folder = folder
        self._sources: dict[str, TableSource | None] = {}
        self._layouts: dict[Path, Layout] = {}
        self._small: dict[Path, list[pa.RecordBatch]] = {}

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of the tables."""

    @abstractmethod
    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table. Raise StallmarkError if its files are not as they were written."""

    @abstractmethod
    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a table, a batch of rows at a time.

        Strings may come dictionary-encoded; columns that the table does not have are left out. Raise StallmarkError for
        rows that no record can have.
        """

    @abstractmethod
    def raw_batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the same as `batches`, without checking values."""

    def rows(self, name: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of some columns of a table, which must be few: each is a dict."""
        for batch in self.batches(name, columns):
            yield from batch.to_pylist()

    def table(self, name: str) -> pa.Table:
        """Return a table; empty (of the known schema, if there is one) when it was never written. Raise StallmarkError
        for rows that no record can have."""
        schema = self.schema(name)
        batches = list(self.batches(name, schema.names))
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    @abstractmethod
    def _manifest_now(self) -> Manifest | ProfileManifest:
        """Return the manifest as it is by now."""

    def _is_closed(self, stem: str) -> bool:
        """Return True if a Parquet file of the name `stem` is whole where there is one."""
        return True

    def _is_noted(self, stem: str, tables: Mapping[str, TableFile]) -> bool:
        """Return True if a Parquet file belongs to a record with these noted tables."""
        return True

    def _refuse(self, name: str, reason: str | None) -> None:
        if reason:
            raise StallmarkError(f"{self.folder / name} is damaged ({reason}): {self.remedy}.")

    def _source(self, stem: str) -> TableSource | None:
        """Return the location of a table, or None if it does not exist.

        The location stays the same while a run is running: columns, read one by one, must have one length. Raise
        StallmarkError if a table is not as it was written.
        """
        if stem not in self._sources:
            self._sources[stem] = self._find(stem)
        return self._sources[stem]

    def _find(self, stem: str) -> TableSource | None:
        parquet, stream = self.folder / f"{stem}.parquet", self.folder / f"{stem}.arrows"
        tables = self.manifest.tables
        if self._is_closed(stem) and find(parquet, tables.get(stem), remedy=self.remedy):
            return TableSource(parquet)
        try:
            extent = whole_extent(stream)
            if is_file(stream):
                return TableSource(stream, extent.rows, extent)
        except FileNotFoundError:
            pass
        # The table was closed, maybe meanwhile.
        if is_file(parquet):
            tables = self._manifest_now().tables
            if self._is_noted(stem, tables) and find(parquet, tables.get(stem), remedy=self.remedy):
                return TableSource(parquet)
        # Checksums without a stream, or a name in the manifest without a file: the table was removed.
        if stem in tables or is_file(sums_of(stream)):
            if is_file(stream):  # the run began it after the first look
                return self._find(stem)
            raise StallmarkError(f"{stream} is missing, and was there: {self.remedy}.")
        return None

    def _written_schema(self, stem: str) -> pa.Schema | None:
        """Return the columns that a table was written with, or None if nothing was written."""
        if (stream := self._stream(stem)) is not None:
            return next((part.schema for part in stream), None)
        source = self._source(stem)
        return self._layout(source.path).schema if source else None

    def _rows(self, stem: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table as they were written, in those of the columns that it has."""
        if (stream := self._stream(stem)) is not None:
            for part in stream:
                selected = part.select([c for c in columns if c in part.column_names])
                yield from selected.combine_chunks().to_batches()
        elif source := self._source(stem):
            path = source.path
            layout = self._layout(path)
            # The analysis reads small tables column by column, several times: opening the file anew costs more than the
            # rows.
            if path not in self._small and layout.bytes <= SMALL_BYTES and layout.values <= SMALL_VALUES:
                self._small[path] = list(self._pieces(source, layout.schema.names))
            wanted = [c for c in columns if c in layout.schema.names]
            if path in self._small:
                yield from (batch.select(wanted) for batch in self._small[path])
            else:
                yield from self._pieces(source, wanted)

    def _stream(self, stem: str) -> Iterator[pa.Table] | None:
        """Return the rows of a table that is a stream, or None if it is not a stream, or was closed meanwhile."""
        source = self._source(stem)
        if source is None or source.extent is None:
            return None
        try:
            return read_stream(source.path, source.extent)
        except FileNotFoundError:  # the run has closed this table meanwhile
            if source.rows is None:
                raise StallmarkError(f"{self.folder} was closed while it was read: read it again.") from None
            self._sources[stem] = TableSource(source.path.with_suffix(".parquet"), source.rows)
            return None

    def _layout(self, path: Path) -> Layout:
        """Return schema and footer of a table. They are kept: the analysis reads a table column by column."""
        if path not in self._layouts:
            self._layouts[path] = read_layout(path, remedy=self.remedy)
        return self._layouts[path]

    def _pieces(self, source: TableSource, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a Parquet file, as many rows as are to be read."""
        layout = self._layout(source.path)
        left = layout.footer.num_rows if source.rows is None else source.rows
        for batch in read_pieces(source.path, layout, columns, remedy=self.remedy):
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)


def by_name(records: Sequence[TableFolder], parts: int = 1) -> dict[str, TableFolder]:
    """Return the records by the names of their folders. A name has as many parts of the path as make it different from
    all others, and no fewer than `parts`."""
    folders = [record.folder.resolve() for record in records]
    # Without the root, so that each name can be a path within a folder.
    paths = [[*filter(None, [folder.drive.strip(":\\")]), *folder.parts[1:]] for folder in folders]
    for length in range(parts, max(map(len, paths)) + 1):
        names = ["/".join(path[-length:]) for path in paths]
        if len(set(names)) == len(records):
            break
    return dict(zip(names, records, strict=True))
