"""Demartek for HPE, 2016: the same disks alone, with flash as a read cache, and with flash as a tier, for 30 users."""

from collections.abc import Callable, Sequence
from statistics import fmean

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, rising

from stallmark.analysis.experiment import summarise
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "flash-emulated", ()
DISKS, CACHE, TIER = "disks", "flash cache", "flash tier"
_LITTLE = "a cache that is warm for a minute of 30 s, and not for a day; their share of hits is not published"


def claims(records: Sequence[Record]) -> list[Claim]:
    steps = summarise(records).steps
    tps = _means(steps, lambda step: step.result_tps)
    read_ms = _means(steps, lambda step: step.storage.data_device.read_ms if step.storage.data_device else None)
    iops = _means(steps, lambda step: step.storage.data_device.iops if step.storage.data_device else None)
    reads = _means(steps, lambda step: step.storage.reads_per_transaction)
    writes = _means(steps, _write_share)
    cache, tier = tps[CACHE] / tps[DISKS] - 1, tps[TIER] / tps[DISKS] - 1
    more_io, apart = iops[TIER] / iops[DISKS], max(reads.values()) / min(reads.values()) - 1
    filled = next(step.storage.flash for step in steps if step.variant == CACHE)
    moved = next(step.storage.flash for step in steps if step.variant == TIER)
    return [
        Claim("disks < read cache < tier", "yes", " < ".join(f"{tps[name]:.0f}" for name in (DISKS, CACHE, TIER)),
              rising([tps[DISKS], tps[CACHE], tps[TIER]])),
        Claim("a read cache brings a third more TPS", "+35 %", f"{cache:+.0%}", 0.2 <= cache <= 0.55, _LITTLE),
        Claim("a tier brings more than half more", "+60 %", f"{tier:+.0%}", 0.4 <= tier <= 0.9, _LITTLE),
        Claim("a read of the disks takes just under 20 ms", "20 ms", f"{read_ms[DISKS]:.1f} ms", 10 <= read_ms[DISKS] <= 30,
              "30 users on 12 disks: theirs had more I/Os outstanding on a number of disks that is not told"),
        Claim("with the cache it takes a fifth", "4 ms", f"{read_ms[CACHE]:.1f} ms", read_ms[CACHE] < read_ms[DISKS] / 3, _LITTLE),
        Claim("with the tier a tenth", "< 2 ms", f"{read_ms[TIER]:.1f} ms", read_ms[TIER] < read_ms[DISKS] / 6, _LITTLE),
        Claim(
            "I/Os per second grow far more than TPS", "4.5 × for 1.6 ×", f"{more_io:.1f} × for {1 + tier:.1f} ×",
            more_io > 1.5 * (1 + tier),
            "the same transactions at the same pool read the same pages. Theirs do not close: 8.0, 17.6 and 22.6 I/Os a "
            "transaction in 5,175, 15,450 and 23,500 I/Os per second at 650, 878 and 1,040 TPS",
        ),
        Claim("reads per transaction hardly change", "they nearly treble", f"differ by {apart:.0%}", apart < 0.1, ""),
        Claim("one I/O in twenty is a write", "5 %", f"{fmean(writes.values()):.0%}", 0.02 <= fmean(writes.values()) <= 0.1,
              "PostgreSQL writes each block that a checkpoint finds changed"),
        Claim("cache and tier need hours to fill", "24 h a configuration",
              f"cache {_filled(filled)} after a minute, tier {_filled(moved)}", None, "theirs is 1,000 times as large"),
    ]  # fmt: skip


def chart(records: Sequence[Record]) -> str:
    steps = summarise(records).steps
    tps = _means(steps, lambda step: step.result_tps)
    iops = _means(steps, lambda step: step.storage.data_device.iops if step.storage.data_device else None)
    names = (DISKS, CACHE, TIER)
    series = {
        "TPS, theirs": [1, 1.35, 1.6],
        "TPS, ours": [tps[name] / tps[DISKS] for name in names],
        "IOPS, theirs": [1, 15_450 / 5_175, 23_500 / 5_175],
        "IOPS, ours": [iops[name] / iops[DISKS] for name in names],
    }
    return lines("Against the disks alone", "×", names, series)


def _means(steps: Sequence[StepSummary], figure: Callable[[StepSummary], float | None]) -> dict[str, float]:
    known: dict[str, list[float]] = {}
    for step in steps:
        if (value := figure(step)) is not None:
            known.setdefault(step.variant, []).append(value)
    return {variant: fmean(values) for variant, values in known.items()}


def _write_share(step: StepSummary) -> float | None:
    data = step.storage.data_device
    return data.writes / (data.reads + data.writes) if data else None


def _filled(flash) -> str:
    return f"{flash.used_bytes / flash.size_bytes:.0%} full" if flash and flash.used_bytes is not None else "–"
