"""The split of I/O in a change: what single I/Os took longer, and what came of another number of them.

A part is number · time, and Δ(number · time) = Δnumber · mean time + Δtime · mean number. Only the second is the
device's doing: a larger pool needs fewer reads and evicts fewer dirty pages, another load commits more or less often.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallmark.analysis.bottleneck.summary import STORAGE
from stallmark.analysis.cause.summary import Evidence
from stallmark.analysis.points import sampling_uncertainty
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.stats.thresholds import RARE


@dataclass(frozen=True)
class Split:
    """Shares of the change in response time, by part of STORAGE."""

    device: Mapping[str, float]  # what single I/Os took longer or shorter
    number: Mapping[str, float]  # what came of more or fewer of them
    unknown: float = 0.0  # of parts whose I/Os were not counted or timed
    undivided: float = 0.0  # above the device or waiting for a CPU

    @property
    def io(self) -> float:
        return sum(self.device.values())

    @property
    def fewer(self) -> float:
        return sum(self.number.values())


def split(a: Sequence[StepSummary], b: Sequence[StepSummary], parts: Sequence[Evidence], change: float) -> Split:
    """Split a `change` in response time that is not 0."""
    by_name = {part.part: part for part in parts}
    device, number, unknown = dict.fromkeys(STORAGE, 0.0), dict.fromkeys(STORAGE, 0.0), 0.0
    for name in STORAGE:
        part = by_name.get(name)
        if part is None:
            continue
        found = _of_reads(a, b, part) if name == "read" else _of_single(name, a, b, part)
        if found is None:
            unknown += part.change / change
        else:
            device[name], number[name] = found / change, (part.change - found) / change
    undivided = by_name["unknown"].change / change if "unknown" in by_name else 0.0
    return Split(device, number, unknown, undivided)


def _of_reads(a: Sequence[StepSummary], b: Sequence[StepSummary], part: Evidence) -> float | None:
    """Return the device's part in ms, by the number of reads per transaction, all of which somebody waits for; None
    where that number is not known. Where one side hardly reads, samples of its sessions do not tell how long a read
    takes. Then the server's time of single reads is used."""
    before, after = (_mean([step.storage.reads_per_transaction for step in side]) for side in (a, b))
    if before is None or after is None:
        return None
    if min(before, after) < RARE * max(before, after) or not before:
        return _of_single("read", a, b, part)
    if abs(after - before) <= before * sampling_uncertainty(a, b):  # not shown: their counts may be the same
        return part.change
    return part.change - (after - before) * (part.a / before + part.b / after) / 2


def _of_single(name: str, a: Sequence[StepSummary], b: Sequence[StepSummary], part: Evidence) -> float | None:
    """Return the device's part in ms, by the time of single I/Os; None where they were not timed.

    Their number is what was waited for ÷ that time. The server's counts take in more: a checkpoint writes what
    evictions did not, and one sync of the log ends the waiting of many. The part is no more than the whole changed. It
    is 0 where it changed the other way, or one side has no such I/O.
    """
    apart = all(step.storage.data_device and step.storage.wal_device for step in (*a, *b))
    apart = apart and not any(_is_above(name, step) for step in (*a, *b))
    sides = [[_single(name, step, apart) for step in side] for side in (a, b)]
    if not all(any(counted for counted, _ in side) for side in sides):
        return 0.0
    before, after = (_mean([ms for counted, ms in side if counted]) for side in sides)
    if before is None or after is None or not (before or after):
        return None
    numbers = [ms / single for ms, single in ((part.a, before), (part.b, after)) if single]
    rare = min(numbers) < RARE * max(numbers)
    found = (after - before) * (min(numbers) if rare else sum(numbers) / len(numbers))
    return max(0.0, min(found, part.change)) if part.change > 0 else min(0.0, max(found, part.change))


def _single(name: str, step: StepSummary, apart: bool) -> tuple[bool, float | None]:
    """Return whether there was any such I/O, and how long a single one took (ms). I/O that was not counted is taken to
    have been.

    Of the log one sync with its writes, or one write where there are no syncs. Writes are timed by their device, as the
    part is the device's, where data files and log are counted `apart`, else by the server, which also times what is
    above the device.
    """
    if name == "log":
        log = step.storage.wal_device if apart else step.storage.wal
        return (bool(log.syncs or log.writes), _flush_ms(log)) if log else (True, None)
    if name == "read":
        return (bool(step.storage.data.reads), step.storage.data.read_ms) if step.storage.data else (True, None)
    data = step.storage.data_device if apart else step.storage.data
    return (bool(data.writes), data.write_ms) if data else (True, None)


def _is_above(name: str, step: StepSummary) -> bool:
    budget = step.cause.budget if step.cause else None
    return budget is not None and budget.is_above(name)


def _flush_ms(log: IoSummary) -> float | None:
    if (log.write_ms is None and log.sync_ms is None) or not (log.syncs or log.writes):
        return None
    total_ms = log.writes * (log.write_ms or 0.0) + (log.syncs or 0) * (log.sync_ms or 0.0)
    return total_ms / (log.syncs or log.writes)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
