"""Cautions that come from the storage and the data on it: the array, time above the device, a short history."""

from collections.abc import Iterator, Sequence
from typing import Literal

from stallmark.analysis.compare.settings import drifts, folders_on_one_disk, one_pool, probe_on_other_device, probes_of
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.metrics import group, step_names
from stallmark.analysis.probe_comparison import DRIFTED
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import IoLimit, Role
from stallmark.record.manifest.workload import TradeHistory, trade_history
from stallmark.stats.thresholds import ABOVE, DEEP_BYTES, DEEP_CUSTOMERS, DEVICE_FREE, PROBE_SMALL_BYTES, SHALLOW_DAYS

# The caution on steps whose time in storage was above the device: before an I/O reached the device's own counters.


class AboveKind(Kind):
    ABOVE = "io_above_device"


def above_device(runs: Sequence[RunSummary]) -> list[Finding]:
    """Return a caution for each set of limits on the server's I/O under which steps waited above the device: first the
    one under which they waited most."""
    return sorted(_by_limits(runs), key=lambda finding: -max(finding.facts["share"]))


def _by_limits(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    for same in group(runs, _limits):
        waited = [step for run in same for step in run.steps if _waited_above(step)]
        if not waited:
            continue
        shares = [step.cause.budget.above_share for step in waited if step.cause and step.cause.budget]
        yield caution(
            AboveKind.ABOVE,
            steps=step_names(waited, steps),
            share=[min(shares), max(shares)],
            limits=[limit.model_dump() for limit in _limits(same[0])],
        )


def _limits(run: RunSummary) -> tuple[IoLimit, ...]:
    roles: tuple[Role, ...] = ("data", "wal")
    return tuple(dict.fromkeys(limit for role in roles for limit in run.manifest.devices.for_role(role).limits))


def _waited_above(step: StepSummary) -> bool:
    budget = step.cause.budget if step.cause else None
    return budget is not None and budget.storage_share > DEVICE_FREE and budget.above_share > ABOVE


# The caution on a brokerage whose history of trades is too short to judge memory or flash by.

Varied = Literal["memory", "flash"]


class HistoryKind(Kind):
    SHALLOW = "shallow_history"


def shallow_histories(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield a caution for each scale on which memory or flash was varied and the history is too short for it."""
    for same in group(manifests, _history):
        if shallow := shallow_history(_history(same[0]), _varied_layers(same), same[0].server.product):
            yield shallow


def shallow_history(history: TradeHistory | None, varied: Sequence[Varied], product: str) -> Finding | None:
    """Return the caution, or None if the history is deep enough, or nothing is `varied` that is judged by it."""
    if history is None or history.days >= SHALLOW_DAYS or not varied:
        return None
    return caution(
        HistoryKind.SHALLOW,
        customers=history.customers,
        days=history.days,
        trades_per_account=history.trades_per_account,
        varied=list(varied),
        least_days=SHALLOW_DAYS,
        with_customers=DEEP_CUSTOMERS,
        least_bytes=DEEP_BYTES.get(product),
    )


def _history(manifest: Manifest) -> TradeHistory | None:
    return trade_history(manifest.workload.name, manifest.workload.scale)


def _varied_layers(manifests: Sequence[Manifest]) -> list[Varied]:
    first, *others = manifests
    # Of a memory curve there may be one size so far.
    memory = isinstance(first.scenario.buffer_pool, dict) or not all(one_pool(first, other) for other in others)
    flash = len({tuple(flash_of(manifest)) for manifest in manifests}) > 1
    return [*(["memory"] if memory else []), *(["flash"] if flash else [])]  # type: ignore[list-item]


# Cautions that come from the storage itself: the active set, flash, and changes of storage during an experiment.


class ArrayKind(Kind):
    ACTIVE = "active_set"
    SIZE_UNKNOWN = "array_size_unknown"
    FLASH_WARMING = "flash_warming_up"
    SMALL_PROBE = "probe_fits_into_an_array"
    NOT_PRECONDITIONED = "not_preconditioned"
    DRIFTED = "storage_changed"


def array_cautions(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    yield from _active(runs)
    yield from _unknown_array_sizes(runs)
    yield from _warming(runs)
    yield from _small_probes(runs)
    yield from folders_on_one_disk(runs)
    for run in runs:
        if mixed := probe_on_other_device(run):
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
        for between, drift in drifts(same):
            if drift.verdict == DRIFTED:
                yield caution(ArrayKind.DRIFTED, between=list(between), how=drift.finding)


def _unknown_array_sizes(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn where hooks reconfigure real arrays between variants, and no size of DRAM or flash is known."""
    arrays = [run.manifest for run in runs if not is_data_emulated(run.manifest)]
    if any(array.hook for array in arrays) and not any(dram_of(array) or flash_of(array) for array in arrays):
        yield caution(ArrayKind.SIZE_UNKNOWN)


def _warming(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    if warming := [step for step in steps if step.flash_warming]:
        yield caution(ArrayKind.FLASH_WARMING, steps=step_names(warming, steps))


def _small_probes(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn of small files if the array's memory is unknown; else each comparison of probes states what memory may
    hide."""
    unknown = [run for run in runs if dram_of(run.manifest) is None]
    sizes = [probe.file_bytes for run in unknown for probe in probes_of(run).values() if not probe.emulated]
    if sizes and min(sizes) < PROBE_SMALL_BYTES:
        yield caution(ArrayKind.SMALL_PROBE, file_bytes=min(sizes))


def _active(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    warned = [(warning, step) for step in steps if step.storage.active for warning in step.storage.active.warnings]
    for warning in dict.fromkeys(warning_ for warning_, _ in warned):
        yield caution(
            ArrayKind.ACTIVE,
            steps=step_names([step for other, step in warned if other == warning], steps),
            warning=warning,
        )
