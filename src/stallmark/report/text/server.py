"""The wording of faults in recorded data, of what happened in a run, and of cautions that come from the server."""

from collections.abc import Mapping, Sequence

from stallmark.analysis.environment_cautions import ServerKind
from stallmark.analysis.finding import Kind
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.run import RunKind
from stallmark.format import NONE, display_name, listed, number, percent, plural, size
from stallmark.record.schema import resume_command, stop_reason
from stallmark.report.text import Format, NameFirst, Template, first_three, says, scope
from stallmark.stats.thresholds import BURST, SHARE_SAMPLES

# The wording of faults in recorded data, and of facts that follow from them at once.

FORMATS: Mapping[str, Format] = {
    "active": lambda facts: f"{size(facts['active_bytes'])}{' at most' if facts['at_most'] else ''}",
    "both": lambda flash: flash.replace("+", " and "),
    "off": lambda facts: percent(facts["seconds"] / facts["measured_s"]),
}


@says(ReadKind.CLOCK_JUMPED)
def _(jump_s: float) -> str:
    way = "ahead" if jump_s > 0 else "back"
    return (
        f"The server’s clock jumped {number(abs(jump_s))} s {way} while this step was measured: one of the machines "
        "was suspended, or its clock was set."
    )


@says(ReadKind.QUERY_STORE_STOPPED)
def _(database: str | None, state: str, reason: int | None, after_s: float, measured_s: float) -> str:
    place = f" of the database {database}" if database else ""
    cause = f" ({cause})" if (cause := stop_reason(reason)) else ""
    when = f"after {number(after_s)} of the {number(measured_s)} s measured" if after_s else "as measuring began"
    part = "only a part" if after_s < measured_s else "perhaps only a part"  # seen once the interval was over
    remedy = resume_command(state, reason).rstrip(";")
    return (
        f"Query Store{place} was {state}{cause} {when}, and counts nothing in that state: its statements and waits are "
        f"{part} of the actual ones. For the next run, {remedy}."
    )


@says(ReadKind.QUERY_STORE_CHANGED)
def _(database: str | None, option: str, before: str, now: str, after_s: float, measured_s: float) -> str:
    place = f" of the database {database}" if database else ""
    when = f"after {number(after_s)} of the {number(measured_s)} s measured" if after_s else "as measuring began"
    part = "waits" if option == "WAIT_STATS_CAPTURE_MODE" else "statements and waits"
    return (
        f"{option} of Query Store{place}, which was {before} as the run began, was {now} {when}: its {part} are "
        "perhaps only a part of the actual ones. Do not change it during a run."
    )


@says(ReadKind.PLANS_LEFT)
def _(plans: int, procedures: list[str]) -> str:
    left = "1 plan" if plans == 1 else f"{plans:,} plans"
    return (
        f"{left} of statements in {first_three(procedures)} left the plan cache during execution, and the counts since "
        "the previous sample are lost: these statements were executed at least as often as shown. Query Store keeps "
        "such counts (`observe: [query_store]`)."
    )


@says(ReadKind.ERROR_BURST)
def _(
    transaction: str, error_class: str, seconds: int, measured_s: int, most_in_a_second: int, given_up: int
) -> str:  # fmt: skip
    after = f"{given_up:,} transactions were given up" if given_up else "every one of them was retried"
    return NameFirst(
        f"{display_name(transaction)} failed in bursts ({error_class}): in {seconds:,} of {measured_s:,} seconds more "
        f"than {percent(BURST)} of its calls failed, up to {most_in_a_second:,} in one; {after}."
    )


# How to read tables of a run’s transactions, errors and collectors. -------------------------------------------

READS_SAMPLED = (
    "I/Os requested by a transaction’s own session, from a random sample of transactions (“counted”). One I/O may "
    "read several blocks. Reads that other processes do for the session are not included."
)
READS_BY_PROCEDURE = (
    "Pages of 8 KiB per completed transaction, from the plan cache’s counts of the transaction’s procedures. The "
    "number is too low if a plan left the cache: “Procedures” shows how many executions are covered."
)


TOO_FEW = f"{NONE}* fewer than {SHARE_SAMPLES} samples."


RUNS = (
    "Pool set and reached: the memory cap as configured, and as the server reported it. Growth: of the database over "
    "the run. Cost: CPU of all collectors, as a share of one core. Times: precision of the samples’ times in "
    "milliseconds, from the offset and drift of the server’s clock against the driver’s."
)
TRIED_AGAIN = "Calls that failed by deadlock, serialisation or lock timeout were retried, at most ten times."


