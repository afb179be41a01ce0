"""The kinds of the conclusions of an experiment."""

from stallmark.analysis.finding import Kind


class ExperimentKind(Kind):
    DATA_WRONG = "data_wrong"
    NOTHING_MEASURED = "nothing_measured"
    STEPS_LEFT_OUT = "steps_left_out"
    NO_STEADY_STATE = "no_steady_state"
    MOST_USERS = "throughput_by_users"
    KNEE = "throughput_knee"
    POOL = "throughput_by_pool"
    POOL_GAIN = "largest_gain_by_pool"
    DEVICES = "throughput_by_device"
    DEVICES_UNLIKE = "devices_not_compared"
    DEVICE_READS = "reads_differ_by_device"
    FLASH = "flash_use"
    ONE_VARIANT = "throughput_of_one_variant"
    VARIANTS_ALIKE = "variants_alike"
    VARIANTS = "throughput_by_variant"
    STREAMS = "cost_of_streams"
    DISTURBED = "cost_of_maintenance"
    OVER_LIMIT = "transactions_over_limit"
    STORAGE_LIMITS = "storage_limits"
    STORAGE_DOES_NOT_LIMIT = "storage_does_not_limit"
    DRIVER_LIMITS = "driver_limits"
    ONE_RUN_EACH = "one_run_each"
    SPREAD = "spread_of_runs"
