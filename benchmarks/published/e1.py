"""Demartek for HPE, 2016: the same disks alone, with flash as a read cache, and with flash as a tier, for 30 users."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import numpy as np
import pyarrow.compute as pc
from benchmarks.published.chart import Claim, Run, about, lines, rising

from stallmark.analysis.experiment import summarise
from stallmark.analysis.metrics import group, mean_of
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record

RUNS = {"flash": Run("flash-emulated", ("repeats=2",))}
DISKS, CACHE, TIER = NAMES = ("disks", "flash cache", "flash tier")
WINDOW_S = 5
"""Seconds over which a share of reads is taken, to see when flash is warm."""
_CHOSEN = "it follows from the users for each disk, 2.5 here; how many disks theirs had was not published"
_SHARE = (
    "a tenth needs 93 % of the reads from flash of 0.5 ms, and a quarter of the data answers fewer. The size of theirs "
    "was not published"
)
_CHECKPOINTS = "PostgreSQL writes most pages at checkpoints, and none fell into the 30 s that are measured"
_WAITED = (
    "our users wait for nothing but storage, one read after another (io_method = sync), so TPS follow the latency. "
    "Theirs waited for storage a third of the time (Amdahl's law on +35 % at a fifth of the latency). Their figures do "
    "not close: 30 users at 650 TPS have 46 ms for a transaction, whose 8.0 I/Os of 20 ms take 160 ms. So each had 3.4 "
    "I/Os under way at once, or others than users made most of them"
)
_SAME_READS = (
    "the same transactions at the same pool make the same reads. Theirs rose from 8.0 to 22.6 I/Os in a transaction, "
    "which nothing that they changed explains"
)


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    steps = summarise(records["flash"]).steps
    tps = _means(steps, lambda step: step.throughput.tps)
    read_ms = _means(steps, lambda step: step.storage.data_device.read_ms if step.storage.data_device else None)
    hits = _means(steps, lambda step: step.storage.flash.share if step.storage.flash else None)
    iops = _means(steps, _iops)
    reads = _means(steps, lambda step: step.storage.reads_per_transaction)
    writes = fmean(_means(steps, _write_share).values())
    cache, tier = tps[CACHE] / tps[DISKS] - 1, tps[TIER] / tps[DISKS] - 1
    quicker = {name: read_ms[DISKS] / read_ms[name] for name in hits}
    latency = {
        name: f"{read_ms[DISKS]:.1f} → {read_ms[name]:.1f} ms, {hits[name] * 100:.0f} % from flash" for name in hits
    }
    more, more_cached = iops[TIER] / iops[DISKS], iops[CACHE] / iops[DISKS]
    bandwidth = _means(steps, _bandwidth)
    apart = max(reads.values()) / min(reads.values()) - 1
    warm = [f"{name} after {_warm_after(records['flash'], name)}" for name in (CACHE, TIER)]
    with_flash = [step for step in steps if step.storage.flash]
    limited = [step for step in with_flash if step.bottleneck.is_device]
    return [
        Claim(
            "disks < read cache < tier, in TPS", "650, 878, 1,040", ", ".join(f"{tps[name]:.0f}" for name in NAMES),
            rising(tps[name] for name in NAMES), "what is hot is larger than the flash",
        ),
        Claim("a read cache brings a third more TPS", "+35 %", f"{cache * 100:+.0f} %", about(cache, 0.35), _WAITED),
        Claim(
            "a tier brings more than half more", "+60 %", f"{tier * 100:+.0f} %", about(tier, 0.6), "as with the cache"
        ),
        Claim(
            "an I/O of the disks takes just under 20 ms", "20 ms", f"{read_ms[DISKS]:.1f} ms", None, _CHOSEN,
        ),
        Claim("with the cache it takes a fifth", "20 → 4 ms", latency[CACHE], about(quicker[CACHE], 5), _SHARE),
        Claim("with the tier a tenth", "20 → below 2 ms", latency[TIER], about(quicker[TIER], 10), _SHARE),
        Claim(
            "I/Os per second grow far more than TPS", "4.5 × for 1.6 ×", f"{more:.1f} × for {1 + tier:.1f} ×",
            more > 1.5 * (1 + tier), _SAME_READS,
        ),
        Claim(
            "the law that the same transactions at the same pool read as often", "broken: 8.0, 17.6, 22.6 I/Os",
            ", ".join(f"{reads[name]:.1f}" for name in NAMES) + " reads", apart < 0.1, "the variants found other pools",
        ),
        Claim(
            "with flash the users are too few to be limited by storage", "users were not added",
            f"storage limits {len(limited)} of {len(with_flash)} runs with flash", not limited,
            "users who wait for nothing else are limited by a read of 5 ms as by one of 18",
        ),
        Claim(
            "bandwidth grows as the I/Os do, of 8 KiB each", "42 → 127 MB/s, 3.0 ×, which they call 2.5 ×",
            f"{more_cached:.1f} × the I/Os, {bandwidth[CACHE] / bandwidth[DISKS]:.1f} × the MB/s",
            about(bandwidth[CACHE] / bandwidth[DISKS], more_cached), "I/Os of another size",
        ),
        Claim("one I/O in twenty is a write", "about 5 %", f"{writes * 100:.0f} %", None, _CHECKPOINTS),
        Claim(
            "flash is warm after hours", "24 h for each", ", ".join(warm), None,
            "24 hours were given to it, and when it was warm was not published; here a quarter of 1.8 GiB fills",
        ),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    steps = summarise(records["flash"]).steps
    tps, iops = _means(steps, lambda step: step.throughput.tps), _means(steps, _iops)
    series = {
        "TPS, theirs": [1, 1.35, 1.6],
        "TPS, ours": [tps[name] / tps[DISKS] for name in NAMES],
        "IOPS, theirs": [1, 15_450 / 5_175, 23_500 / 5_175],
        "IOPS, ours": [iops[name] / iops[DISKS] for name in NAMES],
    }
    return lines("Against the disks alone", "×", NAMES, series)


def _means(steps: Sequence[StepSummary], figure: Callable[[StepSummary], float | None]) -> dict[str, float]:
    """Return the mean of each variant in which the figure is known."""
    means = {same[0].variant: mean_of([*map(figure, same)]) for same in group(steps, lambda step: step.variant)}
    return {variant: mean for variant, mean in means.items() if mean is not None}


def _iops(step: StepSummary) -> float | None:
    return step.storage.data_device.iops if step.storage.data_device else None


def _bandwidth(step: StepSummary) -> float | None:
    data = step.storage.data_device
    return (data.read_bytes + data.write_bytes) / data.seconds if data else None


def _write_share(step: StepSummary) -> float | None:
    data = step.storage.data_device
    return data.writes / (data.reads + data.writes) if data else None


def _warm_after(records: Sequence[Record], variant: str) -> str:
    times = [_warm_s(record) for record in records if record.manifest.variant.name == variant]
    first, last = f"{min(times):.0f}", f"{max(times):.0f} s"
    return last if last == f"{first} s" else f"{first} to {last}"


def _warm_s(record: Record) -> float:
    """Return the seconds from the first read until flash answers nine tenths of the share that it answers at most."""
    device = record.table("device")
    data = device.filter(pc.equal(device["role"], "data"))
    t, reads, hits = (data[name].to_numpy() for name in ("t", "reads", "flash_reads"))
    began = t[np.argmax(reads > 0)]
    edges = np.searchsorted(t, np.arange(began, t[-1], WINDOW_S))
    shares = np.diff(hits[edges]) / np.maximum(1, np.diff(reads[edges]))
    return WINDOW_S * float(np.argmax(shares >= 0.9 * shares.max()) + 1)
