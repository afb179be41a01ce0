"""The cautions of an experiment: conclusions that the reader must not draw, each only if it applies."""

import math
from collections.abc import Iterable, Iterator, Sequence

from stallmark import capabilities
from stallmark.analysis.environment_cautions import above_device, array_cautions, server_cautions, shallow_histories
from stallmark.analysis.finding import ExperimentKind, Finding, Kind, caution, early_ends
from stallmark.analysis.metrics import group, points, step_names
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import is_data_emulated
from stallmark.record.manifest import FILLED_BY, Manifest
from stallmark.record.manifest.course import POSTGRESQL, Collector
from stallmark.record.manifest.storage import DirectIo
from stallmark.stats.thresholds import (
    AHEAD,
    CHECKPOINTS,
    GROWTH,
    LATE,
    MISPLACED,
    REPLICATES,
    SCHEDULING_CPU,
    SCHEDULING_MS,
)

IO_METHOD, IN_THE_SESSION = "io_method", "sync"
"""PostgreSQL's setting from version 18 on, and its value if each session does its own reads and waits for them."""


class CautionKind(Kind):
    EMULATED = "emulated_device"
    EMULATED_LATE = "emulated_device_late"
    NOT_SHOWN = "parts_not_shown"
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
    NOT_RESET = "runs_not_reset"
    COLD_START = "cold_start"
    GREW = "database_grew"
    RESUMED = "experiment_resumed"
    CONDITION_REFUSED = "condition_refused"
    CPU_IN_READ_TIME = "cpu_in_read_time"
    READS_AHEAD = "reads_begun_ahead"
    COUNTED_AT_END = "io_counted_at_the_end"


_GENERAL = {
    CautionKind.SCATTER,
    CautionKind.DERIVED,
    CautionKind.LOCAL_DRIVER,
    CautionKind.OWN_ADDRESS,
    CautionKind.RESTORED,
    CautionKind.NOT_RESET,
    CautionKind.COLD_START,
    CautionKind.CPU_IN_READ_TIME,
}
"""True of every experiment of a kind, whatever it measured."""


def cautions(runs: Sequence[RunSummary]) -> list[Finding]:
    """Return the cautions, specific ones first. Runs of queries have their own statistics: the length of their phases
    is that of the queries."""
    statistics = [] if any(run.queries for run in runs) else _statistics(runs)
    raised = [
        *early_ends(run.manifest for run in runs),
        *_emulation(runs),
        *_not_shown(runs),
        *above_device(runs),
        *page_cache_cautions_of_runs(run.manifest for run in runs),
        *shallow_histories([run.manifest for run in runs]),
        *array_cautions(runs),
        *server_cautions(runs),
        *statistics,
        *_steadiness(runs),
        *_load(runs),
        *_other_loads(runs),
        *_arrivals(runs),
        *_storage(runs),
        *_times(runs),
    ]
    return sorted(raised, key=lambda raised_caution: raised_caution.kind in _GENERAL)


