"""Write a run record: one folder per run, `manifest.json` and one Parquet file per table; for query runs also the
plans.

While the run lasts every table is an Arrow stream that grows by a batch at a time. A Parquet file cut short could not
be read at all. Closing the record turns the streams into Parquet; a record that was cut is read from its streams and
loses at most the last batch.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError, as_reason, with_path
from stallmark.record.files import Reserve, sweep
from stallmark.record.histogram import without_service
from stallmark.record.manifest import Manifest, write_manifest
from stallmark.record.schema import TABLES
from stallmark.record.table_file import StreamWriter, read_stream, remove, writing, written

# Rows on their way into a table.


class Rows(Sequence[dict[str, Any]]):
    """Tuples whose column names are stored once. Indexing makes a new mapping for that row alone, which the caller may
    keep."""

    def __init__(self, names: Sequence[str], values: Sequence[Sequence[Any]]):
        self.names, self.values = names, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows(self.names, self.values[index])
        return dict(zip(self.names, self.values[index], strict=True))

    def with_constants(self, **constants: Any) -> "Rows":
        """Return the rows with columns before theirs that are the same in all."""
        values = tuple(constants.values())
        return Rows([*constants, *self.names], [(*values, *row) for row in self.values])


class Columns(Sequence[dict[str, Any]]):
    """Many rows, as an array for each column."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = arrays

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def __getitem__(self, index: Any) -> Any:
        selected = {name: values[index] for name, values in self.arrays.items()}
        return Columns(selected) if isinstance(index, slice) else selected

    def with_constants(self, **constants: Any) -> "Columns":
        """Return the rows with columns before theirs that are the same in all."""
        return Columns({name: np.full(len(self), constant) for name, constant in constants.items()} | dict(self.arrays))


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in the columns of a table. Values that a row lacks are missing."""
    # Arrays convert without a Python object for each value.
    if isinstance(rows, Columns):
        arrays = [pa.array(rows.arrays[field.name], from_pandas=False).cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    values = rows.values if isinstance(rows, Rows) and rows.names == schema.names else list(rows)
    return pa.RecordBatch.from_struct_array(pa.array(values, pa.struct(schema)))


# The tables and the manifest of a run that lasts.


class RecordWriter:
    """A writer that appends to a record. Tables of collectors are added with `add_table` before their first row."""

    def __init__(self, folder: Path, manifest: Manifest, tables: Mapping[str, pa.Schema] = TABLES):
        folder.mkdir(parents=True, exist_ok=False)
        self.folder = folder
        self.manifest = manifest
        self._streams: dict[str, StreamWriter] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._rows: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._reserve = Reserve(folder)
        # Before any table, because tables without a manifest are what is left of a record.
        self.save_manifest()
        for name, schema in tables.items():
            self.add_table(name, schema)

    def add_table(self, name: str, schema: pa.Schema) -> None:
        self._streams[name] = StreamWriter(self.folder / f"{name}.arrows", schema)
        self._schemas[name] = schema
        self._rows[name] = 0

    def append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to a table. After rows that could not be written no others are: behind a torn batch they would be
        lost.

        Raise OSError on the first failure.
        """
        # Silently, as the failure was raised once and ends the run.
        if not rows or name in self._failed:
            return
        batch = batch_of(rows, self._schemas[name])
        try:
            self._streams[name].write(batch)
        except OSError as error:
            error = with_path(error, self.folder / f"{name}.arrows")
            self._failed[name] = as_reason(error)
            raise error from None
        self._rows[name] += len(rows)

    def update(self, **fields: Any) -> None:
        """Replace fields of the manifest; `save_manifest` or `close` writes it."""
        self.manifest = self.manifest.changed(**fields)

    def note(self, *sentences: str) -> None:
        """Add notes for people to the manifest."""
        self.update(notes=(*self.manifest.notes, *sentences))

    def save_manifest(self) -> None:
        write_manifest(self.folder, self.manifest)

    @property
    def failed(self) -> str | None:
        """Return the table that could not be written, with the reason, or None if all could."""
        return next(
            (f"table {name} could not be written whole ({reason})" for name, reason in self._failed.items()), None
        )

    def close(self, incomplete_because: str | None = None) -> str | None:
        """Turn the streams into Parquet. A stream that cannot be converted is kept, and the record is incomplete.

        Return why it is, which is written down first, in space that was kept for that, or None if it is complete.
        """
        self._reserve.free()
        # Noted before the tables are closed, which may take long and may be killed.
        if because := incomplete_because or self.failed:
            self._end(because)
        for name in self._streams:
            try:
                self._close_table(name)
            except OSError as error:
                self._failed.setdefault(name, as_reason(error))
        self._streams.clear()
        return self._end(because or self.failed)

    def _end(self, because: str | None) -> str | None:
        """Write down that the record is at its end, and why. Return that, and what kept it from being written down."""
        self.update(status="incomplete" if because else "complete", incomplete_because=because)
        try:
            self.save_manifest()
        except OSError as error:
            return "; ".join(filter(None, (because, f"its record could not be closed ({as_reason(error)})")))
        return because

    def _close_table(self, name: str) -> None:
        self._streams[name].close()
        source, target = self.folder / f"{name}.arrows", self.folder / f"{name}.parquet"
        try:
            rows = to_parquet(source, target, self._schemas[name])
        except StallmarkError as damaged:
            raise OSError(as_reason(damaged)) from None
        # The stream holds fewer rows than were appended: the disk lost some, so the table must not look complete.
        if rows < self._rows[name]:
            target.unlink()
            raise OSError(f"{self._rows[name]} rows were written, {rows} can be read")
        self.update(tables=self.manifest.tables | {name: written(target)})
        # After each table, which takes 0.5 ms: a reader, and a kill, may come at any moment, and where the disk is
        # nearly full the next table needs the space of this stream.
        self.save_manifest()
        remove(source)


def experiment_folder(out: Path, name: str) -> Path:
    """Return the folder in `out` for the runs of an experiment that begins now. The folder does not exist yet, even if
    the clock was set back or another experiment began in the same second. Unfinished files of killed processes in the
    folders of earlier experiments are removed."""
    for earlier in out.glob("*/*/"):
        if not earlier.is_symlink():
            sweep(earlier)
    begun = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}"
    return next(
        folder for number in count(1) if not (folder := out / (begun if number == 1 else f"{begun}-{number}")).exists()
    )


def folder_of(experiment: Path, number: int, variant: str) -> Path:
    """Return the folder of an experiment's run or probe by its number, from 1: "01-hard-disks"."""
    return experiment / f"{number:02d}-{'-'.join(re.findall(r'[a-z0-9]+', variant.lower())) or 'variant'}"


def to_parquet(source: Path, target: Path, schema: pa.Schema) -> int:
    """Convert a stream to Parquet and return the number of rows; leave the target whole or not at all."""
    count = 0
    with writing(target, schema) as writer:
        for rows in read_stream(source):
            if rows.num_rows:
                writer.write_table(without_service(rows) if "service_gaps" in schema.names else rows)
            count += rows.num_rows
    return count
