"""Probes of a known law, for tests."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stallmark.probe.record import ProbeManifest, append_step, begin_record
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep
from support.manifests import a_manifest

READ = Pattern("8k-random-read", "read", "random", 8192)
STREAM = Pattern("256k-sequential-read", "read", "sequential", 262144)
WINDOW_S = 0.25
NOISE = tuple(float(share) for share in np.random.default_rng(5).normal(1, 0.03, 40))
"""Of the rates of windows of an ordinary step."""


def step(
    outstanding: int,
    iops: float,
    *,
    pattern: Pattern = READ,
    seconds: float = 10.0,
    scatter: Sequence[float] = (),
    p99: float | None = None,
    issued: float = 1.0,
) -> ProbeStep:
    """A closed loop: each I/O takes as long as it must (Little), one in fifty `p99` ms where that is given. `scatter`
    are the rates of windows in turn, as shares; without it there are none. `issued` is the share of the outstanding
    I/Os that were under way."""
    ios = round(iops * seconds)
    mean = issued * outstanding / iops * 1000
    slow = ios // 50 if p99 else 0
    places = range(int(seconds / WINDOW_S) if len(scatter) else 0)
    windows = tuple(((place + 1) * WINDOW_S, iops * float(scatter[place % len(scatter)])) for place in places)
    histogram = tuple((ms, count) for ms, count in ((mean, ios - slow), (p99 or 0, slow)) if count)
    return ProbeStep(pattern, outstanding, seconds, ios, ios * pattern.block_bytes, mean, histogram, windows)


def probe(*steps: ProbeStep, emulated: bool = False, how: str = "libaio", file_bytes: int = 2**30) -> ProbeResult:
    return ProbeResult("fio-3.33", how, emulated, "vda", "/mnt/array", file_bytes, "2026-11-22T08:00:00+00:00", steps)


def of_disks(disks: float, service_ms: float, depths: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> list[ProbeStep]:
    """Disks hit at random, with exponential service: n / (n + c − 1) of all that they can do."""
    most = disks / service_ms * 1000
    return [step(n, most * n / (n + disks - 1)) for n in depths]


def write_probe(folder: Path, name: str, result: ProbeResult, sequence: int = 1, *, is_complete: bool = True) -> None:
    """Write the record of a probe, as a probe does; one that is not complete was cut."""
    place = {"experiment": "e", "sequence": sequence, "started": result.started, "variant": {"name": name}}
    machine = {"cores": 2, "memory_bytes": 2**34}
    made = a_manifest(ProbeManifest, probe=replace(result, steps=()), machine=machine, **place)
    writer = begin_record(folder / f"{sequence:02d}", made)
    for one in result.steps:
        append_step(writer, one)
    writer.close(None if is_complete else "it was cut")
