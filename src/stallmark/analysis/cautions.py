"""The cautions of an experiment: what the reader must not conclude, each only where it applies."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.above_device import above_device
from stallmark.analysis.array_cautions import array_cautions
from stallmark.analysis.ends import ends
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.page_cache import page_cache_under
from stallmark.analysis.points import group, labels, points
from stallmark.analysis.run import RunSummary
from stallmark.analysis.server_cautions import server_cautions
from stallmark.analysis.shallow_history import shallow_histories
from stallmark.analysis.steady.steadiness import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest.course import Collector
from stallmark.stats.thresholds import CHECKPOINTS, GROWTH, LATE, REPLICATES, SCHEDULING_CPU, SCHEDULING_MS

_DERIVED_FROM = {"bank": "TPC-B", "brokerage": "TPC-E", "mail": "Jetstress", "warehouse": "TPC-H"}


class CautionKind(Kind):
    EMULATED = "emulated_device"
    EMULATED_LATE = "emulated_device_late"
    FEW_RUNS = "few_runs"
    SCATTER = "scatter_within_a_run"
    FEW_CHECKPOINTS = "few_checkpoints"
    IRREGULAR_CHECKPOINTS = "irregular_checkpoints"
    UNSTEADY = "figures_of_no_steady_state"
    WARM_UP_MEASURED = "warm_up_measured"
    TOO_SHORT = "too_short_for_steadiness"
    NOT_STEADY_IN_TIME = "not_steady_in_time"
    DERIVED = "derived_workload"
    LOCAL_DRIVER = "driver_on_the_server"
    OWN_ADDRESS = "server_at_the_drivers_address"
    BESIDE = "figures_of_all_loads"
    RESTORED = "restored_before_every_run"
    COLD_START = "cold_start"
    GREW = "database_grew"
    RESUMED = "experiment_resumed"
    CONDITION_REFUSED = "condition_refused"
    CPU_IN_READ_TIME = "cpu_in_read_time"


_GENERAL = {
    CautionKind.SCATTER,
    CautionKind.DERIVED,
    CautionKind.LOCAL_DRIVER,
    CautionKind.OWN_ADDRESS,
    CautionKind.RESTORED,
    CautionKind.COLD_START,
    CautionKind.CPU_IN_READ_TIME,
}
"""True of every experiment of a kind, whatever it measured."""


def cautions(runs: Sequence[RunSummary]) -> list[Finding]:
    """Return the cautions, first what is true of these runs alone. Runs of queries have their own statistics: their
    phases last as long as the queries."""
    statistics = [] if any(run.queries for run in runs) else _statistics(runs)
    found = [
        *ends(run.manifest for run in runs),
        *_emulation(runs),
        *above_device(runs),
        *page_cache_under(run.manifest for run in runs),
        *shallow_histories([run.manifest for run in runs]),
        *array_cautions(runs),
        *server_cautions(runs),
        *statistics,
        *_steadiness(runs),
        *_load(runs),
        *_beside(runs),
        *_storage(runs),
        *_times(runs),
    ]
    return sorted(found, key=lambda one: one.kind in _GENERAL)


def _emulation(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = _steps(runs)
    if emulated := [step for step in steps if step.emulated]:
        yield caution(CautionKind.EMULATED, steps=_names(emulated, runs))
    late = [step for step in steps if (step.storage.late_share or 0) > LATE]
    if late:
        most = max(step.storage.late_share or 0 for step in late)
        yield caution(CautionKind.EMULATED_LATE, steps=_names(late, runs), share=most)


def _statistics(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    found = points(_steps(runs))
    each = [len(point.steps) for point in found]
    if len(found) > 1 and min(each) < REPLICATES:
        yield caution(CautionKind.FEW_RUNS, fewest=min(each), most=max(each))
    if found:
        yield caution(CautionKind.SCATTER)
    few = [step for step in _steps(runs) if step.interval.cycles and step.interval.cycles.count < CHECKPOINTS]
    if few:
        yield caution(CautionKind.FEW_CHECKPOINTS, steps=_names(few, runs))
    irregular = [
        step for step in _steps(runs) if step.interval.cycles and not step.interval.cycles.whole and step not in few
    ]
    if irregular:
        yield caution(CautionKind.IRREGULAR_CHECKPOINTS, steps=_names(irregular, runs))


_BY_STEADINESS = {
    Judgement.NEVER: CautionKind.UNSTEADY,
    Judgement.LATE: CautionKind.WARM_UP_MEASURED,
    Judgement.TOO_SHORT: CautionKind.TOO_SHORT,
}


def _steadiness(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    judged = [(step, step.validity.steadiness.verdict) for step in _steps(runs) if step.validity.steadiness]
    for verdict, kind in _BY_STEADINESS.items():
        if found := [step for step, one in judged if one == verdict]:
            yield caution(kind, steps=_names(found, runs))
    impatient = [step for step in _steps(runs) if step.interval.waited and not step.interval.waited.steady]
    if impatient:
        most = max(step.interval.waited.at_most_s for step in impatient if step.interval.waited)
        yield caution(CautionKind.NOT_STEADY_IN_TIME, steps=_names(impatient, runs), at_most_s=most)


def _load(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    workloads = {run.manifest.workload.name for run in runs}
    for name in sorted(w for w in workloads if w in _DERIVED_FROM):
        yield caution(CautionKind.DERIVED, workload=name, model=_DERIVED_FROM[name])
    alone = [run.manifest for run in runs if not run.manifest.load_machines]
    if any(_is_seen(one.collectors.get("host")) for one in alone):
        yield caution(CautionKind.LOCAL_DRIVER)
    elif any(one.server.at_own_address for one in alone):
        yield caution(CautionKind.OWN_ADDRESS)


def _beside(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    if mixed := [step for step in _steps(runs) if step.beside]:
        others = list(dict.fromkeys(name for step in mixed for name in step.beside))
        sampled = any(step.waits.share for step in mixed)
        yield caution(CautionKind.BESIDE, loads=others, steps=_names(mixed, runs), sampled=sampled)


def _is_seen(host: Collector | None) -> bool:
    """Tell whether the driver saw the CPUs of the server's machine: only of a server of its own machine it does."""
    return host is not None and host.unavailable is None


