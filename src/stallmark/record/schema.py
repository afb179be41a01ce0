"""The tables of a run record: their columns, each with its unit and its meaning in the field's metadata.

All times in tables are seconds since the start of the run on the monotonic clock (`t`, float) or the whole second they
fall in (`second`). The manifest gives that start in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

from stallmark import capabilities

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 16, 1 << 26  # a day's table does not fit in memory

UNIT: Final = b"unit"
MEANING: Final = b"meaning"
_UNITS = {"us": "µs", "ms": "ms", "s": "s", "bytes": "bytes", "kib": "KiB", "percent": "%"}


def column(name: str, kind: pa.DataType, meaning: str, unit: str | None = None) -> pa.Field:
    """Return a column. Without `unit` it has the one that its name ends with: `read_ms` is in ms; others have none."""
    unit = _UNITS.get(name.rpartition("_")[2], "") if unit is None else unit
    return pa.field(name, kind, metadata={UNIT: unit, MEANING: meaning})


def unit_of(field: pa.Field) -> str:
    """Return the unit of a column; empty for text, and in a record that was made before columns had one."""
    return (field.metadata or {}).get(UNIT, b"").decode()


def meaning_of(field: pa.Field) -> str:
    return (field.metadata or {}).get(MEANING, b"").decode()


SECOND = column("second", pa.int32(), "in which it ended", "s")
_LOAD = column("load", pa.string(), "name of the load; of a run of one load, its workload")
_DUE = column("second", pa.int32(), "the whole second", "s")
_MACHINE = column("machine", pa.int16(), "number in the manifest's load_machines; 0: the one that Stallmark ran on")
_EXECUTOR = column("executor", pa.int16(), "number of the executor; no number is on two machines")
TRANSACTIONS = pa.schema(
    [
        SECOND,
        _LOAD,
        column("transaction", pa.string(), "type of transaction"),
        column("committed", pa.int32(), "committed", "transactions"),
        column("rolled_back", pa.int32(), "rolled back as intended, part of the workload", "transactions"),
        column("failed", pa.int32(), "given up after the bounded retries", "transactions"),
        column("retries", pa.int32(), "attempts after the first", "attempts"),
        column("latency_us", pa.int64(), "scheduled to ended, retries included, summed over committed and rolled back"),
        column("service_us", pa.int64(), "started to ended, summed over committed and rolled back"),
        column("latency_gaps", pa.list_(pa.int16()), "histogram of latency in µs: distances of its buckets", "buckets"),
        column("latency_counts", pa.list_(pa.int32()), "histogram of latency: count of each bucket", "transactions"),
        column("service_gaps", pa.list_(pa.int16()), "histogram of service time in µs: distances", "buckets"),
        column("service_counts", pa.list_(pa.int32()), "histogram of service time: counts", "transactions"),
    ]
)
USERS = pa.schema(
    [
        _DUE,
        _LOAD,
        _MACHINE,
        _EXECUTOR,
        column("running", pa.float32(), "virtual users alive, averaged over the second", "users"),
        column("busy_us", pa.int64(), "time inside calls, summed over users"),
        column("think_us", pa.int64(), "intended think and pacing time that passed, summed over users"),
        column("lag_us", pa.int64(), "started − scheduled where a user was free to start, summed: the driver's delay"),
        column("lag_max_us", pa.int64(), "largest delay"),
        column(
            "cpu_us", pa.int64(), "CPU time of the executor process; of one of several loads, by their transactions"
        ),
    ]
)
CLIENT_CPU = pa.schema(
    [
        _DUE,
        column("process", pa.string(), "command, with its collectors, or conductor; executors are in `users`"),
        column("cpu_us", pa.int64(), "CPU time of that process, on the machine that Stallmark ran on"),
    ]
)
DEFERRED_QUEUE = pa.schema(
    [
        _DUE,
        _LOAD,
        _MACHINE,
        _EXECUTOR,
        column("taken", pa.int32(), "ended in this second, of those that no virtual user starts", "transactions"),
        column("late_us", pa.int64(), "started − due, summed"),
        column("late_max_us", pa.int64(), "largest delay"),
        column("waiting", pa.int32(), "most that were due at once and not yet taken", "transactions"),
    ]
)
ERRORS = pa.schema(
    [
        _DUE,
        _LOAD,
        column("transaction", pa.string(), "type of transaction"),
        column("error_class", pa.string(), "deadlock, timeout, connection lost and so on, the same on both engines"),
        column("code", pa.string(), "the server's own code"),
        column("attempts", pa.int32(), "failed calls of this class and code", "calls"),
        column("given_up", pa.int32(), "transactions that were not tried again after such a call", "transactions"),
        column("message", pa.string(), "the server's message, the first in this second"),
    ]
)
TRANSACTION_IO = pa.schema(
    [
        SECOND,
        _LOAD,
        column("transaction", pa.string(), "type of transaction"),
        column(
            "sampled", pa.int32(), "sampled, of those not given up; the other columns are their sums", "transactions"
        ),
        column("reads", pa.int64(), "reads of the operating system: one may bring several blocks", "I/Os"),
        column("read_bytes", pa.int64(), "bytes read"),
        column("hits", pa.int64(), "blocks that were in the pool", "blocks"),
        column("read_us", pa.int64(), "time in these reads; null where the server does not take it"),
        column("writes", pa.int64(), "written out to make room, without the log", "pages"),
    ]
)
OWN_STATEMENTS = pa.schema(
    [
        column("second", pa.int32(), "in which the last statement of its transaction ended", "s"),
        _LOAD,
        column("statement", pa.string(), "transaction, and number in its file; the manifest has the text"),
        column("executions", pa.int32(), "ended well, those of transactions tried again included", "executions"),
        column("rows", pa.int64(), "returned, or changed by those that return none, summed", "rows"),
        column("errors", pa.int32(), "ended with an error", "executions"),
        column("latency_us", pa.int64(), "sent to answered whole, summed over executions that ended well"),
        column("latency_gaps", pa.list_(pa.int16()), "histogram of latency in µs: distances of its buckets", "buckets"),
        column("latency_counts", pa.list_(pa.int32()), "histogram of latency: count of each bucket", "executions"),
    ]
)
"""Statements of SQL of a user's own; the table is there where a run has such a load."""
QUERIES = pa.schema(
    [
        column(
            "phase", pa.string(), "power, throughput or each; concurrent: beside virtual users (older records: beside)"
        ),
        _LOAD,
        column("stream", pa.int16(), "0 in a power run; else from 1, the refresh stream comes last"),
        column("position", pa.int16(), "within the stream, from 1"),
        column("query", pa.string(), "Q1 to Q22, RF1, RF2"),
        column("dop", pa.int16(), "degree of parallelism asked for; null: as the server is set", "workers"),
        column("due_s", pa.float64(), "when it was due, since the run's start; null: in a closed loop"),
        column("started_s", pa.float64(), "when it was sent, since the run's start"),
        column("seconds", pa.float64(), "sent to answered whole", "s"),
        column("rows", pa.int64(), "rows of the answer", "rows"),
        column("logical_reads", pa.int64(), "pages read, in the pool or not", "pages"),
        column("physical_reads", pa.int64(), "pages read from storage", "pages"),
        column("read_bytes", pa.int64(), "bytes read from storage"),
        column("spill_bytes", pa.int64(), "written to temporary files"),
        column("grant_kib", pa.int64(), "memory the server set aside"),
        column("cpu_ms", pa.float64(), "CPU time over all workers"),
        column("actual_dop", pa.int16(), "workers it had", "workers"),
        column("wait_ms", pa.string(), "JSON: milliseconds by the server's name of the wait, summed over its workers"),
        column("plan_hash", pa.string(), "with the query the name of a file in `plans`"),
        column("error_class", pa.string(), "as in `errors`; null: it ended well"),
        column("error", pa.string(), "the server's message; null: it ended well"),
    ]
)
"""The queries of query runs; a value that the server does not report is null."""
QUERIES_LEFT = pa.schema(
    [
        _LOAD,
        column("due_s", pa.float64(), "when it was due, since the run's start"),
        column("started_s", pa.float64(), "when it was sent, since the run's start; null: it never was"),
        column("left_s", pa.float64(), "when it was given up or forgotten, since the run's start"),
    ]
)
"""Queries at a rate that did not end: given up under way, or forgotten before a stream was free."""
MAINTENANCE = pa.schema(
    [
        column("kind", pa.string(), "backup, check or rebuild"),
        column("started_s", pa.float64(), "when it began, since the run's start"),
        column("seconds", pa.float64(), "how long it took", "s"),
        column("finished", pa.bool_(), "false: it was given up at the end, or failed"),
        column("error", pa.string(), "the server's message; null: none"),
    ]
)
"""Maintenance beside the users, one row for each time; the table is there where a variant asks for it."""
RAW_IO = pa.schema(
    [
        SECOND,
        column("load", pa.string(), "name of the raw load"),
        column("cell", pa.int16(), "number of its cell, from 1"),
        column("reads", pa.int64(), "reads that ended", "I/Os"),
        column("read_bytes", pa.int64(), "bytes read"),
        column("writes", pa.int64(), "writes that ended", "I/Os"),
        column("write_bytes", pa.int64(), "bytes written"),
        column("latency_us", pa.int64(), "from issuing an I/O (at a rate of I/Os: from when it was due) to its end, "
               "summed over reads and writes"),
        column("latency_gaps", pa.list_(pa.int16()), "histogram of latency in µs: distances of its buckets", "buckets"),
        column("latency_counts", pa.list_(pa.int32()), "histogram of latency: count of each bucket", "I/Os"),
        column("waiting_gaps", pa.list_(pa.int16()), "I/Os that were due and had not ended at the end of the second, a "
               "histogram of how long they had waited: distances of its buckets; null of a load without a rate of I/Os",
               "buckets"),
        column("waiting_counts", pa.list_(pa.int32()), "the same: count of each bucket", "I/Os"),
    ]
)  # fmt: skip
"""Raw loads beside the users, a row for each second in which a cell's program ran; the table is there where a run has
such loads. The program reports about every second, and its I/Os are taken to be spread evenly between two reports."""
SAMPLED = [
    column("t", pa.float64(), "middle of the call that read the row, since the run's start", "s"),
    column("took_s", pa.float32(), "length of that call"),
]
"""The first columns of every collector's table."""
COLLECTOR_COST = pa.schema(
    [
        column("t", pa.float64(), "end of the interval that the costs are of, since the run's start", "s"),
        column("collector", pa.string(), "name of the collector's table"),
        column("wall_us", pa.int64(), "time that sampling took"),
        column("cpu_us", pa.int64(), "CPU time of the driver that sampling took"),
    ]
)
EXTERNAL = pa.schema(
    [
        column("t", pa.float64(), "end of the sample's interval, since the run's start", "s"),
        column("source", pa.string(), "the host it was measured on, or the name it was attached under"),
        column("counter", pa.string(), "as the file names it"),
        column("instance", pa.string(), "disk, CPU or the like; empty where the counter has none"),
        column("unit", pa.string(), "of `value`, as the file has it; empty if it has none"),
        column("value", pa.float64(), "in the unit of its row"),
    ]
)
"""Measurements attached from a file, each file as a table `external_…`."""
TABLES: dict[str, pa.Schema] = {
    "transactions": TRANSACTIONS,
    "users": USERS,
    "client_cpu": CLIENT_CPU,
    "deferred_queue": DEFERRED_QUEUE,
    "errors": ERRORS,
    "transaction_io": TRANSACTION_IO,
    "collector_cost": COLLECTOR_COST,
    "queries": QUERIES,
}


