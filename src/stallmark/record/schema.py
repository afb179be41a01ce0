"""The tables of a run record: their columns, with units.

All times in tables are seconds since the start of the run on the monotonic clock (`t`, float) or the whole second they
fall in (`second`). The manifest gives that start in UTC.
"""

import pyarrow as pa

_UNITS = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "second": "whole seconds",
    "seconds": "seconds",
    "bytes": "bytes",
    "kib": "KiB",
    "percent": "percent",
    "t": "seconds",
    "time": "seconds since 1970",
    "iops": "per second",
}
"""By the ending of a column's name; a column without one is a count, a name or a text."""


def unit_of(field: pa.Field) -> str | None:
    """Return the unit of a column, which its name ends with; None for counts and texts."""
    if pa.types.is_string(field.type):
        return None
    return "per second" if field.name.endswith("_per_s") else _UNITS.get(field.name.rpartition("_")[2])


def column(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"meaning": meaning})


def with_units(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the unit of each column in its metadata, as a record's files have it."""
    return pa.schema([_with_unit(field) for field in schema])


def _with_unit(field: pa.Field) -> pa.Field:
    unit = unit_of(field)
    return field.with_metadata({**(field.metadata or {}), "unit": unit}) if unit else field


ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 16, 1 << 26  # a day's table does not fit in memory

TRANSACTIONS = pa.schema(
    [
        column("second", pa.int32(), "in which they ended"),
        column("transaction", pa.string(), "its type"),
        column("committed", pa.int32(), "transactions that committed"),
        column("rolled_back", pa.int32(), "intended, part of the workload"),
        column("failed", pa.int32(), "given up after the bounded retries"),
        column("retries", pa.int32(), "calls made again after an error of the moment"),
        column("latency_us", pa.int64(), "sum over committed and rolled back, scheduled to ended, retries included"),
        column("service_us", pa.int64(), "sum, started to ended"),
        column("latency_gaps", pa.list_(pa.int16()), "histogram of µs: steps from one used bucket to the next"),
        column("latency_counts", pa.list_(pa.int32()), "its counts, bucket by bucket"),
        column("service_gaps", pa.list_(pa.int16()), "the same of the service time"),
        column("service_counts", pa.list_(pa.int32()), "its counts"),
    ]
)
USERS = pa.schema(
    [
        column("second", pa.int32(), "of the run"),
        column("machine", pa.int16(), "as in the manifest's load_machines; 0: the one that Stallmark ran on"),
        column("executor", pa.int16(), "no number is on two machines"),
        column("running", pa.float32(), "users alive, averaged over the second"),
        column("busy_us", pa.int64(), "sum of time inside calls"),
        column("think_us", pa.int64(), "sum of intended think and pacing time that passed"),
        column("lag_us", pa.int64(), "sum of started − scheduled where a user was free to start: the driver's delay"),
        column("lag_max_us", pa.int64(), "the longest of them"),
        column("cpu_us", pa.int64(), "CPU time of the executor process"),
    ]
)
DEFERRED_QUEUE = pa.schema(
    [
        column("second", pa.int32(), "of the run"),
        column("machine", pa.int16(), "as in `users`"),
        column("executor", pa.int16(), "as in `users`"),
        column("taken", pa.int32(), "transactions that no virtual user starts, ended in this second"),
        column("late_us", pa.int64(), "sum of started − due"),
        column("late_max_us", pa.int64(), "the longest of them"),
        column("waiting", pa.int32(), "most that were due at once and not yet taken by a background session"),
    ]
)
ERRORS = pa.schema(
    [
        column("second", pa.int32(), "of the run"),
        column("transaction", pa.string(), "its type"),
        column("error_class", pa.string(), "deadlock, timeout, connection and the like"),
        column("code", pa.string(), "the server's number or SQLSTATE"),
        column("attempts", pa.int32(), "failed calls of this class and code"),
        column("given_up", pa.int32(), "of these, transactions that were not tried again"),
        column("message", pa.string(), "the first in this second"),
    ]
)
TRANSACTION_IO = pa.schema(
    [
        column("second", pa.int32(), "in which they ended"),
        column("transaction", pa.string(), "its type"),
        column("sampled", pa.int32(), "of those not given up, how many were sampled; the other columns are their sums"),
        column("reads", pa.int64(), "I/Os of the operating system: one may bring several blocks"),
        column("read_bytes", pa.int64(), "brought by these reads"),
        column("hits", pa.int64(), "blocks that were in the pool"),
        column("read_us", pa.int64(), "time in these reads; null where the server does not take it"),
        column("writes", pa.int64(), "pages written out to make room, without the log"),
    ]
)
QUERIES = pa.schema(
    [
        column("phase", pa.string(), "'power', 'throughput' or 'each'"),
        column("stream", pa.int16(), "0 in a power run; in a throughput run from 1, the refresh stream comes last"),
        column("position", pa.int16(), "within the stream, from 1"),
        column("query", pa.string(), "'Q9', 'RF1'"),
        column("dop", pa.int16(), "asked for; null: as the server is set"),
        column("started_s", pa.float64(), "of the run"),
        column("seconds", pa.float64(), "sent to answered whole"),
        column("rows", pa.int64(), "of the answer"),
        column("logical_reads", pa.int64(), "pages, in the pool or not"),
        column("physical_reads", pa.int64(), "pages"),
        column("read_bytes", pa.int64(), "from storage"),
        column("spill_bytes", pa.int64(), "written to temporary files"),
        column("grant_kib", pa.int64(), "memory the server set aside"),
        column("cpu_ms", pa.float64(), "of all its workers"),
        column("actual_dop", pa.int16(), "as executed"),
        column("wait_ms", pa.string(), "JSON: milliseconds by the server's name of the wait, summed over its workers"),
        column("plan_hash", pa.string(), "with the query the name of a file in `plans`"),
        column("error_class", pa.string(), "null: it ended well"),
        column("error", pa.string(), "the server's words"),
    ]
)
"""The queries of query runs; a value that the server does not report is null."""
MAINTENANCE = pa.schema(
    [
        column("kind", pa.string(), "backup, check or rebuild"),
        column("started_s", pa.float64(), "of the run"),
        column("seconds", pa.float64(), "how long it took"),
        column("finished", pa.bool_(), "false: it was given up at the end, or failed"),
        column("error", pa.string(), "the server's words"),
    ]
)
"""Maintenance beside the users, one row for each time; the table is there where a variant asks for it."""
PROBE_STEPS = pa.schema(
    [
        column("pattern", pa.string(), "'8k-random-read'"),
        column("operation", pa.string(), "read or write"),
        column("order", pa.string(), "random or sequential"),
        column("block_bytes", pa.int64(), "of one I/O"),
        column("outstanding", pa.int32(), "I/Os under way at once"),
        column("seconds", pa.float64(), "how long it took"),
        column("ios", pa.int64(), "I/Os done"),
        column("bytes", pa.int64(), "moved"),
        column("mean_ms", pa.float64(), "from issuing an I/O to its end"),
    ]
)
PROBE_HISTOGRAM = pa.schema(
    [
        column("pattern", pa.string(), "as in `probe_steps`"),
        column("outstanding", pa.int32(), "I/Os under way at once"),
        column("ms", pa.float64(), "two significant digits"),
        column("ios", pa.int64(), "I/Os done"),
    ]
)
PROBE_WINDOWS = pa.schema(
    [
        column("pattern", pa.string(), "as in `probe_steps`"),
        column("outstanding", pa.int32(), "I/Os under way at once"),
        column("t", pa.float64(), "end of the window, in seconds since the step began"),
        column("iops", pa.float64(), "I/Os per second in the window"),
    ]
)
SAMPLED = [
    column("t", pa.float64(), "middle of the call that read the row"),
    column("took_s", pa.float32(), "length of that call"),
]
"""The first columns of every collector's table."""
COLLECTOR_COST = pa.schema(
    [
        column("t", pa.float64(), "when it sampled"),
        column("collector", pa.string(), "its name"),
        column("wall_us", pa.int64(), "how long a sample took"),
        column("cpu_us", pa.int64(), "of it, on a CPU of the driver's machine"),
    ]
)
TABLES: dict[str, pa.Schema] = {
    "transactions": TRANSACTIONS,
    "users": USERS,
    "deferred_queue": DEFERRED_QUEUE,
    "errors": ERRORS,
    "transaction_io": TRANSACTION_IO,
    "collector_cost": COLLECTOR_COST,
    "queries": QUERIES,
}
PROBE_TABLES: dict[str, pa.Schema] = {
    "probe_steps": PROBE_STEPS,
    "probe_histogram": PROBE_HISTOGRAM,
    "probe_windows": PROBE_WINDOWS,
}
"""The tables of a probe of raw storage, which has no others."""
