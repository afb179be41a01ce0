"""The tables of a profile that was collected from a server: cumulative counters as the server gave them.

Every table is in parts, one for each session of collecting: `samples-001`, `samples-002` and so on. A row of a counter
is stored when it differs from the one before it in its session: where a sample has none, nothing has changed. What has
gone has one row more, of the epoch `GONE`.
"""

from typing import Final

import pyarrow as pa

from stallmark.record.schema import column

_COUNT, _TEXT = pa.int64(), pa.string()
GONE: Final = "gone"
"""The epoch of what a sample had and the next one has not, as the files of a database that was dropped."""
SAMPLE = column("sample", pa.int32(), "number of the sample, over all sessions")
EPOCH = column("epoch", _TEXT, "changes where the counters began anew; no difference is taken across a change")
SAMPLES: Final = pa.schema(
    [
        SAMPLE,
        column("session", pa.int16(), "number of the session in the manifest, from 1"),
        column("clock", pa.float64(), "clock of the machine of Stallmark in the middle of the call, since 1970", "s"),
        column("monotonic_s", pa.float64(), "the same by a clock that nobody sets; comparable within a session"),
        column("server_clock", pa.float64(), "the server's clock, since 1970", "s"),
        column("took_s", pa.float32(), "length of the call"),
        column("start", _TEXT, "start of the server, as it tells it"),
        column("server", pa.int16(), "number of the server in the manifest, from 1"),
        column("own_cpu_ms", _COUNT, "CPU time of our own session on the server so far; null where it is not told"),
    ]
)
FILE_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("entity", _TEXT, "the file; with --anonymous by numbers alone"),
        column(
            "database", _TEXT, "its database; with --anonymous by its number; null where files are of all databases"
        ),
        column("file_class", _TEXT, "data, log, tempdb or other"),
        EPOCH,
        column("reads", _COUNT, "reads so far", "I/Os"),
        column("read_bytes", _COUNT, "bytes read so far"),
        column("read_stall_ms", pa.float64(), "what these reads took, summed"),
        column("writes", _COUNT, "writes so far", "I/Os"),
        column("write_bytes", _COUNT, "bytes written so far"),
        column("write_stall_ms", pa.float64(), "what these writes took, summed"),
        column("size_bytes", _COUNT, "size of the file now"),
    ]
)
SERVER_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("counter", _TEXT, "by the name of its column in the intervals, or with the unit it is counted in"),
        EPOCH,
        column("value", _COUNT, "so far, or now for what is a state"),
    ]
)
WAIT_COUNTERS: Final = pa.schema(
    [
        SAMPLE,
        column("wait_type", _TEXT, "the server's name of the wait"),
        column("wait_class", _TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
        EPOCH,
        column("waits", _COUNT, "waits so far", "waits"),
        column("wait_ms", _COUNT, "time of these waits so far, signal included"),
        column("signal_ms", _COUNT, "of it, waiting for a CPU after the wait was over"),
    ]
)
SESSIONS_SEEN: Final = pa.schema(
    [
        SAMPLE,
        column("wait_type", _TEXT, "the server's name of what sessions waited for; CPU where they waited for nothing"),
        column("wait_class", _TEXT, "class that Stallmark counts it to: io, wal, lock, cpu and so on"),
        column("users", pa.int32(), "sessions at work that were met so at the moment of the sample", "users"),
    ]
)
"""Where the server keeps no totals of waits (PostgreSQL): a passing state, stored with every sample."""
RAW_TABLES: Final[dict[str, pa.Schema]] = {
    "samples": SAMPLES,
    "file_counters": FILE_COUNTERS,
    "server_counters": SERVER_COUNTERS,
    "wait_counters": WAIT_COUNTERS,
    "sessions_seen": SESSIONS_SEEN,
}
