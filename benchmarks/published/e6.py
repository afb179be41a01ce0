"""HP and Samsung, 2010: four machines with two threads each on eight solid-state disks, or on eight of 15,000 rpm."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import Claim, Run, about, lines

from stallmark.probe.summary import ProbeRun, summarise_probes
from stallmark.record.manifest.storage import ProbeStep
from stallmark.record.reader import Record

THREADS = 8
"""Threads that read at once: two in each of four machines. Their number of outstanding I/Os is that of a thread."""
OUTSTANDING = (1, 2, 4, 8, 16, 32)
READS, LARGE_READS, WRITES = PATTERNS = ("8k-random-read", "64k-random-read", "8k-random-write")
RUNS = {
    "saturation": Run(
        "saturation",
        (
            f"probe.patterns=[{', '.join(PATTERNS)}]",
            f"probe.outstanding=[{', '.join(str(THREADS * depth) for depth in OUTSTANDING)}]",
        ),
    )
}
_NO_CONTROLLER = (
    "each of our eight SSDs serves one I/O at a time, which we chose: of N I/Os under way on eight channels 8·N / (N + "
    "7) are served at once, half of the channels with 8 of them. Theirs served several at once, 4 × 8,000 a second; "
    "controller, hypervisor and mirrors, which theirs had, are not in the emulator"
)
_RATIO = "it is that of the times that we chose for flash, and of no queues"
_IN_ORDER = (
    "a disk takes one I/O after the other, so with more of them none of the eight idles. What made theirs lose (queues "
    "of a controller and a hypervisor) is not in the emulator"
)
SATURATED = 1.1
"""Times as much that twice the outstanding I/Os bring at most, once storage is saturated."""


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    disks, flash = summarise_probes(records["saturation"]).runs
    hdd, ssd = _steps(disks, READS), _steps(flash, READS)
    knee = _knee(flash)
    best = max(hdd, key=lambda depth: hdd[depth].iops)
    flat = ssd[32].iops / ssd[8].iops
    p99 = hdd[32].percentile_ms(0.99)
    longest = "–" if p99 is None else f"{p99:.0f} ms"
    writes = {run.variant: _steps(run, WRITES)[8].iops for run in (disks, flash)}
    large = {run.variant: _steps(run, LARGE_READS)[8].iops for run in (disks, flash)}
    return [
        Claim("flash saturates at 8 outstanding", "8", f"{knee}", knee == 8, _NO_CONTROLLER),
        Claim(
            "from 1 to 8 outstanding flash does 3.5 times as much", "4 × 2,300 to 4 × 8,000",
            f"{ssd[8].iops / ssd[1].iops:.2f} × ({ssd[1].iops:.0f} to {ssd[8].iops:.0f})",
            about(ssd[8].iops / ssd[1].iops - 1, 2.5), _NO_CONTROLLER,
        ),
        Claim(
            "flash is flat after 8", "saturated and stable", f"{flat:.2f} × from 8 to 32", flat < SATURATED,
            _NO_CONTROLLER,
        ),
        Claim(
            "flash does 16 times as much at 8 as disks at their best", "4 × 8,000 and 4 × 500",
            f"{ssd[8].iops / hdd[best].iops:.0f} × ({ssd[8].iops:.0f} and {hdd[best].iops:.0f})",
            about(ssd[8].iops / hdd[best].iops, 16), _NO_CONTROLLER,
        ),
        Claim(
            "disks do most at 2 outstanding", "4 × 500 at 2", f"{hdd[best].iops:.0f} at {best}", best == 2, _IN_ORDER,
        ),
        Claim(
            "disks lose beyond 2", "they collapse", f"{hdd[32].iops / hdd[2].iops:.2f} × from 2 to 32",
            hdd[32].iops < hdd[2].iops, _IN_ORDER,
        ),
        Claim(
            "latency of disks explodes beyond that", "6 ms to seconds",
            f"{hdd[2].mean_ms:.1f} ms to {hdd[32].mean_ms:.0f} ms", hdd[32].mean_ms > 1000,
            "256 I/Os under way take a second only if fewer than 256 are done in one (Little's law)",
        ),
        Claim(
            "machines on disks diverge", "yes", f"p99 {longest}, mean {hdd[32].mean_ms:.0f} ms", None,
            "one program makes all I/Os, and each disk serves them in their order: none can be kept behind",
        ),
        Claim(
            "random writes likewise: flash 8 times as many or more, both at 8", "not at hand",
            f"{_ratio(writes):.0f} ×", _ratio(writes) >= 8, _RATIO,
        ),
        Claim(
            "reads of 64 KiB likewise: flash 8 times as many or more, both at 8", "not at hand",
            f"{_ratio(large):.0f} ×", _ratio(large) >= 8, _RATIO,
        ),
        Claim(
            "rack units, watts and cost of the consolidation", "a table", "–", None,
            "no run shows them; `stallmark size` sums up those of a list of devices",
        ),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    runs = summarise_probes(records["saturation"]).runs
    series = {run.variant: [_steps(run, READS)[depth].mean_ms for depth in OUTSTANDING] for run in runs}
    title = "Mean latency of 8 KiB random reads by outstanding I/Os"
    return lines(title, "ms", [str(depth) for depth in OUTSTANDING], series)


def _steps(run: ProbeRun, pattern: str) -> dict[int, ProbeStep]:
    """Return the steps of a pattern by the I/Os that each thread had outstanding."""
    return {step.outstanding // THREADS: step for step in run.result.steps if step.pattern.name == pattern}


def _knee(run: ProbeRun) -> int | None:
    """Return the I/Os of each thread from which more bring little, as a report of the probe has it."""
    knee = next(found.knee for found in run.saturations if found.pattern.name == READS)
    return knee and knee // THREADS


def _ratio(iops: Mapping[str, float]) -> float:
    disks, flash = iops.values()
    return flash / disks
