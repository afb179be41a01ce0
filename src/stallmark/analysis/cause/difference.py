"""Why one side of a comparison differs from the other: the change of the response time, divided into its parts.

In a closed loop throughput is users ÷ (response time + think time), so what changed the response time changed
throughput, and the parts of that change are its causes, by their size. What a device has to do with it is the part that
was spent in I/O, and of that only what single I/Os took longer: fewer of them are the buffer pool's doing
(cause_split.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from stallmark.analysis.cause import words
from stallmark.analysis.cause.evidence import between, io_evidence, other_evidence
from stallmark.analysis.cause.model_tests import tested
from stallmark.analysis.cause.split import Split, split
from stallmark.analysis.cause.summary import PARTS, STORAGE, Cause, Evidence, Storage
from stallmark.analysis.summary import StepSummary
from stallmark.stats import student as statistics
from stallmark.stats.thresholds import CAUSE_LITTLE, CAUSE_MOST, CONFIDENCE, DEVICE_FREE, SAME

_PARTS_METHOD = "mean response time, divided as sessions were seen (Little’s law)"


def explain(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool = False) -> Cause:
    """Why B differs from A; steps of repeated runs, the n-th of each made together where `paired`."""
    figures = [*io_evidence(a, b, paired), *other_evidence(a, b, paired)]
    tests = [*tested(a, b), *tested(b, a)]
    if not a or not b or any(step.cause is None or step.cause.budget is None for step in (*a, *b)):
        return Cause("not known", words.NOT_KNOWN, None, [], figures, tests)
    whole = between("response time", "ms per transaction", _response, a, b, paired, _PARTS_METHOD)
    assert whole is not None
    shown = _changed(whole, a, b, paired)
    parts = _parts(a, b, paired, whole, shown)
    cautions = list(_cautions(a, b, parts))
    if not shown:
        level = [_storage_share(side) for side in (a, b)]
        storage: Storage = "is not the cause" if max(level) <= DEVICE_FREE else "not known"
        sentence = words.nothing_changed(storage, whole, parts, figures, level)
        return Cause(storage, sentence, None, [whole, *parts], figures, tests, cautions)
    shares = split(a, b, parts, whole.change)
    storage = _storage(shares)
    if storage == "not known":
        said = words.not_split(whole, shares.unknown)
        return Cause(storage, said, None, [whole, *parts], figures, tests, cautions)
    largest = _largest(parts, whole.change)
    sentence, because = words.changed(storage, whole, parts, figures, shares, largest)
    if storage == "is the cause" and not _certain(parts, whole.change):
        cautions.append(words.UNCERTAIN)
    return Cause(storage, sentence, because, [whole, *parts], figures, tests, cautions)


def _parts(
    a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool, whole: Evidence, shown: bool
) -> list[Evidence]:
    """Shares are of a change that was shown; of scatter there are none."""
    found = []
    for name, title in PARTS.items():
        part = between(title, whole.unit, partial(_part, name), a, b, paired, _PARTS_METHOD)
        if part and (part.a or part.b):
            found.append(replace(part, share=part.change / whole.change if shown else None))
    return found


def _changed(whole: Evidence, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> bool:
    """Whether the response time did, beyond the scatter of runs or, of single runs, what these differ by anyway. On
    logarithms, as throughput is compared (compare_statistics.py)."""
    if min(len(a), len(b)) < 2:
        return abs(whole.change) > SAME * min(whole.a, whole.b)
    both = [np.log([found for step in side if (found := _response(step))]) for side in (a, b)]
    compare = statistics.paired if paired and len(a) == len(b) else statistics.welch
    return float(compare(*both).p()) <= 1 - CONFIDENCE


def _storage(shares: Split) -> Storage:
    """Not known where the parts that could not be split would turn the answer."""
    with_all: Storage = _verdict(shares.io + shares.unknown)
    return with_all if with_all == _verdict(shares.io) else "not known"


def _verdict(share: float) -> Storage:
    if share >= CAUSE_MOST:
        return "is the cause"
    return "is not the cause" if share <= CAUSE_LITTLE else "one of several"


def _largest(parts: Sequence[Evidence], change: float) -> Evidence:
    """The part that changed most in the direction of the whole."""
    return max(parts, key=lambda part: part.change / change)


def _certain(parts: Sequence[Evidence], change: float) -> bool:
    """Whether one part of I/O changed, its interval says so, as the whole did. Of single runs that is not known."""
    ends = [(p.low, p.high) for p in parts if p.name in {PARTS[name] for name in STORAGE}]
    return any(low is None or high is None or (low > 0 if change > 0 else high < 0) for low, high in ends)


def _cautions(a: Sequence[StepSummary], b: Sequence[StepSummary], parts: Sequence[Evidence]) -> list[str]:
    found = []
    if not all(step.cause and step.cause.budget and step.cause.budget.device_known for step in (*a, *b)):
        found.append(words.NO_DEVICE)
    if any(law.closed is False for step in (*a, *b) if step.cause for law in step.cause.laws):
        found.append(words.LAW_FAILED)
    lock = next((part for part in parts if part.name == PARTS["lock"]), None)
    if lock and lock.share is not None and lock.share > CAUSE_LITTLE:
        found.append(words.LOCKS)
    return found


def _response(step: StepSummary) -> float | None:
    return step.cause.budget.response_ms if step.cause and step.cause.budget else None


def _part(name: str, step: StepSummary) -> float | None:
    return step.cause.budget.parts_ms[name] if step.cause and step.cause.budget else None


def _storage_share(steps: Sequence[StepSummary]) -> float:
    shares = [step.cause.budget.storage_share for step in steps if step.cause and step.cause.budget]
    return sum(shares) / len(shares)
