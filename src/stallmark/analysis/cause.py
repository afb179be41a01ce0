"""The cause of a difference between two sides: the change of the response time, divided into its parts.

In a closed loop throughput is users ÷ (response time + think time). So what changed the response time changed
throughput, and the parts of that change are its causes, by their size. Storage accounts for the part that was spent in
I/O, and there only for slower single I/Os: fewer I/Os come from the buffer pool (cause_evidence.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.cause_evidence import (
    Cause,
    CauseKind,
    ChangeKind,
    ComparedFigure,
    Evidence,
    Split,
    Storage,
    compare_figure,
    gather_evidence,
    split_change,
)
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.prediction import check_model
from stallmark.analysis.step_summary import PARTS, STORAGE, Source, StepSummary
from stallmark.stats import inference as statistics
from stallmark.stats.thresholds import ABOVE, CAUSE_LITTLE, CAUSE_MOST, CONFIDENCE, DEVICE_FREE, SAME

_NUMBERS = {"read": ComparedFigure.READS, "log": ComparedFigure.SYNCS, "other_io": ComparedFigure.WRITES}
_KINDS = {
    Storage.CAUSE: CauseKind.STORAGE,
    Storage.NOT_THE_CAUSE: CauseKind.NOT_STORAGE,
    Storage.ONE_OF_SEVERAL: CauseKind.ONE_OF_SEVERAL,
}


def explain(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool = False) -> Cause:
    """Return the cause of the difference of B from A. The sides are steps of repeated runs; if `paired`, the n-th runs
    were made together."""
    figures = gather_evidence(a, b, paired)
    tests = [*check_model(a, b), *check_model(b, a)]
    if not a or not b or any(step.budget is None for step in (*a, *b)):
        return Cause(Storage.NOT_KNOWN, caution(CauseKind.NOT_LOOKED_AT), [], figures, tests)
    whole = compare_figure(ComparedFigure.RESPONSE, _response_ms, a, b, paired)
    assert whole is not None
    shown = _has_changed(whole, a, b, paired)
    parts = _compare_parts(a, b, paired, whole, shown)
    cautions = list(_cautions(a, b, parts))
    facts = {"response_ms": [whole.a, whole.b]}
    # Without a shown change there is no cause, but little I/O on both sides still rules storage out.
    if not shown:
        level = [_storage_share(side) for side in (a, b)]
        storage = Storage.NOT_THE_CAUSE if max(level) <= DEVICE_FREE else Storage.NOT_KNOWN
        finding = info(CauseKind.UNCHANGED, io_share=level, **facts)
        if storage == Storage.NOT_THE_CAUSE:
            finding = info(CauseKind.LITTLE_IO, io_share=level, **facts, **_facts_besides_io(whole, parts, figures))
        return Cause(storage, finding, [whole, *parts], figures, tests, cautions)
    shares = split_change(a, b, parts, whole.change)
    storage = _judge_storage(shares)
    if storage == Storage.NOT_KNOWN:
        undivided = abs(shares.undivided) > abs(shares.unknown)
        kind = CauseKind.NOT_DIVIDED if undivided else CauseKind.NOT_SPLIT
        finding = caution(kind, unknown_share=shares.undivided if undivided else shares.unknown, **facts)
        return Cause(storage, finding, [whole, *parts], figures, tests, cautions)
    io_reason = _above_reason(a, b, paired, shares) or _storage_reason(parts, figures, whole.change, shares)
    others = [] if storage == Storage.CAUSE else list(_other_reasons(whole, parts, figures, shares))
    # The same reason twice would read as two causes.
    if storage == Storage.ONE_OF_SEVERAL and others == [io_reason]:
        others = []
    finding = info(_KINDS[storage], io_share=shares.by_device, io_reason=io_reason, others=others, **facts)
    if storage == Storage.CAUSE and not _is_certain(parts, whole.change):
        cautions.append(caution(CauseKind.UNCERTAIN))
    return Cause(storage, finding, [whole, *parts], figures, tests, cautions)


def _compare_parts(
    a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool, whole: Evidence, shown: bool
) -> list[Evidence]:
    """Compare the parts of the response time. Shares are given only if the total change is shown: noise has no
    parts."""
    compared = []
    for name in PARTS:
        part = compare_figure(ComparedFigure.PART, partial(_part_ms, name), a, b, paired, part=name)
        if part and (part.a or part.b):
            compared.append(replace(part, share=part.change / whole.change if shown else None))
    return compared


def _has_changed(whole: Evidence, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> bool:
    """Return True if the response time changed beyond run-to-run variation, on logarithms as throughput is compared.
    Single runs must differ by more than such runs usually do."""
    if min(len(a), len(b)) < 2:
        return abs(whole.change) > SAME * min(whole.a, whole.b)
    both = [np.log([response_ms for step in side if (response_ms := _response_ms(step))]) for side in (a, b)]
    compare = statistics.paired if paired and len(a) == len(b) else statistics.welch
    return float(compare(*both).p()) <= 1 - CONFIDENCE


def _judge_storage(shares: Split) -> Storage:
    """Judge storage; NOT_KNOWN if the parts that could not be split would change the answer."""
    with_all = _judge_share(shares.by_device + shares.unknown + shares.undivided)
    return with_all if with_all == _judge_share(shares.by_device) else Storage.NOT_KNOWN


def _judge_share(share: float) -> Storage:
    if share >= CAUSE_MOST:
        return Storage.CAUSE
    return Storage.NOT_THE_CAUSE if share <= CAUSE_LITTLE else Storage.ONE_OF_SEVERAL


def _is_certain(parts: Sequence[Evidence], change: float) -> bool:
    """Return True if the interval of one part of I/O shows a change in the direction of the total. True for single
    runs, which have no intervals."""
    ends = [(p.low, p.high) for p in parts if p.part in STORAGE]
    return any(low is None or high is None or (low > 0 if change > 0 else high < 0) for low, high in ends)


def _facts_besides_io(whole: Evidence, parts: Sequence[Evidence], figures: Sequence[Evidence]) -> dict[str, object]:
    """Return the largest part outside I/O with its share of B's response time, and the CPU use of both sides."""
    other = max((p for p in parts if p.part not in (*STORAGE, "unknown")), key=lambda p: p.b, default=None)
    cpu = _find(figures, ComparedFigure.CPU_BUSY)
    return {
        "other_part": other.part if other else None,
        "other_share": other.b / whole.b if other else None,
        "cpu_share": [cpu.a, cpu.b] if cpu else None,
    }


