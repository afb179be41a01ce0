"""HP and Samsung, 2010: eight solid-state disks against eight disks of 15,000 rpm, from 1 to 32 I/Os outstanding."""

from collections.abc import Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim

from stallmark.analysis.probe.experiment import ProbeRun, summarise_probes
from stallmark.record.probe import ProbeStep
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "saturation", ("probe.patterns=[8k-random-read, 8k-random-write]",)
READS, WRITES = "8k-random-read", "8k-random-write"
_FIFO = "the emulated disks have one queue, first in, first out: each I/O waits its turn, and none starves"


def claims(records: Sequence[Record]) -> list[Claim]:
    disks, flash = summarise_probes(records).runs
    hdd, ssd = _steps(disks, READS), _steps(flash, READS)
    knee = next(one.knee for one in flash.saturations if one.pattern.name == READS)
    most = max(hdd, key=lambda depth: hdd[depth].iops)
    slower, faster = hdd[32].mean_ms / hdd[1].mean_ms, ssd[8].iops / hdd[8].iops
    flat = ssd[32].iops / ssd[8].iops
    p99, mean = hdd[32].percentile_ms(0.99), hdd[32].mean_ms
    return [
        Claim("flash saturates at 8 outstanding", "8", f"{knee}", knee == 8, _near(knee)),
        Claim("flash is flat after 8", "saturated and stable", f"{flat:.2f} × from 8 to 32", flat < 1.25, ""),
        Claim("flash does more than ten times as much at 8", "8,000 against under 500", f"{faster:.0f} ×", faster > 10),
        Claim("disks do most at 2 outstanding", "500 at 2", f"{hdd[most].iops:.0f} at {most}", most == 2, _FIFO),
        Claim(
            "latency of disks explodes beyond that", "6 ms to seconds",
            f"{hdd[1].mean_ms:.1f} ms at 1, {mean:.0f} at 32", slower > 100, _FIFO,
        ),
        Claim(
            "virtual machines on disks diverge", "yes", f"p99 {p99:.0f} ms beside a mean of {mean:.0f}" if p99 else "–",
            None, "one host, one queue: there are no machines that could starve each other",
        ),
        Claim(
            "random writes likewise", "yes", _gain(disks, flash),
            (_steps(flash, WRITES)[8].iops > 5 * _steps(disks, WRITES)[8].iops),
        ),
        Claim("rack units, watts and cost of the consolidation", "a table", "–", None, "no run shows them"),
    ]  # fmt: skip


def chart(records: Sequence[Record]) -> str:
    runs = summarise_probes(records).runs
    depths = sorted(_steps(runs[0], READS))
    series = {run.variant: [_steps(run, READS)[depth].mean_ms for depth in depths] for run in runs}
    return lines("8 KiB random reads: mean latency by I/Os outstanding", "ms", [str(depth) for depth in depths], series)


def _steps(run: ProbeRun, pattern: str) -> dict[int, ProbeStep]:
    return {step.outstanding: step for step in run.result.steps if step.pattern.name == pattern}


def _near(knee: int | None) -> str:
    return "" if knee == 8 else "eight channels that are chosen at random are not all busy with 8 I/Os outstanding"


def _gain(disks: ProbeRun, flash: ProbeRun) -> str:
    return f"{_steps(flash, WRITES)[8].iops / _steps(disks, WRITES)[8].iops:.0f} × at 8"