# The wording of what happened in a run beside its figures.


@says(RunKind.COLLECTOR_OUTAGE)
def _(collector: str, since_s: float, until_s: float | None, error: str) -> str:
    until = "to the end" if until_s is None else f"to {until_s:.0f} s"
    return f"{collector}: nothing measured from {since_s:.0f} s {until}, because {error}."


@says(RunKind.QUERIES_LEFT)
def _(load: str, waiting: int, given_up: int) -> str:
    begun = (
        f"{waiting:,} were due and not yet started when their rate changed or the run ended: the streams fell behind"
    )
    ended = f"{given_up:,} were given up while running, and are in no rate"
    return f"Queries of {load}: {'; '.join([begun] * bool(waiting) + [ended] * bool(given_up))}."


@says(RunKind.DEFERRED_WAITED)
def _(transactions: int, cleared_by_next: bool) -> str:
    then = ": the next run begins by clearing their open work" if cleared_by_next else ""
    return (
        f"{transactions:,} transactions of the background sessions were not due yet, or not begun, when the run "
        f"ended{then}."
    )


@says(RunKind.EXECUTORS_LOST)
def _(executors: int, within_s: float, unreported: Mapping[str, int] | None) -> str:
    lost = "1 executor process was" if executors == 1 else f"{executors:,} executor processes were"
    text = (
        f"{lost} lost, with the work of {'its' if executors == 1 else 'their'} users in about the last {within_s:g} s"
    )
    if unreported is None:
        return f"{text}: the number of lost commits is unknown, because the database was not counted afterwards."
    counts = [f"{number:,} {plural(name)}" for name, number in unreported.items()]
    return f"{text}: the database counts {listed(counts)} more than were reported."


# The wording of cautions that come from the server itself.

SENTENCES: Mapping[Kind, str] = {
    ReadKind.HISTOGRAM_FULL: "The histogram is full: further durations may be missing.",
    ReadKind.HISTOGRAM_LOST_EVENTS: "The server ran out of buffers and lost {events:,.0f} of the events.",
    ReadKind.HISTOGRAM_UNIT_UNKNOWN: (
        "Its unit is not known: the file counters are missing, or match neither milliseconds nor microseconds."
    ),
    ReadKind.NOT_READ: (
        "{sources:quoted} could not be read for up to {seconds:,.0f} of the {measured_s:,.0f} s measured. Figures are "
        "over the observed time, and changes within a gap are invisible."
    ),
    ReadKind.FEW_SAMPLES: (
        "Samples at the ends of the measured interval were further apart than planned, which leaves {seconds:number} s "
        "uncertain ({sources:listed}). Rates may be off by {facts:off}; times per I/O are not affected."
    ),
    ReadKind.DATED_ROUGHLY: (
        "The server answered slowly at the ends of the measured interval, so the time of its counts "
        "({sources:listed}) is known only to within {seconds:number} s. Rates may be off by {facts:off}; times per I/O "
        "are not affected."
    ),
    ReadKind.QUERY_STORE_DROPPED: (
        "Query Store dropped counts of {procedures:first_three} while they rose, as it does to stay within "
        "MAX_STORAGE_SIZE_MB or when it is cleared: executions are at least as many as shown."
    ),
    ReadKind.COUNTERS_RESTARTED: (
        "The counters of {sources:quoted} restarted while this step was measured, as after a reset: their earlier "
        "counts are lost, and tables omit partial values."
    ),
    ReadKind.ACTIVE_FITS_DRAM: (
        "The active set ({facts:active}) fits into the array’s DRAM ({dram_bytes:size}), which may have answered "
        "instead of its disks or its flash. Use a larger database, or a smaller buffer pool."
    ),
    ReadKind.ACTIVE_FITS_FLASH: (
        "The active set ({facts:active}) fits into the flash {flash:both} ({flash_bytes:size}). Once the flash is warm "
        "no read waits for disks. Larger data may behave differently."
    ),
    RunKind.SAMPLES_MISSED: "{collector}: {samples:,} samples were skipped, because earlier ones took too long.",
    RunKind.SAMPLES_INCOMPLETE: "{collector}: {lacks}.",
    RunKind.CLOCKS_APART: (
        "The clocks of the load machines are known only to within {apart_ms:,.0f} ms of each other: a second of the "
        "record is not exactly the same second on all machines."
    ),
    RunKind.ARRIVALS_WAITED: (
        "{transactions:,} arrivals were due and not yet started when the run ended: the users fell behind."
    ),
    RunKind.UNFINISHED: "{transactions:,} transactions did not end, even cancelled: their outcome is unknown.",
    RunKind.EXECUTORS_SILENT: (
        "{executors:,} executor processes had to be killed at the end: the last work of their users is unknown."
    ),
    RunKind.MAINTENANCE_FAILED: "The {maintenance} during the load failed: {server_said:as_reason}.",
    ServerKind.NODES_UNEVEN: (
        "In {steps:named} pages stayed only {share:percent} as long in the memory of one NUMA node as in that of "
        "another: the buffer pool was not used evenly, and a larger one may not help all users equally."
    ),
    ServerKind.REPLICA_BEHIND: (
        "In {steps:named} a synchronous replica was not synchronized for {share:percent} of the time: commits did not "
        "wait for it then, and were faster than with a synchronized replica."
    ),
    ServerKind.STATISTICS_UPDATED: (
        "Statistics were updated while {steps:named} was measured ({statistics:first_three}): the update read from "
        "the same storage, and queries were planned again. Warm up longer, or set `auto_update_statistics: off` under "
        "`database`."
    ),
    ServerKind.AUTOVACUUM: (
        "In {steps:named} autovacuum did up to {write_share:share} of the writes and {read_share:share} of the reads "
        "of data files. The figures include them although no transaction caused them. The work of autovacuum depends "
        "on which tables were due: measure longer, or raise their thresholds."
    ),
}


