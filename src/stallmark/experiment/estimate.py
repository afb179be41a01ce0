"""The time that an experiment will take with all that belongs to it: by measured rates, then by its own runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from stallmark import capabilities
from stallmark.loaders import loader_for
from stallmark.scenarios import Titled
from stallmark.scenarios.load import RawLoad
from stallmark.scenarios.model import AnyScenario, QueryScenario, TimedScenario, Variant
from stallmark.transactions import find_workload

# The rates by which an experiment's time is estimated before its first run; how fast the data of a workload are built
# and checked is the workload's own fact.
#
# Measured with the embedded PostgreSQL 18.4 on two cores of a virtual machine (x86-64, Debian 12, a disk that reads 390
# and writes 740 MB/s) which others used as well. So builds and copies are by their CPU time, spread over two cores,
# and what belongs to a run is half of what it took at a load of 13. Bytes are those of the tables with their keys
# (`loaders.load.expected_bytes`). What this machine's earlier experiments took corrects all of them (status.py).

MIB = 1024**2

BEGIN_S = 3.0
"""A server is made and started before a load."""
COPY_BYTES_PER_S = 200 * MIB
"""A database is copied, with the log that belongs to it, or brought back from the copy."""
PREFILL_BYTES_PER_S = 400 * MIB
RUN_S = 7.0
"""A server starts with its cap, users begin and end, and the record is closed."""
REPORT_S = 5.0
"""The report is written when all runs are made."""
WRITE_BYTES_PER_S = 300 * MIB
"""The file of a probe is written."""
STEP_S = 1.0
"""A step of a probe begins."""
QUERY_BYTES_PER_S = 400 * MIB
"""A query of the warehouse, as if it went once over all its data, in memory."""
QUERY_READ_BYTES_PER_S = 100 * MIB
"""Added for the data that the buffer pool does not hold, on a real disk."""
QUERY_EMULATED_BYTES_PER_S = 14 * MIB
"""The rate on emulated arrays, fast or slow, as measured with power-memory-storage."""


@dataclass(frozen=True)
class Estimate:
    """The time of an experiment."""

    build_s: float
    """The time for the database and the copy from which runs start."""
    runs_s: tuple[float, ...]
    """The time of each run with preparation and follow-up, in run order."""
    load_s: float = 0.0
    """The time of the load in each run, or 0 if the load is not planned by time."""
    at_most: bool = False
    """True if runs wait until they are steady, and may end sooner."""
    asks: bool = False
    """True if an operator is asked, which takes an unknown time."""
    chooses: bool = False
    """True if there may be fewer runs, as the sizes of a curve are chosen."""
    longest_s: float | None = None
    """The maximum for all runs if they search for a ceiling, which usually ends long before."""

    @property
    def ends_sooner(self) -> bool:
        """Return True if `total_s` is a maximum."""
        return self.longest_s is None and (self.at_most or self.chooses)

    @property
    def total_s(self) -> float:
        return self.build_s + sum(self.runs_s) + REPORT_S

    def left_s(
        self, took_s: Mapping[int, float], to_make: Collection[int], *, spent_s: float = 0.0, load_spent_s: float = 0.0
    ) -> float:
        """Return the time left for the runs `to_make`, from the times of complete runs, `took_s`, by number.

        The part of a run that is not planned by time is scaled by the ratio of measured to estimated time so far. With
        60 s of load planned in each run and 20 s estimated for the rest, complete runs of 100 s give a factor of 2 (40
        s ÷ 20 s), and 100 s for each run left. `spent_s` of the run under way is subtracted, but at least the remaining
        load is left; `load_spent_s` is the part spent on its load.
        """
        # A load that may end early is not a planned time, so it is scaled like the rest of the run.
        planned_s = 0.0 if self.at_most or self.longest_s else self.load_s
        seen_s = sum(took_s.values()) - planned_s * len(took_s)
        expected_s = sum(self.runs_s[number - 1] - planned_s for number in took_s)
        by = max(0.0, seen_s / expected_s) if expected_s > 0 else 1.0
        in_all_s = sum(planned_s + by * (self.runs_s[number - 1] - planned_s) for number in to_make)
        return max(0.0, planned_s * len(to_make) - load_spent_s, in_all_s - spent_s)


def estimate(
    scenario: Titled, dialect: str = "postgresql", *, to_build: float = 1.0, to_copy: bool = True, pace: float = 1.0
) -> Estimate:
    """Estimate an experiment. `to_build` is the share of the database that is missing, `to_copy` is True if a copy is
    missing, and `pace` is the ratio of real to estimated time on this machine, for everything not planned by time."""
    for estimate_own in capabilities.parts("estimate"):
        if expected := estimate_own(scenario, dialect, to_build=to_build, to_copy=to_copy, pace=pace):
            return expected
    assert isinstance(scenario, AnyScenario)
    from stallmark.loaders.load import expected_bytes  # imports SQLAlchemy, which reading records does not need

    contents = scenario.contents
    sizes = [
        (part, expected_bytes(dialect, part, loader_for(part.name).select_scale(contents.scale)))
        for part in find_workload(contents.name).parts
    ]
    data_bytes = sum(size for _, size in sizes)
    check_s = sum(size / (part.check_mib_per_s * MIB) for part, size in sizes)
    build_s = to_build * (BEGIN_S + sum(size / (part.build_mib_per_s * MIB) for part, size in sizes))
    if to_copy and scenario.reset == "restore":
        build_s += data_bytes / COPY_BYTES_PER_S
    order = scenario.run_order()
    timelines = (
        [scenario.timeline(variant) for variant in scenario.variants] if isinstance(scenario, TimedScenario) else []
    )
    load_s, longest_s = max((timeline.end_s for timeline in timelines), default=0.0), None
    if isinstance(scenario, TimedScenario) and any(map(scenario.searched_of, scenario.variants)):
        usual_s = max(map(scenario.usual_s, scenario.variants))
        load_s, longest_s = usual_s, len(order) * (load_s - usual_s)
    estimate = Estimate(
        build_s=pace * build_s,
        runs_s=tuple(
            load_s
            + pace * (check_s + _overhead_s(scenario, planned.variant, data_bytes))
            # Preconditioning is repeated only if the storage changes.
            + _writes_s(scenario, data_bytes)
            * (not scenario.same_storage(planned.variant, before.variant if before else None))
            for before, planned in zip([None, *order], order, strict=False)
        ),
        load_s=load_s,
        at_most=any(timeline.warm_up_limits for timeline in timelines),
        asks=any(variant.before and variant.before.ask for variant in scenario.variants),
        chooses=scenario.curve is not None,
    )
    return estimate if longest_s is None else replace(estimate, longest_s=estimate.total_s + longest_s)


def _overhead_s(scenario: AnyScenario, variant: Variant, data_bytes: int) -> float:
    """Return the seconds of a run outside its planned load, without the check of its data."""
    seconds = RUN_S
    if scenario.reset == "restore":
        seconds += data_bytes / COPY_BYTES_PER_S
    if scenario.start_cache == "prefilled":
        pool = scenario.pool_of(variant)
        seconds += min(data_bytes, pool.resolve(data_bytes) if pool else data_bytes) / PREFILL_BYTES_PER_S
    if probe := scenario.probe:
        steps_s = len(probe.steps()) * (probe.seconds + STEP_S)
        # One probe before the load, and one after it.
        seconds += 2 * (probe.size.resolve(data_bytes) / WRITE_BYTES_PER_S + steps_s)
    if isinstance(scenario, TimedScenario):
        raw = [load for load in scenario.loads_of(variant).values() if isinstance(load, RawLoad)]
        seconds += scenario.most_cells * sum(load.size for load in raw) / WRITE_BYTES_PER_S
    if isinstance(scenario, QueryScenario):
        seconds += _queries_s(scenario, variant, data_bytes)
    return seconds


def _writes_s(scenario: AnyScenario, data_bytes: int) -> float:
    """Return the longest time for preconditioning, which every change of variant needs."""
    if (choice := scenario.precondition) is None:
        return 0.0
    return choice.size.resolve(data_bytes) / WRITE_BYTES_PER_S + choice.rounds * (choice.round + STEP_S)


def _queries_s(scenario: QueryScenario, variant: Variant, data_bytes: int) -> float:
    """Return the time of the queries, none of them longer than its limit."""
    asked, known = scenario.queries, len(scenario.query_streams.queries)
    bytes_per_s = QUERY_EMULATED_BYTES_PER_S if scenario.emulates(variant) else QUERY_READ_BYTES_PER_S
    pool = scenario.pool_of(variant)
    read_bytes = max(0, data_bytes - (pool.resolve(data_bytes) if pool else 0))
    query_s = data_bytes / QUERY_BYTES_PER_S + read_bytes / bytes_per_s
    query_count = len(asked.only or scenario.query_streams.queries) * len(asked.dop or [None])
    queries = {"power": known, "throughput": known * scenario.streams, "each": query_count}
    return min(asked.timeout, query_s) * sum(queries[phase] for phase in asked.phases)