def _above_reason(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool, shares: Split) -> Finding | None:
    """Return the part of I/O that the device changed most, if it changed above the device, else None."""
    most = max(shares.device, key=lambda name: shares.device[name])
    part = compare_figure(ComparedFigure.PART, partial(_part_ms, most), a, b, paired)
    above = compare_figure(ComparedFigure.ABOVE, partial(_above_ms, most), a, b, paired)
    # The device's reason stands unless most of the change was above it.
    if part is None or above is None or not part.change or above.change / part.change <= ABOVE:
        return None
    return info(ChangeKind.ABOVE, part=most, per_transaction_ms=[above.a, above.b])


def _storage_reason(parts: Sequence[Evidence], figures: Sequence[Evidence], change: float, shares: Split) -> Finding:
    """Return the part of I/O that the device changed most; for reads the time of a single read, if known."""
    most = max(shares.device, key=lambda name: shares.device[name])
    part = next((part for part in parts if part.part == most), None)
    if part is None:
        return info(ChangeKind.LITTLE_IO)
    if most == "read":
        for source in (Source.SERVER, Source.DEVICE):
            read_time = _find(figures, ComparedFigure.READ_TIME, source)
            if read_time and read_time.change * change > 0:
                return info(ChangeKind.READ_TIME, source=source, read_ms=[read_time.a, read_time.b])
    return _part_reason(part, figures)


def _other_reasons(
    whole: Evidence, parts: Sequence[Evidence], figures: Sequence[Evidence], shares: Split
) -> Iterator[Finding]:
    """Yield further reasons for the change of the response time: another number of I/Os, or the part that changed
    most."""
    largest = max(parts, key=lambda part: part.change / whole.change)
    of_others = max((p.share or 0.0 for p in parts if p.part not in STORAGE), default=0.0)
    of_number = shares.number.get(largest.part or "", -1.0) >= shares.device.get(largest.part or "", 0.0)
    if shares.by_number < max(shares.by_device, of_others) and not of_number:
        yield _part_reason(largest, figures)
        return
    order = sorted(shares.number, key=lambda name: -shares.number[name])
    for name in [name for name in order if shares.number[name] > CAUSE_LITTLE] or order[:1]:
        number = _find(figures, _NUMBERS[name])
        if number and number.change * whole.change > 0:  # counts and waits changed in the same direction
            yield info(ChangeKind.NUMBER, figure=number.figure, per_transaction=[number.a, number.b])
        else:
            yield info(ChangeKind.WAITED_FOR, part=name, fewer=whole.change < 0)


def _part_reason(part: Evidence, figures: Sequence[Evidence]) -> Finding:
    if part.part == "cpu":
        used = _find(figures, ComparedFigure.CPU_TIME)
        if used and used.change * part.change > 0 and abs(used.change) > 0.1 * used.a:
            return info(ChangeKind.CPU_TIME, used_ms=[used.a, used.b], cpu_ms=[part.a, part.b])
    return info(ChangeKind.PART, part=part.part, per_transaction_ms=[part.a, part.b])


def _find(figures: Sequence[Evidence], figure: ComparedFigure, source: Source | None = None) -> Evidence | None:
    return next((evidence for evidence in figures if (evidence.figure, evidence.source) == (figure, source)), None)


def _cautions(a: Sequence[StepSummary], b: Sequence[StepSummary], parts: Sequence[Evidence]) -> Iterator[Finding]:
    if not all(step.budget and step.budget.device_known for step in (*a, *b)):
        yield caution(CauseKind.NO_DEVICE)
    broken = {law.kind for step in (*a, *b) if step.cause for law in step.cause.laws if law.closed is False}
    if broken:
        yield caution(CauseKind.LAW_FAILED, laws=sorted(broken))
    lock = next((part for part in parts if part.part == "lock"), None)
    if lock and lock.share is not None and lock.share > CAUSE_LITTLE:
        yield caution(CauseKind.LOCKS, share=lock.share)
    verdicts = [step.bottleneck.device_verdict for step in (*a, *b)]
    if busy := sum(verdict is not None and verdict.kind == DeviceKind.CPUS_BUSY_OTHERWISE for verdict in verdicts):
        yield caution(CauseKind.CPUS_BUSY, runs=busy, of=len(verdicts))


def _response_ms(step: StepSummary) -> float | None:
    return step.budget.response_ms if step.budget else None


def _part_ms(name: str, step: StepSummary) -> float | None:
    return step.budget.parts_ms[name] if step.budget else None


def _above_ms(name: str, step: StepSummary) -> float | None:
    return step.budget.above_ms.get(name) if step.budget else None


def _storage_share(steps: Sequence[StepSummary]) -> float:
    """Return the share of the response time that is storage, or may be."""
    budgets = [step.budget for step in steps if step.budget]
    return sum(budget.storage_share + budget.share("unknown") for budget in budgets) / len(budgets)
