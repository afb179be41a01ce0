"""The caution on steps whose time in storage was above the device: before an I/O reached the device's own counters."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.points import group, step_names
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest.storage import IoLimit, Role
from stallmark.stats.thresholds import ABOVE, DEVICE_FREE


class AboveKind(Kind):
    ABOVE = "io_above_device"


def above_device(runs: Sequence[RunSummary]) -> list[Finding]:
    """Return a caution for each set of limits on the server's I/O under which steps waited above the device: first the
    one under which they waited most."""
    return sorted(_by_limits(runs), key=lambda one: -max(one.facts["share"]))


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
    return tuple(dict.fromkeys(limit for role in roles for limit in run.manifest.devices.of(role).limits))


def _waited_above(step: StepSummary) -> bool:
    budget = step.cause.budget if step.cause else None
    return budget is not None and budget.storage_share > DEVICE_FREE and budget.above_share > ABOVE
