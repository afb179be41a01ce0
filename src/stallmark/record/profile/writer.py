"""Write what is collected from a server into the folder of a profile, so that a kill loses no sample.

Every table of a session is an Arrow stream that grows by a batch with each sample. Closing the session turns the
streams into Parquet; those of a session that was killed are closed by the next one in the folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from stallmark.record.manifest.part import TableFile
from stallmark.record.profile.folder import write_profile
from stallmark.record.profile.manifest import ProfileManifest
from stallmark.record.profile.raw import GONE, RAW_TABLES
from stallmark.record.reserve import Reserve
from stallmark.record.rows import Rows, batch_of
from stallmark.record.stream import StreamWriter, remove
from stallmark.record.table_file import written
from stallmark.record.writer import to_parquet

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class ProfileWriter:
    """The writer of one session. `manifest` is what `profile.json` holds; `update` replaces it."""

    def __init__(self, folder: Path, manifest: ProfileManifest, session: int):
        """`session`: its number from 1, whose tables must not be there yet."""
        self.folder = folder
        self.manifest = manifest
        self._session = session
        self._streams: dict[str, StreamWriter] = {}
        self._stored: dict[str, dict[tuple, tuple]] = {}
        self._reserve = Reserve(folder)
        for name, schema in RAW_TABLES.items():
            self._streams[name] = StreamWriter(folder / f"{name}-{session:03d}.arrows", schema, _OPTIONS)

    def append(self, name: str, rows: Sequence[tuple]) -> None:
        """Add the rows of one sample to a table, as tuples in the order of the columns. Of a table with epochs only
        rows that differ from their last are stored."""
        if "epoch" in RAW_TABLES[name].names:
            rows = list(self._changed(name, rows))
        if rows:
            self._write(name, rows)

    def _changed(self, table: str, rows: Sequence[tuple]) -> Iterator[tuple]:
        """Yield the rows that are not as they were, and one without values for each that has gone. The columns between
        `sample` and `epoch` name a row."""
        at = RAW_TABLES[table].names.index("epoch")
        naming = slice(1, at)
        stored = self._stored.setdefault(table, {})
        gone = stored.keys() - {row[naming] for row in rows} if rows else ()
        for row in rows:
            if stored.get(row[naming]) != row[1:]:
                stored[row[naming]] = row[1:]
                yield row
        for name in sorted(gone):
            before = stored.pop(name)
            yield (rows[0][0], *before[: at - 1], GONE, *[None] * (len(before) - at))

    def _write(self, name: str, rows: Sequence[tuple]) -> None:
        schema = RAW_TABLES[name]
        self._streams[name].write(batch_of(Rows(schema.names, rows), schema))

    def update(self, **fields: Any) -> None:
        """Replace fields of the manifest, in the folder as well."""
        self.manifest = self.manifest.changed(**fields)
        write_profile(self.folder, self.manifest)

    def close(self) -> None:
        """Turn the streams of the session into Parquet; where the disk is full they stay as they are. The manifest
        notes the files when it is updated, for which space was kept."""
        self._reserve.free()
        for stream in self._streams.values():
            with suppress(OSError):
                stream.close()
        self.manifest = self.manifest.changed(tables=self.manifest.tables | close_streams(self.folder))


def close_streams(folder: Path) -> dict[str, TableFile]:
    """Turn all streams of ended sessions into Parquet, as far as they were written whole; return the files by name."""
    closed = {}
    for path in sorted(folder.glob("*.arrows")):
        name, target = path.stem.rpartition("-")[0], path.with_suffix(".parquet")
        if name in RAW_TABLES:
            with suppress(OSError):
                to_parquet(path, target, RAW_TABLES[name])
                closed[path.stem] = written(target)
                remove(path)
    return closed
