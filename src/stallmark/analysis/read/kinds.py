"""The kinds of findings made while a record is read."""

from stallmark.analysis.finding import Kind


class ReadKind(Kind):
    """Faults of what was recorded, and findings that follow from it at once."""

    HISTOGRAM_FULL = "histogram_full"
    HISTOGRAM_LOST_EVENTS = "histogram_lost_events"
    HISTOGRAM_UNIT_UNKNOWN = "histogram_unit_unknown"
    CLOCK_JUMPED = "clock_jumped"
    ERROR_BURST = "error_burst"
    ACTIVE_FITS_DRAM = "active_set_fits_dram"
    ACTIVE_FITS_FLASH = "active_set_fits_flash"
    DATED_ROUGHLY = "dated_roughly"
    FEW_SAMPLES = "few_samples"
    NOT_READ = "not_read_for_a_while"
    QUERY_STORE_STOPPED = "query_store_stopped"
    QUERY_STORE_CHANGED = "query_store_capture_changed"
    QUERY_STORE_DROPPED = "query_store_dropped_counts"
    PLANS_LEFT = "plans_left_the_cache"
    COUNTERS_RESTARTED = "counters_restarted"
    QUERY_FAILED = "query_failed"
    PHASE_CUT = "query_phase_cut"
