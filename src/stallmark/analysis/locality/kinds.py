"""The kinds of findings on how a load reads."""

from stallmark.analysis.finding import Kind


class LocalityKind(Kind):
    READS = "reads_by_pool"
    FLASH = "reads_on_lru_flash"
    SKEW = "reads_in_hottest_data"
    FOOTPRINT = "footprint_of_reads"
    TABLES = "reads_by_table"
    NOT_MEASURED = "reads_over_pool_not_measured"
    NO_TRACE = "no_trace"
    FEW_READS = "too_few_reads_traced"
    ESTIMATED = "reads_estimated_from_trace"
    ERROR = "error_of_estimated_reads"
    SHORT = "trace_too_short"
    LOST = "trace_lost_ios"
    UNLIKE_COUNTED = "trace_unlike_counters"
    FEW_SIZES = "too_few_pools_for_slope"
    INVALID = "reads_of_invalid_run"
