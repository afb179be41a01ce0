"""What the reader must not conclude, each only where it applies."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.array_cautions import array_cautions
from stallmark.analysis.points import labels, points
from stallmark.analysis.summary import RunSummary, StepSummary
from stallmark.format import listed, percent
from stallmark.stats.thresholds import CHECKPOINTS, GROWTH, LATE, REPLICATES, SCHEDULING_CPU, SCHEDULING_MS

_DERIVED_FROM = {"bank": "TPC-B", "brokerage": "TPC-E", "warehouse": "TPC-H"}


def cautions(runs: Sequence[RunSummary]) -> list[str]:
    """Runs of queries have their own statistics: their phases last as long as the queries take."""
    statistics = [] if any(run.queries for run in runs) else _statistics(runs)
    return [
        *_emulation(runs),
        *array_cautions(runs),
        *statistics,
        *_steadiness(runs),
        *_load(runs),
        *_storage(runs),
        *_times(runs),
    ]


def _emulation(runs: Sequence[RunSummary]) -> Iterator[str]:
    steps = _steps(runs)
    devices = list(dict.fromkeys(step.device for step in steps if step.emulated))
    if devices:
        yield (
            f"Figures of an emulated device ({listed(devices)}) show how the database reacts to a device of "
            "that "
            "slowness. They say nothing about any real device."
        )
    late = [step for step in steps if (step.device_late_share or 0) > LATE]
    if late:
        yield (
            f"In {_names(late, runs)} the real device was slower than the emulated one for up to "
            f"{percent(max(step.device_late_share or 0 for step in late))} of the I/Os: the emulated device "
            "was "
            "slower than it says."
        )


def _statistics(runs: Sequence[RunSummary]) -> Iterator[str]:
    found = points(_steps(runs))
    fewest = min((len(point.steps) for point in found), default=0)
    if 0 < fewest < REPLICATES and len(found) > 1:
        runs_each = "One run" if fewest == 1 else f"{fewest} runs"
        yield (
            f"{runs_each} per variant {'is' if fewest == 1 else 'are'} indicative: another run of the same "
            "variant may "
            f"differ by several percent. A verdict needs {REPLICATES} or more."
        )
    if found:
        yield "The scatter of seconds within a run is not the scatter between runs, and does not bound it."
    few = [step for step in _steps(runs) if step.cycles and step.cycles.count < CHECKPOINTS]
    if few:
        yield (
            f"The measured interval of {_names(few, runs)} held fewer than {CHECKPOINTS} whole checkpoint cycles: how "
            "much was written, and when, partly depends on where the interval began."
        )
    irregular = [step for step in _steps(runs) if step.cycles and not step.cycles.whole and step not in few]
    if irregular:
        yield (
            f"Checkpoints came too irregularly in {_names(irregular, runs)} for its figures to be over whole cycles."
        )


def _steadiness(runs: Sequence[RunSummary]) -> Iterator[str]:
    judged = [(step, step.steadiness) for step in _steps(runs) if step.steadiness]
    never = [step for step, found in judged if found.verdict == "never became steady"]
    if never:
        yield (
            f"No steady state was reached in {_names(never, runs)}: its figures depend on when they were taken, and "
            "other minutes would give others."
        )
    late = [step for step, found in judged if found.verdict == "became steady late"]
    if late:
        yield (
            f"A part of the warm-up was measured in {_names(late, runs)}: wait longer, or until it is steady "
            "(warm_up: {until: steady, at_most: …})."
        )
    short = [step for step, found in judged if found.verdict == "too short to tell"]
    if short:
        yield f"Too little was measured to tell whether it was steady in {_names(short, runs)}."
    impatient = [step for step in _steps(runs) if step.waited and not step.waited.steady]
    if impatient:
        most = max(step.waited.at_most_s for step in impatient if step.waited)
        yield (
            f"A steady state was waited for and not seen within {most:g} s in {_names(impatient, runs)}: "
            f"{'it was' if len(impatient) == 1 else 'they were'} measured all the same."
        )


def _load(runs: Sequence[RunSummary]) -> Iterator[str]:
    workloads = {run.manifest.workload.name for run in runs}
    for name in sorted(w for w in workloads if w in _DERIVED_FROM):
        model = _DERIVED_FROM[name]
        yield (f"The workload {name} is derived from {model} and not comparable with published {model} results.")
    if any(step.cpu_busy_share is not None for step in _steps(runs)):
        yield ("The driver ran on the server's machine and used its CPUs: a load from elsewhere would leave it more.")


def _storage(runs: Sequence[RunSummary]) -> Iterator[str]:
    real = [run for run in runs if any("data" not in step.emulated_roles for step in run.steps)]
    if any(run.manifest.reset == "restore" for run in real):
        yield (
            "Every run on a real device began with a restored database: restoring writes anew what a storage "
            "array "
            "caches and tiers, so an array had to begin again as well."
        )
    if any(run.manifest.cache_start == "cold" for run in real):
        yield ("A cold start empties the server's caches. A cache inside the device cannot be emptied from here.")
    grown = [run for run in runs if run.growth_share is not None and run.growth_share > GROWTH]
    if grown:
        most = max(run.growth_share or 0 for run in grown)
        yield (f"The database grew by up to {percent(most)} within a run ({listed([run.title for run in grown])}).")


def _times(runs: Sequence[RunSummary]) -> Iterator[str]:
    fast = [step for step in _steps(runs) if _includes_scheduling(step)]
    if fast:
        yield (
            f"The server's mean read time in {_names(fast, runs)} includes waiting for a CPU (it is below "
            f"{SCHEDULING_MS:g} ms, or the CPUs were more than {percent(SCHEDULING_CPU)} busy): it is not "
            "the "
            "device's."
        )


def _includes_scheduling(step: StepSummary) -> bool:
    io = step.data_io
    if io is None or io.read_ms is None:
        return False
    return io.read_ms < SCHEDULING_MS or (step.cpu_busy_share or 0) >= SCHEDULING_CPU


def _names(some: Sequence[StepSummary], runs: Sequence[RunSummary]) -> str:
    everything = _steps(runs)
    if len(some) == len(everything):
        return "every step"
    return listed(labels(points(some), points(everything)))


def _steps(runs: Sequence[RunSummary]) -> list[StepSummary]:
    return [step for run in runs for step in run.steps]
