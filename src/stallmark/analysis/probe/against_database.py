"""A comparison of a database's reads with those of a probe at as many outstanding I/Os."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Annotated

from stallmark import format
from stallmark.analysis.columns import Shown
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.probe.saturation import ProbeKind, hidden, sustained
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
class AgainstProbe:
    """A database's reads against a probe's. `raw_iops` and `raw_ms` are the probe's at the database's own number of
    outstanding reads, interpolated. They are None where the probe has no such number, or is of another device. `share`:
    reads per second ÷ raw ones; `caution`: why raw storage may be slower than the probe says."""

    pattern: Pattern | None
    reads_per_s: Annotated[float, Shown("reads per s")]
    mb_per_s: Annotated[float, Shown("MB/s")]
    read_ms: Annotated[float, Shown("ms")]
    outstanding: Annotated[float, Shown("outstanding")]
    raw_iops: Annotated[float | None, Shown("raw reads per s")]
    raw_ms: Annotated[float | None, Shown("raw ms")]
    share: Annotated[float | None, Shown("achieved", format.share)]
    finding: Finding
    caution: Finding | None = None


def achieved_of(io: IoSummary | None) -> Achieved | None:
    """Return the reads of the data files; None where nothing was read, or the time of reads is not known."""
    if io is None or not io.reads or io.read_ms is None or io.seconds <= 0:
        return None
    return Achieved(io.reads / io.seconds, io.read_bytes / io.seconds / 1e6, io.read_ms, io.read_bytes / io.reads)


def against_probe(manifest: Manifest, io: IoSummary | None) -> AgainstProbe | None:
    """Return a step's reads against those of the probe before its run. None where nothing was probed, or reads and
    their time are not known."""
    probed, achieved = manifest.probes.before, achieved_of(io)
    if not probed or achieved is None:
        return None
    emulated = is_data_emulated(manifest)
    return against(probed, achieved, emulated=emulated, dram_bytes=dram_of(manifest))


def against(probe: ProbeResult, achieved: Achieved, *, emulated: bool, dram_bytes: int | None = None) -> AgainstProbe:
    """Compare reads with random reads of the block size nearest to the database's own. `emulated`: the database ran on
    an emulated array; `dram_bytes`: the array's memory, where known."""
    own = {"reads_per_s": achieved.reads_per_s, "read_ms": achieved.read_ms}

    def found(pattern: Pattern | None, raw: tuple[float, float] | None, finding: Finding) -> AgainstProbe:
        iops, ms = raw or (None, None)
        why = hidden(probe, dram_bytes) if raw else None
        share = achieved.reads_per_s / iops if iops else None
        figures = (achieved.reads_per_s, achieved.mb_per_s, achieved.read_ms, achieved.outstanding)
        doubt = caution(ProbeKind.RAW_MAY_BE_SLOWER, why=why) if why else None
        return AgainstProbe(pattern, *figures, iops, ms, share, finding, doubt)

    if emulated != probe.emulated:
        return found(None, None, info(ProbeKind.OTHER_DEVICE, **own, emulated=emulated))
    curves = {p: steps for p, steps in probe.curves().items() if p.reads and p.random}
    if not curves:
        return found(None, None, info(ProbeKind.NO_RANDOM_READS, **own))
    pattern = min(curves, key=lambda p: abs(log(p.block_bytes / max(1.0, achieved.bytes_per_read))))
    steps = [step for step in curves[pattern] if sustained(step)]
    if not steps:
        return found(pattern, None, caution(ProbeKind.NOT_ISSUED, pattern=pattern.title))
    raw = _at(steps, achieved.outstanding)
    own |= {"outstanding": achieved.outstanding}
    if raw is None:
        if achieved.outstanding > steps[-1].outstanding:
            most = {"most_outstanding": steps[-1].outstanding, "raw_reads_per_s": steps[-1].iops}
            return found(pattern, None, info(ProbeKind.BEYOND_PROBE, **own, **most))
        fewest = {"fewest_outstanding": steps[0].outstanding, "raw_reads_per_s": steps[0].iops}
        return found(pattern, None, info(ProbeKind.BELOW_PROBE, **own, **fewest))
    figures = {"pattern": pattern.title, "raw_reads_per_s": raw[0], "raw_ms": raw[1]}
    return found(pattern, raw, info(ProbeKind.ACHIEVED, **own, **figures, share=achieved.reads_per_s / raw[0]))


def _at(steps: Sequence[ProbeStep], outstanding: float) -> tuple[float, float] | None:
    """Return I/Os per second and ms per I/O at a number of outstanding I/Os, interpolated on logarithmic axes.

    With less than one outstanding on average, every I/O takes as long as one alone. None beyond the last step, and
    below the first unless that had one outstanding.
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
