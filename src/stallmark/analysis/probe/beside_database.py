"""What a database achieved of its storage: its reads beside those of a raw probe with as many outstanding."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from stallmark.analysis.probe.reach import hidden
from stallmark.analysis.summary import StepSummary
from stallmark.format import number, percent
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
    sentence: str
    caution: str | None = None


def achieved_of(step: StepSummary) -> Achieved | None:
    """None where the server read nothing, or does not tell how long it took."""
    io = step.data_io
    if io is None or not io.reads or io.read_ms is None or io.seconds <= 0:
        return None
    return Achieved(io.reads / io.seconds, io.read_bytes / io.seconds / 1e6, io.read_ms, io.read_bytes / io.reads)


def beside(probe: ProbeResult, achieved: Achieved, *, emulated: bool, dram_bytes: int | None = None) -> Beside:
    """Random reads of the block size nearest to the database's own. `emulated`: the database ran on such a device;
    `dram_bytes`: the array's, where that is known."""

    def found(pattern: Pattern | None, raw: tuple[float, float] | None, sentence: str) -> Beside:
        iops, ms = raw or (None, None)
        why = hidden(probe, dram_bytes) if raw else None
        share = achieved.reads_per_s / iops if iops else None
        figures = (achieved.reads_per_s, achieved.mb_per_s, achieved.read_ms, achieved.outstanding)
        caution = f"Raw storage may be slower than that: {why}." if why else None
        return Beside(pattern, *figures, iops, ms, share, sentence, caution)

    own = f"The database had {number(achieved.reads_per_s)} reads per second at {number(achieved.read_ms)} ms"
    if emulated != probe.emulated:
        one, other = ("an emulated device", "the real one") if emulated else ("the real device", "an emulated one")
        return found(None, None, f"{own} on {one}, and the probe is of {other}: the two are not set beside each other.")
    curves = {p: steps for p, steps in probe.curves().items() if p.reads and p.random}
    if not curves:
        return found(None, None, f"{own}; the probe has no random reads to set beside them.")
    pattern = min(curves, key=lambda p: abs(log(p.block_bytes / max(1.0, achieved.bytes_per_read))))
    steps = curves[pattern]
    raw = _at(steps, achieved.outstanding)
    depth = f"{number(achieved.outstanding)} outstanding"
    if raw is None:
        return found(
            pattern, None,
            f"{own}, {depth}; the probe knows up to {steps[-1].outstanding} outstanding, where raw storage gives "
            f"{number(steps[-1].iops)}.",
        )  # fmt: skip
    return found(
        pattern, raw,
        f"{own}; raw storage gives {number(raw[0])} at the same {depth} ({pattern.title}), {number(raw[1])} ms each: "
        f"the database achieved {percent(achieved.reads_per_s / raw[0])} of it.",
    )  # fmt: skip


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
