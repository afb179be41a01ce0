"""A comparison of a database's reads with those of a probe at the same number of outstanding I/Os."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Annotated

from stallmark import format
from stallmark.analysis.columns import Shown
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.probe.saturation import ProbeKind, array_memory_caution, is_sustained
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.record.devices import dram_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep


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
