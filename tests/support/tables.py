"""Tables of records: of one that is written, put in place of another, and in memory.

put(folder, "waits", table.drop_columns("application"))
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.record.histogram import with_service
from stallmark.record.manifest import read_manifest
from stallmark.record.reader import Record
from stallmark.record.table_file import writing, written
from support.manifests import a_manifest, changed


def get(folder: Path, name: str) -> pa.Table:
    table = pq.read_table(folder / f"{name}.parquet")
    if "service_gaps" not in table.column_names:
        return table
    return pa.Table.from_batches(map(with_service, table.combine_chunks().to_batches()), table.schema)


def put(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / f"{name}.parquet"
    with writing(path, table.schema) as writer:
        writer.write_table(table)
    return changed(folder, tables=read_manifest(folder).tables | {name: written(path)})


class InMemory:
    """Stands for a record of these tables, read so many rows at a time, in turns."""

    loads = ()

    def __init__(self, tables: Mapping[str, pa.Table], at_once: Sequence[int] = (7,), **manifest: Any):
        self.tables, self.at_once, self.manifest = tables, at_once, a_manifest(**manifest)

    @property
    def whole(self) -> "InMemory":
        return self

    def schema(self, name: str) -> pa.Schema:
        return self.tables[name].schema

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if (table := self.tables.get(name)) is None:
            return
        rows = _columns_there(table, columns).combine_chunks()
        begin, sizes = 0, itertools.cycle(self.at_once)
        while begin < rows.num_rows:
            size = next(sizes)
            yield from rows.slice(begin, size).to_batches()
            begin += size


class With(Record):
    """A record with other rows in some of its tables."""

    def __init__(self, folder: Path, **tables: list[dict]):
        super().__init__(folder)
        self._tables = {name: pa.Table.from_pylist(rows) for name, rows in tables.items()}

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if (table := self._tables.get(name)) is None:
            return super().batches(name, columns)
        return iter(_columns_there(table, columns).to_batches())

    def schema(self, name: str) -> pa.Schema:
        return self._tables[name].schema if name in self._tables else super().schema(name)


def _columns_there(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    return table.select([name for name in columns if name in table.column_names])
