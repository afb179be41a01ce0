"""Comparisons of probes: the reads of a database with those of a probe at the same number of outstanding I/Os, and two
probes with each other, step by step: is raw storage the same after as before?

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
from math import exp, log
from typing import Annotated, Any

import numpy as np

from stallmark import format
from stallmark.analysis.finding import Finding, Kind, caution, info, invalid
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.format import Shown, words
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep
from stallmark.stats.inference import paired
from stallmark.stats.thresholds import CONFIDENCE, PROBE_BATCHES, PROBE_DRIFT, PROBE_SUSTAINED


class ProbeKind(Kind):
    NOT_ISSUED = "storage_faster_than_the_machine"
    FITS_DRAM = "probe_fits_into_dram"
    # Before and after.
    MIXED_DEVICES = "probes_of_emulated_and_real"
    DIFFERENT_PROBES = "different_probes"
    NO_COMMON_STEP = "no_common_probe_step"
    DRIFT_HIDDEN = "drift_may_be_hidden"
    SAME = "storage_as_before"
    DRIFTED = "storage_drifted"
    DRIFT_UNKNOWN = "drift_cannot_be_told"
    # Against a database.
    OTHER_DEVICE = "probed_on_other_device"
    NO_RANDOM_READS = "no_random_reads_probed"
    BEYOND_PROBE = "more_outstanding_than_probed"
    BELOW_PROBE = "fewer_outstanding_than_probed"
    ACHIEVED = "share_of_raw_storage"
    RAW_MAY_BE_SLOWER = "raw_storage_may_be_slower"


class Differs(StrEnum):
    """The properties in which two probes may differ."""

    PROGRAM = "program"
    FILE_SIZE = "file_size"


def is_sustained(step: ProbeStep) -> bool:
    """Return True if the requested number of I/Os was under way, within PROBE_SUSTAINED."""
    return step.iops * step.mean_ms / 1000 >= PROBE_SUSTAINED * step.outstanding


# The depth into storage that a probe reaches: a file that fits into the memory of an array is answered from there.
def array_memory_caution(probe: ProbeResult, dram_bytes: int | None) -> Finding | None:
    """Return a caution if the probe may have read only the array's memory (`dram_bytes`), or None.

    Always None for an emulated array, and if its memory is unknown.
    """
    if probe.emulated or not dram_bytes or probe.file_bytes > dram_bytes:
        return None
    return caution(ProbeKind.FITS_DRAM, file_bytes=probe.file_bytes, dram_bytes=dram_bytes)


class DriftVerdict(StrEnum):
    DRIFTED = "drifted"
    SAME = "same"
    UNKNOWN = "cannot_tell"


DRIFTED, SAME, UNKNOWN = DriftVerdict


@dataclass(frozen=True)
class DriftRow:
    """One step of both probes."""

    pattern: Annotated[Pattern, words("probe", lambda pattern: pattern.title)]
    outstanding: Annotated[int, Shown("outstanding", str)]
    before_iops: Annotated[float, Shown("I/Os per s before")]
    after_iops: Annotated[float, Shown("after")]
    before_ms: Annotated[float, Shown("ms before")]
    after_ms: Annotated[float, Shown("after")]
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


@dataclass(frozen=True)
class Achieved:
    """Reads of the data files over a measured interval, as the server counted them."""

    reads_per_s: float
    mb_per_s: float
    read_ms: float
    bytes_per_read: float

    @property
    def outstanding(self) -> float:
        """Return the mean number of reads under way, rate × time (Little)."""
        return self.reads_per_s * self.read_ms / 1000


@dataclass(frozen=True)
class AgainstProbe:
    """A database's reads compared with a probe's.

    The raw figures are the probe's at the database's own number of outstanding reads, interpolated. They are None if
    the probe has no such number, or is of another device.
    """

    pattern: Pattern | None
    reads_per_s: Annotated[float, Shown("reads per s")]
    mb_per_s: Annotated[float, Shown("MB/s")]
    read_ms: Annotated[float, Shown("ms")]
    outstanding: Annotated[float, Shown("outstanding")]
    raw_iops: Annotated[float | None, Shown("raw reads per s")]
    raw_ms: Annotated[float | None, Shown("raw ms")]
    share: Annotated[float | None, Shown("achieved", format.share)]  # reads per second ÷ `raw_iops`
    finding: Finding
    caution: Finding | None = None  # the reason why raw storage may be slower than the probe shows


def achieved_reads(io: IoSummary | None) -> Achieved | None:
    """Return the reads of the data files, or None if nothing was read, or the time of reads is unknown."""
    if io is None or not io.reads or io.read_ms is None or io.seconds <= 0:
        return None
    return Achieved(io.reads / io.seconds, io.read_bytes / io.seconds / 1e6, io.read_ms, io.read_bytes / io.reads)


def compare_step_with_probe(manifest: Manifest, io: IoSummary | None) -> AgainstProbe | None:
    """Compare a step's reads with the probe before its run. Return None if nothing was probed, or reads and their time
    are unknown."""
    probed, achieved = manifest.probes.before, achieved_reads(io)
    if not probed or achieved is None:
        return None
    emulated = is_data_emulated(manifest)
    return compare_with_probe(probed, achieved, emulated=emulated, dram_bytes=dram_of(manifest))


def compare_with_probe(
    probe: ProbeResult, achieved: Achieved, *, emulated: bool, dram_bytes: int | None = None
) -> AgainstProbe:
    """Compare reads with random reads of the block size nearest to the database's own.

    `emulated`: the database ran on an emulated array; `dram_bytes`: the array's memory, if known.
    """
    own = {"reads_per_s": achieved.reads_per_s, "read_ms": achieved.read_ms}

    def compare(pattern: Pattern | None, raw: tuple[float, float] | None, finding: Finding) -> AgainstProbe:
        iops, ms = raw or (None, None)
        hidden_by_memory = array_memory_caution(probe, dram_bytes) if raw else None
        share = achieved.reads_per_s / iops if iops else None
        figures = (achieved.reads_per_s, achieved.mb_per_s, achieved.read_ms, achieved.outstanding)
        doubt = caution(ProbeKind.RAW_MAY_BE_SLOWER, why=hidden_by_memory) if hidden_by_memory else None
        return AgainstProbe(pattern, *figures, iops, ms, share, finding, doubt)

    # An emulated array and a real device have nothing to compare.
    if emulated != probe.emulated:
        return compare(None, None, info(ProbeKind.OTHER_DEVICE, **own, emulated=emulated))
    curves = {p: steps for p, steps in probe.curves().items() if p.reads and p.random}
    if not curves:
        return compare(None, None, info(ProbeKind.NO_RANDOM_READS, **own))
    pattern = min(curves, key=lambda p: abs(log(p.block_bytes / max(1.0, achieved.bytes_per_read))))
    steps = [step for step in curves[pattern] if is_sustained(step)]
    if not steps:
        return compare(pattern, None, caution(ProbeKind.NOT_ISSUED, pattern=pattern.title))
    raw = _interpolate(steps, achieved.outstanding)
    own |= {"outstanding": achieved.outstanding}
    if raw is None:
        if achieved.outstanding > steps[-1].outstanding:
            most = {"most_outstanding": steps[-1].outstanding, "raw_reads_per_s": steps[-1].iops}
            return compare(pattern, None, info(ProbeKind.BEYOND_PROBE, **own, **most))
        fewest = {"fewest_outstanding": steps[0].outstanding, "raw_reads_per_s": steps[0].iops}
        return compare(pattern, None, info(ProbeKind.BELOW_PROBE, **own, **fewest))
    figures = {"pattern": pattern.title, "raw_reads_per_s": raw[0], "raw_ms": raw[1]}
    return compare(pattern, raw, info(ProbeKind.ACHIEVED, **own, **figures, share=achieved.reads_per_s / raw[0]))


def _interpolate(steps: Sequence[ProbeStep], outstanding: float) -> tuple[float, float] | None:
    """Return I/Os per second and ms per I/O at a number of outstanding I/Os, interpolated on logarithmic axes.

    With less than one outstanding on average, every I/O takes the time of a single one. None beyond the last step, and
    below the first step unless that had one outstanding.
    """
    first, last = steps[0], steps[-1]
    if outstanding > last.outstanding or outstanding <= 0:
        return None
    if outstanding <= first.outstanding:
        # Below the first step nothing was measured. Single I/Os are the exception: fewer take the same time.
        return (outstanding / first.mean_ms * 1000, first.mean_ms) if first.outstanding == 1 else None
    above = next(step for step in steps if step.outstanding >= outstanding)
    below = steps[steps.index(above) - 1]
    place = log(outstanding / below.outstanding) / log(above.outstanding / below.outstanding)
    iops = exp(log(below.iops) + place * log(above.iops / below.iops))
    return iops, outstanding / iops * 1000