def _storage(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    real = [run for run in runs if any("data" not in step.emulated_roles for step in run.steps)]
    if any(run.manifest.reset == "restore" for run in real):
        yield caution(CautionKind.RESTORED)
    if any(run.manifest.cache_start == "cold" for run in real):
        yield caution(CautionKind.COLD_START)
    yield from _refused(runs)
    grown = [run for run in runs if run.growth_share is not None and run.growth_share > GROWTH]
    if grown:
        most = max(run.growth_share or 0 for run in grown)
        yield caution(CautionKind.GREW, share=most, runs=[run.title for run in grown])
    for run in runs:
        if (gap_s := run.manifest.resumed_after_s) is not None:
            yield caution(CautionKind.RESUMED, run=run.title, gap_s=gap_s)


def _refused(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    refused = [(run, one) for run in runs for one in run.conditions if one.refused]
    for same in group(refused, lambda pair: (pair[1].name, pair[1].refused)):
        some = [run.title for run, _ in same]
        condition = same[0][1]
        yield caution(CautionKind.CONDITION_REFUSED, condition=condition.name, said=condition.refused, runs=some)


def _times(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    fast = [step for step in _steps(runs) if _includes_scheduling(step)]
    if fast:
        yield caution(CautionKind.CPU_IN_READ_TIME, steps=_names(fast, runs))


def _includes_scheduling(step: StepSummary) -> bool:
    io = step.storage.data
    if io is None or io.read_ms is None:
        return False
    return io.read_ms < SCHEDULING_MS or (step.server.cpu_busy_share or 0) >= SCHEDULING_CPU


def _names(some: Sequence[StepSummary], runs: Sequence[RunSummary]) -> list[str] | None:
    """Return the names of some steps; None where these are all."""
    everything = _steps(runs)
    return None if len(some) == len(everything) else labels(points(some), points(everything))


def _steps(runs: Sequence[RunSummary]) -> list[StepSummary]:
    return [step for run in runs for step in run.steps]
