"""Every I/O of the data files of the embedded server, on request: what its processes read and wrote, and where."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from stallmark.collectors.columns import COUNT, TEXT
from stallmark.collectors.postgres import PostgresCollector
from stallmark.collectors.sampler import Collector, Row
from stallmark.record.schema import column
from stallmark.record.writer import Columns

_FORKS = ("", "_fsm", "_vm")


class IoTrace(Collector):
    name = "io_trace"
    title = "Trace of I/Os"
    help = (
        "Every read, write and sync of the server's data files, as its processes asked for it and waited for it, on "
        "request (`observe: [io_trace]`). It takes some 50 bytes for each while the run lasts, and 10 afterwards. `t` "
        "is when they were taken out of the server's memory."
    )
    columns = pa.schema(
        [
            column("begun_us", COUNT, "when it began, since the run's start"),
            column("took_us", pa.int32(), "how long its process waited for it"),
            column("file", COUNT, "number of the file, as in io_files"),
            column("offset", COUNT, "where in the file", "bytes"),
            column("bytes", pa.int32(), "read or written", "bytes"),
            column("pid", pa.int32(), "number of the server's process"),
            column("op", pa.int8(), "0 read, 1 write, 2 sync"),
            column("lost", pa.int32(), "I/Os before this one that were not recorded: the buffer was full", "I/Os"),
        ]
    )

    def unavailable(self) -> str | None:
        return None if self.engine.tracing and self.engine.tracing.trace else "The server was not started traced."

    def open(self) -> None:
        # Losses since the last sample with an I/O to which they can be added.
        self._lost = 0
        self._trace.begin()

    def sample(self, now: float) -> Sequence[Row]:
        # The start of the run, by the clock of the trace.
        began_us = round((time.monotonic() - now) * 1e6)
        events, lost = self._trace.read()
        self._lost += lost
        if not len(events):
            return []
        losses = events["operation"] * 0
        losses[0], self._lost = self._lost, 0
        return Columns(
            {
                "begun_us": events["begun_us"].astype("i8") - began_us,
                **{name: events[name].astype("i8") for name in ("took_us", "file", "offset", "bytes")},
                "pid": events["process"],
                "op": events["operation"],
                "lost": losses,
            }
        )

    def close(self) -> None:
        self._trace.end()

    @property
    def _trace(self):
        assert self.engine.tracing and self.engine.tracing.trace
        return self.engine.tracing.trace


class IoFiles(PostgresCollector):
    name = "io_files"
    title = "Files of tables"
    help = "The files of all tables and indexes (pg_class), beside a trace of I/Os."
    interval_s = 60.0
    of_each_database = True
    named = ("relation", "table")
    columns = pa.schema(
        [
            column("file", COUNT, "number of the file (inode)"),
            column("relation", TEXT, "table or index, with its schema"),
            column("table", TEXT, "the table that it belongs to, with its schema"),
            column("kind", TEXT, "table, index, toast or sequence; map: of free space or visibility"),
            column("segment", pa.int32(), "of 1 GiB each, from 0"),
            column("size_bytes", COUNT, "size of the file"),
        ]
    )

    def unavailable(self) -> str | None:
        if not self.engine.directories():
            return "The files of a server that is named by URL are not seen here."
        return super().unavailable()

    def sample(self, now: float) -> Sequence[Row]:
        folder = self.engine.directories()["data"]
        return [file_row for row in super().sample(now) for file_row in _files(folder, row)]


def _files(folder: Path, row: Mapping[str, str]) -> Iterator[Row]:
    for fork in _FORKS:
        segment, path = 0, folder / f"{row['path']}{fork}"
        # A file that is dropped meanwhile is not needed.
        while path.exists():
            status = path.stat()
            yield {
                "file": status.st_ino,
                "relation": row["relation"],
                "table": row["table"],
                "kind": "map" if fork else row["kind"],
                "segment": segment,
                "size_bytes": status.st_size,
            }
            segment += 1
            path = folder / f"{row['path']}{fork}.{segment}"