def _emulation(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = _steps(runs)
    if emulated := [step for step in steps if step.emulated]:
        yield caution(CautionKind.EMULATED, steps=_names(emulated, runs))
    late = [step for step in steps if (step.storage.late_share or 0) > LATE]
    if late:
        most = max(step.storage.late_share or 0 for step in late)
        yield caution(CautionKind.EMULATED_LATE, steps=_names(late, runs), share=most)


def _not_shown(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    by = {name for run in runs for field, name in FILLED_BY.items() if getattr(run.manifest, field)}
    if lacking := capabilities.missing(by):
        yield caution(CautionKind.NOT_SHOWN, capabilities=lacking)


def _statistics(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    step_points = points(_steps(runs))
    runs_per_point = [len(point.steps) for point in step_points]
    # A single step is not compared with anything.
    if len(step_points) > 1 and min(runs_per_point) < REPLICATES:
        yield caution(CautionKind.FEW_RUNS, fewest=min(runs_per_point), most=max(runs_per_point))
    if step_points:
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
        if affected := [step for step, verdict_of_step in judged if verdict_of_step == verdict]:
            yield caution(kind, steps=_names(affected, runs))
    impatient = [step for step in _steps(runs) if step.interval.waited and not step.interval.waited.steady]
    if impatient:
        most = max(step.interval.waited.at_most_s for step in impatient if step.interval.waited)
        yield caution(CautionKind.NOT_STEADY_IN_TIME, steps=_names(impatient, runs), at_most_s=most)


def _load(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    workloads = {run.manifest.workload.name: run.manifest.workload.benchmark for run in runs}
    for name, model in sorted(workloads.items()):
        if model:
            yield caution(CautionKind.DERIVED, workload=name, model=model)
    alone = [run for run in runs if not run.manifest.load_machines and run.steps]
    if local := [run for run in alone if _is_seen(run.manifest.collectors.get("host"))]:
        yield caution(CautionKind.LOCAL_DRIVER, steps=_names(_steps(local), runs))
    elif any(run.manifest.server.at_own_address for run in alone):
        yield caution(CautionKind.OWN_ADDRESS)


def _other_loads(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    if mixed := [step for step in _steps(runs) if step.beside]:
        others = list(dict.fromkeys(name for step in mixed for name in step.beside))
        sampled = any(step.waits.share for step in mixed)
        yield caution(CautionKind.BESIDE, loads=others, steps=_names(mixed, runs), sampled=sampled)


def _arrivals(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    given = [step for run in runs if run.is_rate_given for step in run.steps]
    # A single step is not compared with anything.
    if given and len(points(_steps(runs))) > 1:
        yield caution(ExperimentKind.RATE_GIVEN, steps=_names(given, runs))


def _is_seen(host: Collector | None) -> bool:
    """Return True if the driver saw the CPUs of the server's machine, which it does only on its own machine."""
    return host is not None and host.unavailable is None


def _storage(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    real = [run for run in runs if any("data" not in step.emulated_roles for step in run.steps)]
    if restored := [run for run in real if (run.manifest.reset or "").startswith("restore")]:
        yield caution(CautionKind.RESTORED, steps=_names(_steps(restored), real))
    kept = [run for run in runs if run.manifest.reset == "continue" and _may_write(run.manifest) and run.steps]
    if len(runs) > 1 and kept:
        yield caution(CautionKind.NOT_RESET, steps=_names(_steps(kept), runs))
    if any(run.manifest.cache_start == "cold" for run in real):
        yield caution(CautionKind.COLD_START)
    yield from _refused_conditions(runs)
    grown = [run for run in runs if run.growth_share is not None and run.growth_share > GROWTH]
    if grown:
        most = max(run.growth_share or 0 for run in grown)
        yield caution(CautionKind.GREW, share=most, runs=[run.title for run in grown])
    for run in runs:
        if (gap_s := run.manifest.resumed_after_s) is not None:
            yield caution(CautionKind.RESUMED, run=run.title, gap_s=gap_s)


def _may_write(manifest: Manifest) -> bool:
    """Return False if all transactions of a run are known to read only."""
    workloads = [manifest.workload, *(load.workload for load in manifest.loads if load.workload)]
    known = [transaction for workload in workloads for transaction in workload.transactions]
    return not known or not all(transaction.reads_only for transaction in known)


def _refused_conditions(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    refused = [(run, condition) for run in runs for condition in run.conditions if condition.refused]
    for same in group(refused, lambda pair: (pair[1].name, pair[1].refused)):
        titles = [run.title for run, _ in same]
        condition = same[0][1]
        yield caution(CautionKind.CONDITION_REFUSED, condition=condition.name, said=condition.refused, runs=titles)


def _times(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    fast = [step for step in _steps(runs) if _includes_scheduling(step)]
    if fast:
        yield caution(CautionKind.CPU_IN_READ_TIME, steps=_names(fast, runs))
    # SQL Server counts an I/O of a file at once, PostgreSQL a session's when its transaction ends.
    at_end = [step for run in runs if run.manifest.server.product == POSTGRESQL for step in run.steps]
    if late := [step for step in at_end if step.storage.data and _misplaced(step)[0] > MISPLACED]:
        worst = max(late, key=_misplaced)
        _, seconds = _misplaced(worst)
        yield caution(
            CautionKind.COUNTED_AT_END,
            steps=_names(late, runs),
            longest_s=seconds,
            measured_s=worst.interval.measured_s,
        )
    begins_ahead = [run for run in runs if _io_method(run) != IN_THE_SESSION]
    for same in group(begins_ahead, _io_method):
        if ahead := [step for run in same for step in run.steps if _may_be_waits(step)]:
            times = max((times for step in ahead if (times := _device_to_server(step))), default=None)
            yield caution(CautionKind.READS_AHEAD, method=_io_method(same[0]), steps=_names(ahead, runs), times=times)


def _io_method(run: RunSummary) -> str:
    return run.manifest.server.settings.get(IO_METHOD, IN_THE_SESSION)


def _includes_scheduling(step: StepSummary) -> bool:
    io = step.storage.data
    if io is None or io.read_ms is None:
        return False
    return io.read_ms < SCHEDULING_MS or (step.server.cpu_busy_share or 0) >= SCHEDULING_CPU


def _misplaced(step: StepSummary) -> tuple[float, float]:
    """Return the approximate share of the I/O that is counted in another interval than it was done in, if I/O is
    counted when a transaction ends, and the seconds that a transaction took: for streams the slowest query, for users
    the mean.

    I/O counted too early and I/O counted too late are equal on average, and cancel out among many sessions. Example: 16
    users whose transactions take a tenth of the interval misplace 1/40, a single stream with such queries 1/10.
    """
    took = [((step.latency.mean_ms or 0.0) / 1000, step.users)]
    if step.streams:
        took.append((max((query.seconds for query in step.streams.queries), default=0.0), step.streams.streams))
    return max((seconds / step.interval.measured_s / math.sqrt(max(1, many)), seconds) for seconds, many in took)


def _may_be_waits(step: StepSummary) -> bool:
    """Return True if the server's time of reads may be less than they took: the device took longer, or is not seen."""
    times = _device_to_server(step)
    return step.storage.data is not None and step.storage.data.read_ms is not None and (times is None or times > AHEAD)


def _device_to_server(step: StepSummary) -> float | None:
    """Return the factor by which a read took longer at the device than for the server, or None if either is unknown."""
    server, device = step.storage.data, step.storage.data_device
    if server is None or device is None or not server.read_ms or device.read_ms is None:
        return None
    return device.read_ms / server.read_ms


def _names(steps: Sequence[StepSummary], runs: Sequence[RunSummary]) -> list[str] | None:
    """Return the names of some steps, or None if these are all steps."""
    return step_names(steps, _steps(runs))


def _steps(runs: Sequence[RunSummary]) -> list[StepSummary]:
    return [step for run in runs for step in run.steps]


# Cautions on storage whose reads the page cache of this machine may have answered.


class PageCacheKind(Kind):
    IN_CACHE = "io_in_page_cache"
    ON_LOOP = "file_of_loop_in_page_cache"
    NOT_SEEN = "io_perhaps_in_page_cache"


def page_cache_cautions(tried: Iterable[tuple[str, DirectIo | None]]) -> Iterator[Finding]:
    """Yield a caution for each way in which direct I/O may have ended in memory.

    `tried` holds places with the outcome of direct I/O there, or None if it was not tried.
    """
    places: dict[DirectIo, list[str]] = {}
    for place, outcome in tried:
        if outcome is not None and outcome.goes != "past" and place not in places.setdefault(outcome, []):
            places[outcome].append(place)
    for outcome, paths in places.items():
        if outcome.goes == "through":
            yield caution(PageCacheKind.IN_CACHE, places=paths, file_system=outcome.file_system)
        elif outcome.loop is not None:
            yield caution(PageCacheKind.ON_LOOP, places=paths, loop=outcome.loop)
        else:
            yield caution(PageCacheKind.NOT_SEEN, places=paths, file_system=outcome.file_system)


def page_cache_cautions_of_runs(manifests: Iterable[Manifest]) -> Iterator[Finding]:
    """Yield the cautions on the files of data, of raw loads and of probes of some runs."""
    return page_cache_cautions(pair for manifest in manifests for pair in _direct_io_trials(manifest))


def _direct_io_trials(manifest: Manifest) -> Iterator[tuple[str, DirectIo | None]]:
    data = manifest.devices.folders.get("data", "")
    if not is_data_emulated(manifest):
        yield data, manifest.devices.direct_io
    for load in manifest.loads:
        if load.raw:
            yield load.raw.folder or data, load.raw.direct_io
    for probe in (manifest.probes.before, manifest.probes.after):
        if probe:
            yield probe.place, probe.direct_io
