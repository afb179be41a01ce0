"""The wording of cautions that come from the server itself."""

from collections.abc import Mapping, Sequence

from stallmark.analysis.finding import Kind
from stallmark.analysis.server_cautions import ServerKind
from stallmark.format import listed, percent
from stallmark.report.text import says
from stallmark.report.text.terms import named

SENTENCES: Mapping[Kind, str] = {
    ServerKind.NODES_UNEVEN: (
        "In {steps:named} pages stayed only {share:percent} as long in the memory of one NUMA node as in that of "
        "another: the buffer pool was not used evenly, and a larger one may not help all users alike."
    ),
    ServerKind.REPLICA_BEHIND: (
        "In {steps:named} a synchronous replica was not synchronized for {share:percent} of the time: commits did "
        "not wait for it then, and were faster than they are when it is."
    ),
    ServerKind.STATISTICS_UPDATED: (
        "Statistics were counted anew while {steps:named} was measured ({statistics:first_three}): that was read from "
        "the same storage, and queries were planned anew. Warm up longer, or say `auto_update_statistics: off` below "
        "`database`."
    ),
    ServerKind.AUTOVACUUM: (
        "In {steps:named} autovacuum did up to {write_share:share} of the writes and {read_share:share} of the "
        "reads of data files, which are in its figures though no transaction asked for them. How much it does is a "
        "matter of which tables were due: measure for longer, or raise their thresholds."
    ),
}


@says(ServerKind.FILES_GREW)
def _(steps: list[str] | None, files: list[str], times: int) -> str:
    often = "once" if times == 1 else f"{times:,} times"
    return (
        f"Files grew {often} while {named(steps)} was measured ({listed(files)}): who needs the space waits until it "
        "is there, and a log is zeroed first. Make files large enough beforehand."
    )


@says(ServerKind.GRANTS_PENDING)
def _(steps: list[str] | None, most: int) -> str:
    queries = "1 query" if most == 1 else f"up to {most:,} queries"
    return (
        f"In {named(steps)} {queries} waited for memory to sort and join in (memory grants pending): that time is "
        "neither the storage’s nor the buffer pool’s."
    )


@says(ServerKind.DEADLOCKS)
def _(steps: list[str] | None, deadlocks: int) -> str:
    counted = "1 deadlock" if deadlocks == 1 else f"{deadlocks:,} deadlocks"
    return (
        f"The server counted {counted} in {named(steps)}: work was undone and done again, and its reads and waits are "
        "in the figures."
    )


@says(ServerKind.LOG_KEPT)
def _(recovery: str, used_share: float | None, database: str | None) -> str:
    so_far = "" if used_share is None else f" It was {percent(used_share)} full at most."
    model = "The database’s recovery model" if database is None else f"The recovery model of the database {database}"
    return (
        f"{model} is {recovery}: its log is kept until it is backed up, so that it fills and "
        f"then grows while it is measured, or the run ends with error 9002.{so_far} ALTER DATABASE … SET RECOVERY "
        "SIMPLE, or back up the log on a schedule, and say that you did."
    )


@says(ServerKind.AUTO_CLOSE)
def _(databases: list[str]) -> str:
    place = f" in {listed(databases)}" if databases else ""
    return (
        f"AUTO_CLOSE is on{place}: a database closes once no session is in it, and its pages leave the memory. What a "
        "run found in the cache may be less than what was put there before. Run ALTER DATABASE … SET AUTO_CLOSE OFF."
    )


# How to read the tables of the server’s counters. -------------------------------------------------------------

