"""Write a run record: one folder per run, `manifest.json` and one Parquet file per table; for query runs also the
plans.

While the run lasts every table is an Arrow stream that grows by a batch at a time. A Parquet file cut short could not
be read at all. Closing the record turns the streams into Parquet; a record that was cut is read from its streams and
loses at most the last batch.
"""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import as_reason, named
from stallmark.record.manifest import Manifest
from stallmark.record.manifest_file import write_manifest
from stallmark.record.reader import read_stream
from stallmark.record.reserve import Reserve
from stallmark.record.schema import TABLES


class RecordWriter:
    """A writer that appends to a record. Tables of collectors are added with `add_table` before their first row."""

    def __init__(self, folder: Path, manifest: Manifest, tables: Mapping[str, pa.Schema] = TABLES):
        folder.mkdir(parents=True, exist_ok=False)
        self.folder = folder
        self.manifest = manifest
        self._streams: dict[str, tuple[pa.OSFile, pa.RecordBatchStreamWriter]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._rows: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._reserve = Reserve(folder)
        for name, schema in tables.items():
            self.add_table(name, schema)
        self.save_manifest()

    def add_table(self, name: str, schema: pa.Schema) -> None:
        sink = pa.OSFile(str(self.folder / f"{name}.arrows"), "wb")
        self._streams[name] = sink, pa.ipc.new_stream(sink, schema)
        self._schemas[name] = schema
        self._rows[name] = 0

    def append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to a table. After rows that could not be written no others are: behind a torn batch they would be
        lost.

        Raise OSError on the first failure.
        """
        if not rows or name in self._failed:
            return
        sink, stream = self._streams[name]
        batch = pa.RecordBatch.from_pylist(list(rows), schema=self._schemas[name])
        try:
            stream.write_batch(batch)
            sink.flush()
        except OSError as error:
            error = named(error, self.folder / f"{name}.arrows")
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
        """Return which table could not be written, and why; None as long as all could."""
        return next((f"table {name} could not be written whole ({why})" for name, why in self._failed.items()), None)

    def close(self, incomplete_because: str | None = None) -> str | None:
        """Turn the streams into Parquet. A stream that cannot be converted is kept, and the record is incomplete.

        Return why it is, which is written down first, in space that was kept for that; None where it is complete.
        """
        self._reserve.free()
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
        sink, stream = self._streams[name]
        try:
            if name not in self._failed:
                stream.close()
        finally:
            sink.close()
        source = self.folder / f"{name}.arrows"
        rows = to_parquet(source, self.folder / f"{name}.parquet", self._schemas[name])
        if rows != self._rows[name]:
            (self.folder / f"{name}.parquet").unlink()
            raise OSError(f"{self._rows[name]} rows were written, {rows} can be read")
        source.unlink()


def experiment_folder(out: Path, name: str) -> Path:
    """Return the folder in `out` for the runs of an experiment that begins now. It does not exist yet, even where the
    clock was set back or another experiment began in the same second."""
    begun = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}"
    return next(
        folder for number in count(1) if not (folder := out / (begun if number == 1 else f"{begun}-{number}")).exists()
    )


def folder_of(experiment: Path, number: int, variant: str) -> Path:
    """Return the folder of an experiment's run or probe by its number, from 1: "01-hard-disks"."""
    return experiment / f"{number:02d}-{'-'.join(re.findall(r'[a-z0-9]+', variant.lower())) or 'variant'}"


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Return Parquet's options: its default, dictionaries, but split bytes for histograms, which halves those."""
    split = [f"{name}.list.element" for name in schema.names if name.endswith("_gaps")]
    if not split:
        return {}
    lists = [name for name in schema.names if pa.types.is_list(schema.field(name).type)]
    others = [name if name not in lists else f"{name}.list.element" for name in schema.names]
    return {
        "use_dictionary": [name for name in others if name not in split],
        "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
    }


def to_parquet(source: Path, target: Path, schema: pa.Schema) -> int:
    """Convert a stream to Parquet and return the number of rows; leave the target whole or not at all."""
    draft = target.with_suffix(".parquet.new")
    count = 0
    try:
        with pq.ParquetWriter(draft, schema, compression="zstd", **_encodings(schema)) as writer:
            for rows in read_stream(source):
                if rows.num_rows:
                    writer.write_table(rows)
                count += rows.num_rows
        os.replace(draft, target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return count
