"""Read a record while its run goes on: only what was added since, and no more in memory than the last seconds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from stallmark.record.reader import Record


class GrowingStream:
    """A table of a run that goes on. `read` returns the batches that were written whole since the last time."""

    def __init__(self, path: Path):
        self._path = path
        self._schema: pa.Schema | None = None
        self._read = 0  # bytes

    def read(self) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        try:
            with pa.OSFile(str(self._path)) as file:
                file.seek(self._read)
                while file.tell() < file.size():
                    message = pa.ipc.read_message(file)
                    if self._schema is None:
                        self._schema = pa.ipc.read_schema(message)
                    else:
                        found.append(pa.ipc.read_record_batch(message, self._schema))
                    self._read = file.tell()
        except (EOFError, OSError, pa.ArrowInvalid):
            pass  # a batch is being written, or the run has closed its record
        return found


class RecentRecord(Record):
    """The rows of a record that were added lately, for readers of records."""

    def __init__(self, record: Record, added: Mapping[str, Sequence[pa.RecordBatch]]):
        self.folder, self.manifest, self.loads = record.folder, record.manifest, record.loads
        self._sources, self._layouts, self._small = {}, {}, {}
        self._tables = {name: pa.Table.from_batches(batches) for name, batches in added.items() if batches}

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if name in self._tables:
            table = self._tables[name]
            some = table.select([column for column in columns if column in table.column_names])
            yield from some.combine_chunks().to_batches()  # one: each costs its reader more than its rows do

    def table(self, name: str) -> pa.Table:
        return self._tables.get(name, pa.table({}))
