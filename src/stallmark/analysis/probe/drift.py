"""A comparison of two probes, step by step: is raw storage the same after as before?

The rates of the parts of a step (PROBE_BATCHES) tell how well its rate is known. The interval of the ratio after/before
is Student's, with Bonferroni's correction for the number of steps. Each part is paired with the same part of the other
probe: a cache warms under both alike, which is no scatter.

Wholly outside the tolerance (PROBE_DRIFT) is drifted, wholly inside is the same, anything else cannot be told. Nor can
it be told where the array's memory may have answered in place of its disks. Steps for which the machine was too slow
are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, caution, info, invalid
from stallmark.analysis.probe.saturation import Differs, ProbeKind, hidden, sustained
from stallmark.record.probe import Pattern, ProbeResult, ProbeStep
from stallmark.stats.student import paired
from stallmark.stats.thresholds import CONFIDENCE, PROBE_BATCHES, PROBE_DRIFT


class DriftVerdict(StrEnum):
    DRIFTED = "drifted"
    SAME = "same"
    UNKNOWN = "cannot_tell"


DRIFTED, SAME, UNKNOWN = DriftVerdict


@dataclass(frozen=True)
class DriftRow:
    """One step of both probes. `ratio` of I/Os per second, after / before, in its interval `low` to `high`; these are
    None where the scatter within a step is not known."""

    pattern: Pattern
    outstanding: int
    before_iops: float
    after_iops: float
    before_ms: float
    after_ms: float
    ratio: float
    low: float | None
    high: float | None
    verdict: DriftVerdict


@dataclass(frozen=True)
class Drift:
    """The verdict on two probes with its reason, and every step of both."""

    verdict: DriftVerdict
    finding: Finding
    rows: tuple[DriftRow, ...]


def drift(before: ProbeResult, after: ProbeResult, dram_bytes: int | None = None) -> Drift:
    """Compare two probes to judge what lies between them. `dram_bytes`: the array's memory, where known."""
    if why := _differ(before, after):
        return Drift(UNKNOWN, why, ())
    second = {(step.pattern, step.outstanding): step for step in after.steps}
    pairs = [(one, other) for one in before.steps if (other := second.get((one.pattern, one.outstanding)))]
    if not pairs:
        return Drift(UNKNOWN, caution(ProbeKind.NO_COMMON_STEP), ())
    title = pairs[0][0].pattern.title
    pairs = [pair for pair in pairs if all(map(sustained, pair))]
    if not pairs:
        why = caution(ProbeKind.NOT_ISSUED, pattern=title)
        return Drift(UNKNOWN, caution(ProbeKind.DRIFT_HIDDEN, why=why), ())
    rows = tuple(_row(one, other, len(pairs)) for one, other in pairs)
    verdicts = {row.verdict for row in rows}
    verdict = DRIFTED if DRIFTED in verdicts else UNKNOWN if UNKNOWN in verdicts else SAME
    why = hidden(before, dram_bytes)
    if why and verdict != DRIFTED:  # a change that is seen is one, wherever it comes from
        unknown = tuple(replace(row, verdict=UNKNOWN) for row in rows)
        return Drift(UNKNOWN, caution(ProbeKind.DRIFT_HIDDEN, why=why), unknown)
    return Drift(verdict, _finding(verdict, rows), rows)


def _differ(before: ProbeResult, after: ProbeResult) -> Finding | None:
    """Return why the two probes are not of one thing; None where they are."""
    if before.emulated != after.emulated:
        return caution(ProbeKind.MIXED_DEVICES, emulated_before=before.emulated)
    if before.how != after.how:
        return caution(ProbeKind.DIFFERENT_PROBES, what=Differs.PROGRAM, before=before.how, after=after.how)
    if before.file_bytes != after.file_bytes:
        sizes = {"before": before.file_bytes, "after": after.file_bytes}
        return caution(ProbeKind.DIFFERENT_PROBES, what=Differs.FILE_SIZE, **sizes)
    return None


def _row(before: ProbeStep, after: ProbeStep, rows: int) -> DriftRow:
    ratio = after.iops / before.iops
    reach = _reach(*_batches(before, after), 1 - (1 - CONFIDENCE) / rows)
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


def _batches(before: ProbeStep, after: ProbeStep) -> tuple[np.ndarray, np.ndarray]:
    """Return the rates of PROBE_BATCHES parts of each probe, over the windows that both have, as equally long as
    possible. There are fewer parts with fewer windows, or where no I/O would have ended in one."""
    first, second = dict(before.windows), dict(after.windows)
    common = sorted(first.keys() & second.keys())

    def parts(rates: dict[float, float], several: int) -> np.ndarray:
        split = np.array_split([rates[t] for t in common], several)
        return np.array([part.mean() for part in split])

    for several in range(min(PROBE_BATCHES, len(common)), 1, -1):
        one, other = parts(first, several), parts(second, several)
        if (one > 0).all() and (other > 0).all():
            return one, other
    return np.empty(0), np.empty(0)


def _reach(before: np.ndarray, after: np.ndarray, confidence: float) -> float | None:
    """Return half the width of the interval of the ratio, as a logarithm; None for too few parts."""
    if len(before) < 2:
        return None
    low, high = paired(np.log(before), np.log(after)).interval(confidence)
    return float((high - low) / 2)


def _finding(verdict: DriftVerdict, rows: Sequence[DriftRow]) -> Finding:
    if verdict == SAME:
        most = max(rows, key=lambda row: abs(row.ratio - 1))
        return info(ProbeKind.SAME, steps=len(rows), most=_named(most), change=most.ratio - 1)
    concerned = [row for row in rows if row.verdict == verdict]
    if verdict == DRIFTED:
        steps = [
            {
                **_named(row),
                "before_iops": row.before_iops,
                "after_iops": row.after_iops,
                "before_ms": row.before_ms,
                "after_ms": row.after_ms,
            }
            for row in concerned
        ]
        return invalid(ProbeKind.DRIFTED, steps=steps)
    return caution(
        ProbeKind.DRIFT_UNKNOWN, steps=[{**_named(row), "low": row.low, "high": row.high} for row in concerned]
    )


def _named(row: DriftRow) -> dict[str, Any]:
    return {"pattern": row.pattern.title, "outstanding": row.outstanding}