@dataclass(frozen=True)
class AddedTable:
    """A table of the runs of a capability."""

    meaning: str
    columns: pa.Schema
    added_later: frozenset[str] = frozenset()
    """Columns that older records lack, and that may be null."""
    positive: frozenset[str] = frozenset()
    """Columns that have only values above 0."""


@cache
def added_tables() -> Mapping[str, AddedTable]:
    """Return the tables of the runs of capabilities, by name."""
    return {name: table for tables in capabilities.parts("tables") for name, table in tables.items()}


def standard_tables() -> dict[str, pa.Schema]:
    """Return the tables that every run of one kind or another has; others depend on what is sampled or loaded."""
    return TABLES | {name: table.columns for name, table in added_tables().items()}


STEPS = pa.schema(
    [
        column("run", pa.string(), "name of the run"),
        column("variant", pa.string(), "name of the run's variant"),
        column("repeat", pa.int32(), "number of the run among those of its variant, from 1"),
        column("step", pa.string(), "name of the step"),
        column("users", pa.int32(), "its virtual users", "users"),
        column("measure_s", pa.float64(), "start of its measured interval"),
        column("end_s", pa.float64(), "its end, the first second that is not part of it"),
    ]
)
"""The steps of runs, which their manifests have, as a table for SQL."""


