"""Cautions that come from the storage itself: the active set, flash, and changes of storage during an experiment."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.compare.storage import drifts, mixed_up, on_one_disk, probes_of
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.points import group, step_names
from stallmark.analysis.probe.drift import DRIFTED
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.stats.thresholds import PROBE_SMALL_BYTES


class ArrayKind(Kind):
    ACTIVE = "active_set"
    SIZE_UNKNOWN = "array_size_unknown"
    FLASH_WARMING = "flash_warming_up"
    SMALL_PROBE = "probe_fits_into_an_array"
    NOT_PRECONDITIONED = "not_preconditioned"
    DRIFTED = "storage_changed"


def array_cautions(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    yield from _active(runs)
    yield from _unsized(runs)
    yield from _warming(runs)
    yield from _small_probes(runs)
    yield from on_one_disk(runs)
    for run in runs:
        if mixed := mixed_up(run):
            yield mixed
        conditioned = run.manifest.precondition
        if conditioned and not conditioned.steady:
            rounds_ms = conditioned.rounds_ms
            yield caution(
                ArrayKind.NOT_PRECONDITIONED,
                run=run.title,
                file_bytes=conditioned.size_bytes,
                rounds=len(rounds_ms),
                write_ms=[rounds_ms[0], rounds_ms[-1]],
            )
    for same in group(runs, lambda run: run.manifest.variant.name):
        for between, found in drifts(same):
            if found.verdict == DRIFTED:
                yield caution(ArrayKind.DRIFTED, between=list(between), how=found.finding)


def _unsized(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn where hooks reconfigure real arrays between variants, and no size of DRAM or flash is known."""
    arrays = [run.manifest for run in runs if not is_data_emulated(run.manifest)]
    if any(one.hook for one in arrays) and not any(dram_of(one) or flash_of(one) for one in arrays):
        yield caution(ArrayKind.SIZE_UNKNOWN)


def _warming(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    if warming := [step for step in steps if step.flash_warming]:
        yield caution(ArrayKind.FLASH_WARMING, steps=step_names(warming, steps))


def _small_probes(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn of small files where the array's memory is not known; else each comparison of probes says what it hides."""
    unknown = [run for run in runs if dram_of(run.manifest) is None]
    sizes = [one.file_bytes for run in unknown for one in probes_of(run).values() if not one.emulated]
    if sizes and min(sizes) < PROBE_SMALL_BYTES:
        yield caution(ArrayKind.SMALL_PROBE, file_bytes=min(sizes))


def _active(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    warned = [(one, step) for step in steps if step.storage.active for one in step.storage.active.warnings]
    for warning in dict.fromkeys(one for one, _ in warned):
        yield caution(
            ArrayKind.ACTIVE, steps=step_names([step for one, step in warned if one == warning], steps), warning=warning
        )
