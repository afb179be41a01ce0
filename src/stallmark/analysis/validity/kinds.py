"""The kinds of findings on the validity of a step."""

from enum import StrEnum

from stallmark.analysis.finding import Kind


class ValidityKind(Kind):
    """Reasons why the figures of a step must not be compared, or mean less than they seem to."""

    RUN_INCOMPLETE = "run_incomplete"
    ENDED_EARLY = "ended_early"
    LOADS_MISSED = "loads_missed"
    BY_HAND = "changed_by_hand"
    SERVER_STARTED = "server_started"
    CONNECTIONS_LOST = "connections_lost"
    COUNTERS_BEGAN_AGAIN = "counters_began_again"
    NOT_TIMED = "io_not_timed"
    COUNTERS_INCOMPLETE = "counters_incomplete"
    FOREIGN_IO = "foreign_io"
    FOREIGN_CPU = "foreign_cpu"
    NOT_CONNECTED = "users_not_connected"
    TRANSACTIONS_FAILED = "transactions_failed"
    LITTLES_LAW = "littles_law"
    STORAGE_ERROR = "storage_error"
    DRIVER_OVERHEAD = "driver_overhead"
    EXECUTOR_CPU = "executor_cpu"
    LATE_STARTS = "late_starts"


class GateKind(Kind):
    """The validity gates, by the names shown to readers."""

    MIX = "mix"
    FOLLOWERS = "followers"
    ABORTS = "aborts"
    LOCKS = "locks"
    LIMITS = "p90_limits"
    LAG = "background_lag"
    CONSISTENCY = "consistency"
    COMPLETED = "completed"


class ServiceLevelKind(Kind):
    """The findings on a service level, and the reasons why a percentile is not judged."""

    READS_TAKE = "reads_take"
    READS_NOT_KNOWN = "reads_not_known"
    NO_HISTOGRAM = "no_histogram"
    TOO_FEW_READS = "too_few_reads"
    READS_NOT_MEASURED = "reads_not_measured"
    NOTHING_READ = "nothing_read"


class CounterSource(StrEnum):
    """The source of counters."""

    DATA_FILES = "data_files"
    LOG = "log"
    DATA_DEVICE = "data_device"
    LOG_DEVICE = "log_device"
