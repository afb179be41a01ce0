"""A comparison of two probes, step by step: is raw storage the same after as before?

The rates of the parts of a step (PROBE_BATCHES) give the precision of its rate. The interval of the ratio after/before
is Student's, with Bonferroni's correction for the number of steps. Each part is paired with the same part of the other
probe: a cache warms in the same way under both, which is not noise.

Completely outside the tolerance (PROBE_DRIFT) is drifted, completely inside is the same, anything else is unknown. It
is also unknown if the array's memory may have answered in place of its disks. Steps for which the machine was too slow
are omitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, caution, info, invalid
from stallmark.analysis.probe.saturation import Differs, ProbeKind, array_memory_caution, is_sustained
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep
from stallmark.stats.student import paired
from stallmark.stats.thresholds import CONFIDENCE, PROBE_BATCHES, PROBE_DRIFT


class DriftVerdict(StrEnum):
    DRIFTED = "drifted"
    SAME = "same"
    UNKNOWN = "cannot_tell"


DRIFTED, SAME, UNKNOWN = DriftVerdict


@dataclass(frozen=True)
class DriftRow:
    """One step of both probes."""

    pattern: Pattern
    outstanding: int
    before_iops: float
    after_iops: float
    before_ms: float
    after_ms: float
    ratio: float  # I/Os per second, after ÷ before
    low: float | None  # interval of `ratio`; None if the variation within a step is unknown
    high: float | None
    verdict: DriftVerdict


@dataclass(frozen=True)
class Drift:
    """The verdict on two probes with its reason, and every step of both."""

    verdict: DriftVerdict
    finding: Finding
    rows: tuple[DriftRow, ...]


def drift(before: ProbeResult, after: ProbeResult, dram_bytes: int | None = None) -> Drift:
    """Compare two probes to judge what changed between them. `dram_bytes`: the array's memory, if known."""
    if difference := _difference(before, after):
        return Drift(UNKNOWN, difference, ())
    second = {(step.pattern, step.outstanding): step for step in after.steps}
    pairs = [(step, other) for step in before.steps if (other := second.get((step.pattern, step.outstanding)))]
    if not pairs:
        return Drift(UNKNOWN, caution(ProbeKind.NO_COMMON_STEP), ())
    title = pairs[0][0].pattern.title
    pairs = [pair for pair in pairs if all(map(is_sustained, pair))]
    if not pairs:
        not_issued = caution(ProbeKind.NOT_ISSUED, pattern=title)
        return Drift(UNKNOWN, caution(ProbeKind.DRIFT_HIDDEN, why=not_issued), ())
    rows = tuple(_row(step, other, len(pairs)) for step, other in pairs)
    verdicts = {row.verdict for row in rows}
    verdict = DRIFTED if DRIFTED in verdicts else UNKNOWN if UNKNOWN in verdicts else SAME
    hidden_by_memory = array_memory_caution(before, dram_bytes)
    if hidden_by_memory and verdict != DRIFTED:  # memory can hide a change, but not cause one
        unknown = tuple(replace(row, verdict=UNKNOWN) for row in rows)
        return Drift(UNKNOWN, caution(ProbeKind.DRIFT_HIDDEN, why=hidden_by_memory), unknown)
    return Drift(verdict, _finding(verdict, rows), rows)


def _difference(before: ProbeResult, after: ProbeResult) -> Finding | None:
    """Return the reason why the two probes are not comparable, or None if they are."""
    if before.emulated != after.emulated:
        return caution(ProbeKind.MIXED_DEVICES, emulated_before=before.emulated)
    # Another program or file size measures something else.
    if before.how != after.how:
        return caution(ProbeKind.DIFFERENT_PROBES, what=Differs.PROGRAM, before=before.how, after=after.how)
    if before.file_bytes != after.file_bytes:
        sizes = {"before": before.file_bytes, "after": after.file_bytes}
        return caution(ProbeKind.DIFFERENT_PROBES, what=Differs.FILE_SIZE, **sizes)
    return None


def _row(before: ProbeStep, after: ProbeStep, rows: int) -> DriftRow:
    ratio = after.iops / before.iops
    reach = _interval_half_width(*_batch_rates(before, after), 1 - (1 - CONFIDENCE) / rows)
    low, high = (None, None) if reach is None else (ratio * exp(-reach), ratio * exp(reach))
    return DriftRow(
        before.pattern,
        before.outstanding,
        before.iops,
        after.iops,
        before.mean_ms,
        after.mean_ms,
        ratio,
        low,
        high,
        _verdict(low, high),
    )


def _verdict(low: float | None, high: float | None) -> DriftVerdict:
    least, most = 1 - PROBE_DRIFT, 1 + PROBE_DRIFT
    if low is None or high is None:
        return UNKNOWN
    if high < least or low > most:
        return DRIFTED
    return SAME if least <= low and high <= most else UNKNOWN


def _batch_rates(before: ProbeStep, after: ProbeStep) -> tuple[np.ndarray, np.ndarray]:
    """Return the rates of PROBE_BATCHES parts of each probe, over the windows that both have, with lengths as equal as
    possible.

    There are fewer parts if there are fewer windows, or if no I/O ended in a part.
    """
    first, second = dict(before.windows), dict(after.windows)
    # Pairs of equal windows cancel effects of time, such as a warming cache.
    common = sorted(first.keys() & second.keys())

    def parts(rates: dict[float, float], several: int) -> np.ndarray:
        split = np.array_split([rates[t] for t in common], several)
        return np.array([part.mean() for part in split])

    for several in range(min(PROBE_BATCHES, len(common)), 1, -1):
        rates_before, rates_after = parts(first, several), parts(second, several)
        if (rates_before > 0).all() and (rates_after > 0).all():
            return rates_before, rates_after
    return np.empty(0), np.empty(0)


def _interval_half_width(before: np.ndarray, after: np.ndarray, confidence: float) -> float | None:
    """Return half the width of the ratio's interval, as a logarithm, or None for too few parts."""
    if len(before) < 2:
        return None
    low, high = paired(np.log(before), np.log(after)).interval(confidence)
    return float((high - low) / 2)


def _finding(verdict: DriftVerdict, rows: Sequence[DriftRow]) -> Finding:
    if verdict == SAME:
        most = max(rows, key=lambda row: abs(row.ratio - 1))
        return info(ProbeKind.SAME, steps=len(rows), most=_step_facts(most), change=most.ratio - 1)
    concerned = [row for row in rows if row.verdict == verdict]
    if verdict == DRIFTED:
        steps = [
            {
                **_step_facts(row),
                "before_iops": row.before_iops,
                "after_iops": row.after_iops,
                "before_ms": row.before_ms,
                "after_ms": row.after_ms,
            }
            for row in concerned
        ]
        return invalid(ProbeKind.DRIFTED, steps=steps)
    return caution(
        ProbeKind.DRIFT_UNKNOWN, steps=[{**_step_facts(row), "low": row.low, "high": row.high} for row in concerned]
    )


def _step_facts(row: DriftRow) -> dict[str, Any]:
    return {"pattern": row.pattern.title, "outstanding": row.outstanding}
