"""The kinds of findings on probes of raw storage."""

from enum import StrEnum

from stallmark.analysis.finding import Kind


class ProbeKind(Kind):
    # Of one pattern, and of several together.
    NOT_ISSUED = "storage_faster_than_the_machine"
    ONE_STEP = "one_step_probed"
    NOT_SATURATED = "not_saturated"
    SATURATED = "saturated"
    COLLAPSED_RATE = "rate_collapsed"
    COLLAPSED_TAIL = "tail_collapsed"
    OVERALL = "patterns_overall"
    # Of several probes.
    AGAINST_FIRST = "probe_against_first"
    OF_PROBE = "of_probe"
    NOT_REPEATED = "probes_not_repeated"
    EMULATED_AND_REAL = "emulated_and_real_probes"
    FEW_IOS = "too_few_ios_for_p99"
    NOT_AT_DEVICE = "probe_not_at_device"
    INCOMPLETE = "probe_incomplete"
    # How deep a probe reaches.
    FITS_DRAM = "probe_fits_into_dram"
    SMALL_FILE = "probe_file_small"
    # Before and after.
    MIXED_DEVICES = "probes_of_emulated_and_real"
    DIFFERENT_PROBES = "different_probes"
    NO_COMMON_STEP = "no_common_probe_step"
    DRIFT_HIDDEN = "drift_may_be_hidden"
    SAME = "storage_as_before"
    DRIFTED = "storage_drifted"
    DRIFT_UNKNOWN = "drift_cannot_be_told"
    # Against a database.
    OTHER_DEVICE = "probed_on_other_device"
    NO_RANDOM_READS = "no_random_reads_probed"
    BEYOND_PROBE = "more_outstanding_than_probed"
    BELOW_PROBE = "fewer_outstanding_than_probed"
    ACHIEVED = "share_of_raw_storage"
    RAW_MAY_BE_SLOWER = "raw_storage_may_be_slower"


class Differs(StrEnum):
    """The properties in which two probes may differ."""

    PROGRAM = "program"
    FILE_SIZE = "file_size"