FILES = (
    "Means are stall ÷ count of the measured interval. The server counts stalls in whole milliseconds and with "
    "the wait for a CPU in them: below 1 ms they say little."
)
PROCESSES = (
    "Reads and writes of data files by the process that did them, extensions of files among the writes. Sessions: of "
    "users, and of all others. Autovacuum hands in its counts table by table, each when it is done with it: a step has "
    "the work of the vacuums that ended in it."
)
MEMORY = (
    "Page life: the least seen of the server’s estimate of how long a page stays, also by NUMA node if there are "
    "several. Ahead: of the pages read, those read before they were asked for. Lazy writes, checkpoint and "
    "background: pages written to make room, by checkpoints, and by the background writer (indirect checkpoints)."
    " Free list stalls: a read had to wait for a free page. Total and target: of the whole server, at the "
    "interval’s end. Pool: what held pages of databases, on average, and is the axis of charts; stolen: what the "
    "server used for anything else (plans, locks, grants)."
)
LOG_AND_TEMPDB = (
    "Waits: commits that waited for a flush, and how long. Used: the most seen. Grown: how often its files grew. "
    "Kept by: what most often kept the log from being reused. Pending and runnable (waiting for a CPU): means of "
    "samples at random instants. Deadlocks: of the whole server. Blocked: sessions that waited for a lock, on "
    "average. Grants pending: queries that waited for memory, the most seen."
)
LOGS = (
    "Every database has a log of its own. The table above has them together, and of the space used that of the fullest "
    "log; its columns are explained there."
)
REPLICAS = (
    "As the primary saw them. Not sent: log that was still to go to the replica. Not redone: log that it had and "
    "had not applied. Synchronized: of the samples. Delayed: commits that waited for replicas, and how long each "
    "waited (Transaction Delay ÷ Mirrored Write Transactions)."
)
POOL_CONTENTS = "As of the last sample in the measured interval. Mean read: of these very pages."
SERVER_WAITS = (
    "All tasks of the server together: 1,000 ms/s is one task that always waits. Resource: wait − signal. Signal:"
    " what was waited for had come, and the task waited for a CPU. Waits that hold nobody up are left out."
)
ROW_WAITS = (
    "Sessions that waited at a moment, on average, for a lock on one of the table’s rows or pages; per user: as a"
    " share of the virtual users, beside whom background sessions wait too."
)
ROW_WAITS_COUNTED = " Latches: sessions that waited for a page in memory. Reads: for a page to come from disk."
PROCEDURES = (
    "Reads and writes are pages of 8 KiB. Covered: executions the server still had the counts of, of the "
    "transactions that ended; a plan that left the cache took its counts along, and retries make it more than "
    "all."
)
QUERY_STORE = (
    "Query Store counts statements, not calls, and keeps the counts of plans that left the cache. Reads and "
    "writes are pages of 8 KiB. Waits are by its own categories, all sessions together: Buffer IO is a read, Tran"
    " Log IO a log write. ≥: it did not count all the time."
)
VOLUMES = "Everything on the volume counts, whoever did it. Times are weighted by the I/Os of each second."
BLOCKED = "Users’ sessions that waited at a moment, on average, for a session that was in the other procedure."
DEADLOCKS = (
    "As the server’s session system_health wrote them down, warm-up included; the victims were tried again. A "
    "graph is a file in the run’s folder, which Management Studio draws."
)


def statements(top: int) -> str:
    """Return how to read the table of the `top` statements by each measure."""
    return (
        f"The {top} statements that read most, that computed most, and that waited most (beyond its CPU time) as the "
        "plan cache counted them. Plans: the beginnings of SQL Server’s hashes of their shapes, the one executed most "
        "first; each plan is a file in the record’s folder `plans`, which Management Studio opens. ≥: a plan left the "
        "cache meanwhile."
    )


def io_latency(units: Sequence[str]) -> str:
    """Return how to read the percentiles of I/Os, whose durations are whole numbers of these units."""
    return (
        "Every I/O by its duration, as the server saw it: the percentile is the least duration that so many I/Os did "
        "not exceed, from the difference of the histogram between the ends of the measured interval. Covered: of the "
        f"I/Os that the file counters counted. Durations are whole numbers of {' or '.join(units)}; < means less than "
        "one."
    )
