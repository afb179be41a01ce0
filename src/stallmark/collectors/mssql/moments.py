"""Passing states of SQL Server: what is pending, what is runnable, what is in the pool at this moment.

Each is sampled in a thread of its own at a random instant, so that a view that takes long to read delays no counter.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa

from stallmark.collectors.base import COUNT, SERVER_TIME, TEXT, Row
from stallmark.collectors.mssql import MssqlCollector
from stallmark.engines.base import Engine
from stallmark.record.schema import column

# Four million pages; a sample walks through them all.
LARGEST_POOL_BYTES = 32 << 30
# A walk through the pool takes seconds.
LARGE_POOL_BYTES = 8 << 30
_GIB = 1 << 30


class PendingIO(MssqlCollector):
    name = "pending_io"
    title = "Pending I/O"
    help = (
        "I/Os under way at a random instant of every other second, by file handle (sys.dm_io_pending_io_requests); one "
        "row of 0 requests if no I/O is pending. With the system: the operating system has not answered yet; the "
        "others are done and wait for the server to notice. Microsoft calls the time `internal use only`."
    )
    interval_s = 2.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("handle", TEXT, "handle of the file, the same as in `server_io`"),
            column("type", TEXT, "disk or network"),
            column("with_system", pa.bool_(), "true: the operating system has not answered yet"),
            column("requests", pa.int32(), "under way at the instant", "I/Os"),
            column("longest_ms", COUNT, "longest so far"),
        ]
    )

    def sample(self, now: float) -> Sequence[Row]:
        rows = super().sample(now)
        return rows or [dict.fromkeys(self.columns.names) | {"requests": 0}]


class Schedulers(MssqlCollector):
    name = "schedulers"
    title = "Schedulers"
    help = (
        "Tasks that wait for a CPU or a worker, and I/Os not yet completed, over the schedulers that users "
        "run on, at a random instant of every other second (sys.dm_os_schedulers)."
    )
    interval_s = 2.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("schedulers", pa.int32(), "that users run on", "schedulers"),
            column("tasks", COUNT, "on them", "tasks"),
            column("runnable", COUNT, "waiting for a CPU", "tasks"),
            column("most_runnable", COUNT, "waiting for a CPU, on one scheduler", "tasks"),
            column("waiting_for_worker", COUNT, "waiting for a worker", "tasks"),
            column("pending_disk_ios", COUNT, "not yet completed", "I/Os"),
        ]
    )


class Cpu(MssqlCollector):
    name = "cpu"
    title = "CPU of the server's machine"
    help = (
        "The server's own note of every minute: per cent of the machine's CPU used by itself, and idle "
        "(RING_BUFFER_SCHEDULER_MONITOR, which Microsoft does not document as a view). On Linux before 2025 the "
        "idle time is noted as 0 and left empty here. Age: how long ago the note was made."
    )
    interval_s = 60.0
    polling = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("record", COUNT, "number of the server's note"),
            column("age_s", pa.float64(), "how long ago the note was made"),
            column("process_percent", pa.int32(), "of the machine's CPU, used by the server"),
            column("idle_percent", pa.int32(), "of the machine's CPU, idle; null where it is not known"),
            column("memory_percent", pa.int32(), "of the memory that the server wants, in memory"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._last = -1

    def sample(self, now: float) -> Sequence[Row]:
        notes = [_parse_record(row) for row in super().sample(now)]
        if None in notes:
            self.incomplete = "some of the server's notes on its CPU cannot be read"
        rows = sorted((note for note in notes if note), key=lambda row: row["record"])
        new = [row for row in rows if row["record"] > self._last]
        if new:
            self._last = new[-1]["record"]
        return new

    def finish(self) -> Sequence[Row]:
        # Includes the notes since the last turn, and those of a run below a minute.
        return self.sample_alone()

    def open(self) -> None:
        super().open()
        # A restarted server counts from 0 again.
        self._last = -1


class BufferPool(MssqlCollector):
    name = "buffer_pool"
    title = "Buffer pool"
    help = (
        "The contents of the buffer pool, by file and kind of page: pages, dirty pages, and the read time of pages "
        "from disk (sys.dm_os_buffer_descriptors). Once a minute, because it walks through the pool; above "
        f"{LARGE_POOL_BYTES / _GIB:.0f} GiB only at the end of each step."
    )
    interval_s = 60.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("database", TEXT, "name of the database"),
            column("file", pa.int32(), "number of its file"),
            column("page_type", TEXT, "kind of page"),
            column("pages", COUNT, "in the pool", "pages"),
            column("dirty", COUNT, "changed and not yet written", "pages"),
            column("in_extension", COUNT, "in the buffer pool extension", "pages"),
            column("read", COUNT, "whose read was timed", "pages"),
            column("read_us", COUNT, "total time of these reads"),
        ]
    )

    def refusal(self) -> str | None:
        size = self.engine.buffer_pool_bytes()
        if size is not None and size > LARGEST_POOL_BYTES:
            return (
                f"The server uses {size / _GIB:.0f} GiB of memory, and looking at every page of it would be a load "
                f"of its own: this is done up to {LARGEST_POOL_BYTES / _GIB:.0f} GiB."
            )
        return super().refusal()

    _is_large = False

    def open(self) -> None:
        super().open()
        self._is_large = (self.engine.buffer_pool_bytes() or 0) > LARGE_POOL_BYTES

    def sample(self, now: float) -> Sequence[Row]:
        if self._is_large and not any(0 <= end - now <= self.interval_s for end in self.step_ends):
            return []
        return super().sample(now)

    def finish(self) -> Sequence[Row]:
        with closing(self.connection):
            # The last state of the run.
            return self.connection.rows(self.sql)


def _parse_record(row: Row) -> Row | None:
    """Return the values of a record of the ring buffer, or None if it cannot be read.

    Where the platform's idle time is not known (0 on Linux, see sp_BlitzFirst issue 3710) it is None.
    """
    try:
        record = ElementTree.fromstring(row["record"] or "")
        number = int(record.attrib["id"])
        values = {
            name: int(record.findtext(f".//SystemHealth/{name}", "0"))
            for name in ("ProcessUtilization", "SystemIdle", "MemoryUtilization")
        }
    except (ElementTree.ParseError, KeyError, ValueError):
        return None
    # Without an age the record has no place on the run's clock.
    if row["age_ms"] is None:
        return None
    # SQL Server on Linux always writes 0, which would mean a busy host.
    unknown = row["platform"] == "Linux" and values["SystemIdle"] == 0
    return {
        "server_time": row["server_time"],
        "record": number,
        "age_s": row["age_ms"] / 1000,
        "process_percent": values["ProcessUtilization"],
        "idle_percent": None if unknown else values["SystemIdle"],
        "memory_percent": values["MemoryUtilization"],
    }
