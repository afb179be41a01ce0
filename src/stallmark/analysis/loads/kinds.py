"""The kinds of findings on several loads."""

from stallmark.analysis.finding import Kind


class LoadsKind(Kind):
    TOGETHER = "loads_against_alone"
    CELLS = "loads_by_cells"
    VARIANTS = "loads_by_variant"
    AT_ONCE = "loads_at_once"
    LEVELS = "service_levels_of_loads"
    HOST = "host_of_loads"
    READS_UNLIKE = "reads_of_loads_unlike_server"
    RAW_ENDED = "raw_load_ended_early"
    FEW_DONE = "few_done_by_load"
    VERDICTS = "verdicts_by_load"
    QUERIES_WAITED = "queries_waited_for_streams"
