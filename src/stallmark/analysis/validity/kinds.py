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


class CounterSource(StrEnum):
    """The source of counters."""

    DATA_FILES = "data_files"
    LOG = "log"
    DATA_DEVICE = "data_device"
    LOG_DEVICE = "log_device"