@says(ServerKind.FILES_GREW)
def _(steps: list[str] | None, files: list[str], times: int) -> str:
    often = "once" if times == 1 else f"{times:,} times"
    return (
        f"Files grew {often} while {scope(steps)} was measured ({listed(files)}): sessions that need the space wait "
        "for it, and a log is zeroed first. Make files large enough beforehand."
    )


@says(ServerKind.GRANTS_PENDING)
def _(steps: list[str] | None, most: int) -> str:
    queries = "1 query" if most == 1 else f"up to {most:,} queries"
    return (
        f"In {scope(steps)} {queries} waited for memory for sorts and joins (memory grants pending): neither storage "
        "nor the buffer pool causes this wait."
    )


@says(ServerKind.DEADLOCKS)
def _(steps: list[str] | None, deadlocks: int) -> str:
    counted = "1 deadlock" if deadlocks == 1 else f"{deadlocks:,} deadlocks"
    return (
        f"The server counted {counted} in {scope(steps)}: work was rolled back and repeated, and the figures include "
        "the reads and waits of both."
    )


@says(ServerKind.LOG_KEPT)
def _(recovery: str, used_share: float | None, database: str | None) -> str:
    so_far = "" if used_share is None else f" It was up to {percent(used_share)} full."
    model = "The database’s recovery model" if database is None else f"The recovery model of the database {database}"
    return (
        f"{model} is {recovery}: the log is kept until it is backed up, so it fills up and then grows during the "
        f"measurement, or the run ends with error 9002.{so_far} ALTER DATABASE … SET RECOVERY SIMPLE, or back up the "
        "log on a schedule, and note that with the results."
    )


@says(ServerKind.AUTO_CLOSE)
def _(databases: list[str]) -> str:
    place = f" in {listed(databases)}" if databases else ""
    return (
        f"AUTO_CLOSE is on{place}: a database closes when its last session ends, and its pages leave memory. A run may "
        "have begun with fewer pages in the cache than were loaded before. Run ALTER DATABASE … SET AUTO_CLOSE OFF."
    )


# How to read the tables of the server’s counters. -------------------------------------------------------------

