"""The intervals of a profile, about 15 s each: what a server did, by class of file and as a whole.

Every count is what was counted from `start` to `end`, the time that was really seen; a rate is the count over it.
Intervals neither overlap nor reach across a gap. A null is not known, and never 0.
"""

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from stallmark.record.schema import column


class FileClass(StrEnum):
    """The class of a file. Where a profile is of one database, the data and logs of the others are `OTHER`; a profile
    of a whole server has none of them. `DEVICE`: the devices of an imported profile of which nobody said what they
    hold."""

    DATA = "data"
    LOG = "log"
    TEMPDB = "tempdb"
    OTHER = "other"
    DEVICE = "device"


_COUNT, _TEXT = pa.float64(), pa.string()
_TIME = pa.timestamp("us", tz="UTC")
TIMES = [
    column("start", _TIME, "begin of the time that was seen", "UTC"),
    column("end", _TIME, "end of the time that was seen", "UTC"),
]
FILE_IO = pa.schema(
    [
        *TIMES,
        column(
            "file_class", _TEXT, "data, log, tempdb, other or device; of an imported device, what it was said to hold"
        ),
        column("reads", _COUNT, "reads", "I/Os"),
        column("read_bytes", _COUNT, "bytes read"),
        column("read_stall_ms", _COUNT, "what these reads took, summed"),
        column("writes", _COUNT, "writes", "I/Os"),
        column("write_bytes", _COUNT, "bytes written"),
        column("write_stall_ms", _COUNT, "what these writes took, summed"),
        column("size_bytes", _COUNT, "size of the files at the end"),
    ]
)
SERVER = pa.schema(
    [
        *TIMES,
        column("log_flushes", _COUNT, "flushes of the log of transactions", "flushes"),
        column("log_bytes", _COUNT, "bytes of these flushes"),
        column("transactions", _COUNT, "transactions ended", "transactions"),
        column("batches", _COUNT, "batches received", "batches"),
        column("cpu_s", _COUNT, "CPU time of the server's process, summed over cores"),
        column("memory_target_bytes", _COUNT, "memory the server aims at, at the end"),
        column("database_pages_bytes", _COUNT, "pages of databases in the buffer pool, at the end"),
        column("stolen_bytes", _COUNT, "memory taken from the pool for other uses, at the end"),
        column("page_life_expectancy_s", _COUNT, "page life expectancy, at the end"),
        column("connections", _COUNT, "connections of users, at the end", "connections"),
        column("checkpoint_pages", _COUNT, "pages written by checkpoints", "pages"),
        column("background_pages", _COUNT, "pages written to make room in the pool", "pages"),
        column("pages_read", _COUNT, "pages read into the pool, read-ahead included", "pages"),
        column("readahead_pages", _COUNT, "pages read ahead of their use", "pages"),
        column("page_lookups", _COUNT, "pages looked up in the pool", "pages"),
    ]
)
WAITS = pa.schema(
    [
        column("wait_type", _TEXT, "the server's name of the wait"),
        column("wait_class", _TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
        column("waits", _COUNT, "waits that ended", "waits"),
        column("wait_ms", _COUNT, "what they took, summed; signal included"),
    ]
)
LONGEST_TRANSACTION = "longest_transaction_ms"
"""The counter of a PostgreSQL: the age of the oldest transaction that a session was busy with, in whole ms."""

TABLES: dict[str, pa.Schema] = {"file_io": FILE_IO, "server": SERVER}
"""The tables of an imported profile. No source of one tells what was waited for."""


@dataclass(frozen=True)
class Intervals:
    """The intervals of a profile in the order of time, and what was waited for in all of them together. Waits that hold
    nobody up are left out of `waits`. `longest_transaction_s`: the age of the oldest transaction that was seen at work;
    None of a server or a file that does not tell."""

    file_io: pa.Table
    server: pa.Table
    waits: pa.Table
    longest_transaction_s: float | None = None