# The states of Query Store as they are recorded: why it counts nothing, and what makes it count again.

_ON = "run ALTER DATABASE CURRENT SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE);"
_CLEAR = "ALTER DATABASE CURRENT SET QUERY_STORE CLEAR ALL; (which forgets all that it has)"

# Bits of readonly_reason. As long as one of the last three is set, the server refuses or takes back READ_WRITE.
_REASONS = {
    1: ("the database is read-only", "run ALTER DATABASE CURRENT SET READ_WRITE;"),
    2: ("the database is in single-user mode", "run ALTER DATABASE CURRENT SET MULTI_USER;"),
    4: ("the database is in emergency mode", "repair the database first"),
    8: ("the database is a secondary replica", "name the primary"),
    65536: (
        "it is full",
        f"enlarge it (ALTER DATABASE CURRENT SET QUERY_STORE (MAX_STORAGE_SIZE_MB = …);) or clear it ({_CLEAR}), and "
        f"then {_ON}",
    ),
    131072: ("it has too many different statements for its memory", f"clear it ({_CLEAR}), and then {_ON}"),
    262144: ("what it has in memory is not on disk yet", "wait: it goes on by itself once that is written"),
    524288: (
        "the database has reached its largest size",
        f"enlarge the database or clear Query Store ({_CLEAR}), and then {_ON}",
    ),
}


def stop_reason(reason: int | None) -> str | None:
    """Return the reason why Query Store is read-only, as a clause, or None if the server gives no known reason."""
    return " and ".join(reason_text for bit, (reason_text, _) in _REASONS.items() if (reason or 0) & bit) or None


def resume_command(state: str, reason: int | None) -> str:
    """Return the command that makes Query Store write again."""
    if remedies := [remedy for bit, (_, remedy) in _REASONS.items() if (reason or 0) & bit]:
        return "; ".join(remedies)
    if state == "ERROR":
        return (
            "run ALTER DATABASE CURRENT SET QUERY_STORE = OFF; EXEC sys.sp_query_store_consistency_check; and then "
            f"{_ON.removeprefix('run ')} or clear it: {_CLEAR}"
        )
    return "name the primary" if state == "READ_CAPTURE_SECONDARY" else _ON