FILES = (
    "Means are stall ÷ count of the measured interval. The server counts stalls in whole milliseconds, including the "
    "wait for a CPU: below 1 ms they are imprecise."
)
PROCESSES = (
    "Reads and writes of data files by the process that did them; extensions of files count as writes. Sessions: "
    "those of the load’s users and all others. Autovacuum reports its counts after each table: the work of a vacuum "
    "counts in the step in which it ended."
)
MEMORY = (
    "Page life: the lowest sample of page life expectancy, the server’s estimate of a page’s time in memory, also by "
    "NUMA node if there are several. Ahead: share of the pages read before they were requested. Lazy writes, "
    "checkpoint and background: pages written to make room, by checkpoints, and by the background writer (indirect "
    "checkpoints). Free list stalls: a read had to wait for a free page. Total and target: of the whole server, at "
    "the interval’s end. Pool: mean memory for pages of databases, the axis of charts; stolen: memory that the server "
    "used for anything else (plans, locks, grants)."
)
LOG_AND_TEMPDB = (
    "Waits: commits that waited for a flush, and the duration of these waits. Used: the highest sample. Grown: number "
    "of times the log’s files grew. Kept by: the most frequent reason for not reusing the log. Pending and runnable "
    "(waiting for a CPU): means of samples at random instants. Deadlocks: of the whole server. Blocked: sessions that "
    "waited for a lock, on average. Grants pending: queries that waited for memory, the highest sample."
)
LOGS = (
    "Every database has its own log. The table above has the sums over these logs, and the used space of the fullest "
    "log; its note explains the columns."
)
REPLICAS = (
    "As reported by the primary. Not sent: log still to be sent to the replica. Not redone: log received but not yet "
    "applied. Synchronized: share of the samples. Delayed: commits that waited for replicas, and their mean wait "
    "(Transaction Delay ÷ Mirrored Write Transactions)."
)
POOL_CONTENTS = "From the last sample in the measured interval. Mean read: the mean read time of these pages."
SERVER_WAITS = (
    "All tasks of the server together: 1,000 ms/s is one task that always waits. Resource: wait − signal. Signal: the "
    "wait for a CPU once the resource was available. Waits that delay no session are omitted."
)
ROW_WAITS = (
    "Mean number of sessions that waited for a lock on one of the table’s rows or pages; per user: that number "
    "divided by the number of virtual users, although background sessions wait too."
)
ROW_WAITS_COUNTED = (
    " Latches: sessions that waited for a page in memory. Reads: sessions that waited for a page from disk."
)
PROCEDURES = (
    "Reads and writes are pages of 8 KiB. Covered: executions that the server still counted, as a share of the "
    "completed transactions. The counts of a plan are lost when it leaves the cache; retries raise the share above 100 "
    "%."
)
QUERY_STORE = (
    "Query Store counts statements, not calls, and keeps the counts of plans that left the cache. Reads and writes "
    "are pages of 8 KiB. Waits are by Query Store’s categories, all sessions together: Buffer IO is a read, Tran Log "
    "IO a log write. ≥: Query Store was not counting all the time."
)
VOLUMES = "I/O of all programs on the volume counts. Times are weighted by the I/Os of each second."
BLOCKED = "Mean number of users’ sessions that waited for a session in the blocking procedure."
DEADLOCKS = (
    "As recorded by the server’s Extended Events session system_health, warm-up included; the victims were retried. "
    "Each graph is a file in the run’s folder that Management Studio draws."
)


statements = Template(
    "The {top} statements with the most reads, the most CPU time and the longest waits (beyond CPU time), as the "
    "plan cache counted them. Plans: the first characters of SQL Server’s plan hashes, the most executed plan "
    "first; each plan is a file in the record’s folder `plans`, for Management Studio. ≥: a plan left the cache "
    "during the interval."
)


def io_latency(units: Sequence[str]) -> str:
    """Return the explanation of the percentiles of I/Os, whose durations are multiples of a unit."""
    return (
        "The server keeps a histogram of the durations of all its I/Os. Percentiles are from the I/Os that the "
        "histogram gained in the measured interval: the shortest duration that this share of the I/Os did not exceed. "
        "Covered: the histogram’s I/Os as a share of those in the file counters. Durations are whole numbers of "
        f"{' or '.join(units)}; < means less than one."
    )


MARKS: Mapping[Kind, str] = {
    ReadKind.ERROR_BURST: "bursts of errors",
    ReadKind.NOT_READ: "gaps",
    ReadKind.FEW_SAMPLES: "few samples",
    ReadKind.DATED_ROUGHLY: "gaps",
    ReadKind.QUERY_STORE_STOPPED: "Query Store partial",
    ReadKind.QUERY_STORE_CHANGED: "Query Store partial",
    ReadKind.QUERY_STORE_DROPPED: "Query Store partial",
    ReadKind.PLANS_LEFT: "statements partial",
    ReadKind.COUNTERS_RESTARTED: "counters restarted",
}
