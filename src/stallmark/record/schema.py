"""The tables of a run record: their columns, with units.

All times in tables are seconds since the start of the run on the monotonic clock (`t`, float) or the whole second they
fall in (`second`). The manifest gives that start in UTC.
"""

import pyarrow as pa

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 16, 1 << 26  # a day's table does not fit in memory

TRANSACTIONS = pa.schema(
    [
        ("second", pa.int32()),  # in which they ended
        ("transaction", pa.string()),
        ("committed", pa.int32()),
        ("rolled_back", pa.int32()),  # intended, part of the workload
        ("failed", pa.int32()),  # given up after the bounded retries
        ("retries", pa.int32()),
        ("latency_us", pa.int64()),  # sum over committed and rolled back, scheduled to ended, retries included
        ("service_us", pa.int64()),  # sum, started to ended
        ("latency_gaps", pa.list_(pa.int16())),  # histogram of µs: buckets in use, and counts (record/histogram.py)
        ("latency_counts", pa.list_(pa.int32())),
        ("service_gaps", pa.list_(pa.int16())),
        ("service_counts", pa.list_(pa.int32())),
    ]
)
USERS = pa.schema(
    [
        ("second", pa.int32()),
        ("machine", pa.int16()),  # as in the manifest's load_machines; 0: the one that Stallmark ran on
        ("executor", pa.int16()),  # no number is on two machines
        ("running", pa.float32()),  # users alive, averaged over the second
        ("busy_us", pa.int64()),  # sum of time inside calls
        ("think_us", pa.int64()),  # sum of intended think and pacing time that passed
        ("lag_us", pa.int64()),  # sum of started − scheduled where a user was free to start: the driver's delay
        ("lag_max_us", pa.int64()),
        ("cpu_us", pa.int64()),  # CPU time of the executor process
    ]
)
DEFERRED_QUEUE = pa.schema(
    [
        ("second", pa.int32()),
        ("machine", pa.int16()),
        ("executor", pa.int16()),
        ("taken", pa.int32()),  # transactions that no virtual user starts, ended in this second
        ("late_us", pa.int64()),  # sum of started − due
        ("late_max_us", pa.int64()),
        ("waiting", pa.int32()),  # most that were due at once and not yet taken by a background session
    ]
)
ERRORS = pa.schema(
    [
        ("second", pa.int32()),
        ("transaction", pa.string()),
        ("error_class", pa.string()),  # ErrorClass
        ("code", pa.string()),
        ("attempts", pa.int32()),  # failed calls of this class and code
        ("given_up", pa.int32()),  # of these, transactions that were not tried again
        ("message", pa.string()),  # the first in this second
    ]
)
TRANSACTION_IO = pa.schema(
    [
        ("second", pa.int32()),  # in which they ended
        ("transaction", pa.string()),
        ("sampled", pa.int32()),  # of those not given up, how many were sampled; the other columns are their sums
        ("reads", pa.int64()),  # I/Os of the operating system: one may bring several blocks
        ("read_bytes", pa.int64()),
        ("hits", pa.int64()),  # blocks that were in the pool
        ("read_us", pa.int64()),  # time in these reads; null where the server does not take it
        ("writes", pa.int64()),  # pages written out to make room, without the log
    ]
)
QUERIES = pa.schema(
    [
        ("phase", pa.string()),  # "power", "throughput" or "each"
        ("stream", pa.int16()),  # 0 in a power run; in a throughput run from 1, the refresh stream comes last
        ("position", pa.int16()),  # within the stream, from 1
        ("query", pa.string()),  # "Q9", "RF1"
        ("dop", pa.int16()),  # asked for; null: as the server is set
        ("started_s", pa.float64()),
        ("seconds", pa.float64()),  # sent to answered whole
        ("rows", pa.int64()),
        ("logical_reads", pa.int64()),  # pages, in the pool or not
        ("physical_reads", pa.int64()),  # pages
        ("read_bytes", pa.int64()),
        ("spill_bytes", pa.int64()),  # written to temporary files
        ("grant_kib", pa.int64()),  # memory the server set aside
        ("cpu_ms", pa.float64()),
        ("actual_dop", pa.int16()),
        ("wait_ms", pa.string()),  # JSON: milliseconds by the server's name of the wait, summed over its workers
        ("plan_hash", pa.string()),  # with the query the name of a file in `plans`
        ("error_class", pa.string()),  # ErrorClass; null: it ended well
        ("error", pa.string()),
    ]
)
"""The queries of query runs; a value that the server does not report is null."""
MAINTENANCE = pa.schema(
    [
        ("kind", pa.string()),  # backup, check or rebuild
        ("started_s", pa.float64()),
        ("seconds", pa.float64()),
        ("finished", pa.bool_()),  # false: it was given up at the end, or failed
        ("error", pa.string()),
    ]
)
"""Maintenance beside the users, one row for each time; the table is there where a variant asks for it."""
PROBE_STEPS = pa.schema(
    [
        ("pattern", pa.string()),  # "8k-random-read"
        ("operation", pa.string()),  # read or write
        ("order", pa.string()),  # random or sequential
        ("block_bytes", pa.int64()),
        ("outstanding", pa.int32()),
        ("seconds", pa.float64()),
        ("ios", pa.int64()),
        ("bytes", pa.int64()),
        ("mean_ms", pa.float64()),  # from issuing an I/O to its end
    ]
)
PROBE_HISTOGRAM = pa.schema(
    [
        ("pattern", pa.string()),
        ("outstanding", pa.int32()),
        ("ms", pa.float64()),  # two significant digits
        ("ios", pa.int64()),
    ]
)
PROBE_WINDOWS = pa.schema(
    [
        ("pattern", pa.string()),
        ("outstanding", pa.int32()),
        ("t", pa.float64()),  # end of the window, in seconds since the step began
        ("iops", pa.float64()),
    ]
)
SAMPLED = [("t", pa.float64()), ("took_s", pa.float32())]
"""The first columns of every collector's table: the middle of the call that read a row, and the call's length."""
COLLECTOR_COST = pa.schema(
    [("t", pa.float64()), ("collector", pa.string()), ("wall_us", pa.int64()), ("cpu_us", pa.int64())]
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
