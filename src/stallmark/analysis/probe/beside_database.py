"""What a database achieved of its storage: its reads beside those of a raw probe with as many outstanding."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.probe.kinds import ProbeKind
from stallmark.analysis.probe.reach import hidden
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.probe import Pattern, ProbeResult, ProbeStep


@dataclass(frozen=True)
class Achieved:
    """Reads of the data files over a measured interval, as the server counted them. `outstanding` is their mean number
    under way, rate × time (Little)."""

    reads_per_s: float
    mb_per_s: float
    read_ms: float
    bytes_per_read: float

    @property
    def outstanding(self) -> float:
        return self.reads_per_s * self.read_ms / 1000


@dataclass(frozen=True)
class Beside:
    """`raw_iops` and `raw_ms` are the probe's at the database's own number of outstanding reads, between those that
    were measured; None where it has none such, or is of another device. `share`: reads per second of raw ones;
    `caution`: why raw storage may be slower than that."""

    pattern: Pattern | None
    reads_per_s: float
    mb_per_s: float
    read_ms: float
    outstanding: float
    raw_iops: float | None
    raw_ms: float | None
    share: float | None
    finding: Finding
    caution: Finding | None = None


def achieved_of(io: IoSummary | None) -> Achieved | None:
    """Return what was read of the data files. None where nothing was, or it is not known how long it took."""
    if io is None or not io.reads or io.read_ms is None or io.seconds <= 0:
        return None
    return Achieved(io.reads / io.seconds, io.read_bytes / io.seconds / 1e6, io.read_ms, io.read_bytes / io.reads)


def against_probe(manifest: Manifest, io: IoSummary | None) -> Beside | None:
    """Set a step's reads beside what raw storage gave before its run; None where nothing was probed or read."""
    probed, achieved = manifest.probes.before, achieved_of(io)
    if not probed or achieved is None:
        return None
    emulated = is_data_emulated(manifest)
    return beside(probed, achieved, emulated=emulated, dram_bytes=dram_of(manifest))


def beside(probe: ProbeResult, achieved: Achieved, *, emulated: bool, dram_bytes: int | None = None) -> Beside:
    """Random reads of the block size nearest to the database's own. `emulated`: the database ran on such a device;
    `dram_bytes`: the array's, where that is known."""
    own = {"reads_per_s": achieved.reads_per_s, "read_ms": achieved.read_ms}

    def found(pattern: Pattern | None, raw: tuple[float, float] | None, finding: Finding) -> Beside:
        iops, ms = raw or (None, None)
        why = hidden(probe, dram_bytes) if raw else None
        share = achieved.reads_per_s / iops if iops else None
        figures = (achieved.reads_per_s, achieved.mb_per_s, achieved.read_ms, achieved.outstanding)
        doubt = caution(ProbeKind.RAW_MAY_BE_SLOWER, why=why) if why else None
        return Beside(pattern, *figures, iops, ms, share, finding, doubt)

    if emulated != probe.emulated:
        return found(None, None, info(ProbeKind.OTHER_DEVICE, **own, emulated=emulated))
    curves = {p: steps for p, steps in probe.curves().items() if p.reads and p.random}
    if not curves:
        return found(None, None, info(ProbeKind.NO_RANDOM_READS, **own))
    pattern = min(curves, key=lambda p: abs(log(p.block_bytes / max(1.0, achieved.bytes_per_read))))
    steps = curves[pattern]
    raw = _at(steps, achieved.outstanding)
    own |= {"outstanding": achieved.outstanding}
    if raw is None:
        most = {"most_outstanding": steps[-1].outstanding, "raw_reads_per_s": steps[-1].iops}
        return found(pattern, None, info(ProbeKind.BEYOND_PROBE, **own, **most))
    figures = {"pattern": pattern.title, "raw_reads_per_s": raw[0], "raw_ms": raw[1]}
    return found(pattern, raw, info(ProbeKind.ACHIEVED, **own, **figures, share=achieved.reads_per_s / raw[0]))


def _at(steps: Sequence[ProbeStep], outstanding: float) -> tuple[float, float] | None:
    """I/Os per second and ms of each at a number of outstanding ones, straight between neighbours on logarithmic axes.

    With less than one outstanding on average every I/O is alone, and takes as long as one alone; None beyond the last.
    """
    first, last = steps[0], steps[-1]
    if outstanding > last.outstanding or outstanding <= 0:
        return None
    if outstanding <= first.outstanding:
        # Not below what was measured, unless that was one by one.
        return (outstanding / first.mean_ms * 1000, first.mean_ms) if first.outstanding == 1 else None
    above = next(step for step in steps if step.outstanding >= outstanding)
    below = steps[steps.index(above) - 1]
    place = log(outstanding / below.outstanding) / log(above.outstanding / below.outstanding)
    iops = exp(log(below.iops) + place * log(above.iops / below.iops))
    return iops, outstanding / iops * 1000
