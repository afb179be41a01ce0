"""The kinds of what is found in a production server's profile."""

from stallmark.analysis.finding import Kind


class ProfileKind(Kind):
    SEEN = "profile_seen"
    BUSIEST = "profile_busiest"
    OTHER_PEAK = "profile_peak_by_measure"
    IO_MIX = "profile_io_mix"
    WAITS = "profile_waits"
    WAITS_MET = "profile_waits_met"
    LOG = "profile_log"
    GROWTH = "profile_growth"
    NO_READS = "profile_no_reads"
    READS_AT_MOST = "profile_reads_at_most"
    POOL_TURNOVER = "profile_pool_turnover"
    FITS = "profile_database_fits"
    MEMORY_NOT_KNOWN = "profile_memory_not_known"
    GAPS = "profile_gaps"
    RESTARTS = "profile_restarts"
    OTHER_SERVER = "profile_other_server"
    CLOCK_SET = "profile_clock_set"
    LOST = "profile_counts_lost"
    MISSING = "profile_missing"
    SHORT = "profile_short"
    CACHED_READS = "profile_cached_reads"
    SAMPLED_WAITS = "profile_sampled_waits"
    COST = "profile_cost"
