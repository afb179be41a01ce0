"""Is the emulated array as slow as its model says? Random reads by fio on it, beside an independent simulation.

    python -m benchmarks.emulated_array interposer  hit, miss, mixed and tier at 1 to 32 outstanding, interposed
    python -m benchmarks.emulated_array device      the same on a block device of `stallmark array` (as root)
    python -m benchmarks.emulated_array cost        what the interposer itself takes of an I/O

The simulation is tests/support/array_oracle.py. As many fio threads as there are outstanding I/Os read 8 KiB each, one
after the other; of the block device, one thread that keeps as many under way. Hits and misses are told apart by what
the array counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from stallmark.storage.block_device.lifecycle import BlockDeviceArray
from stallmark.storage.emulator import ArrayCounters, ArrayModel, EmulatedArrays, FlashCache, FlashTier

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.array_oracle import READ, Oracle

MIB = 1 << 20
DATA = 512 * MIB
DISKS = ArrayModel(spindles=6, rpm=10_000, seek_ms=4, sync_ms=0, mb_per_s=150)
OUTSTANDING = (1, 2, 4, 8, 16, 32)
ARRAYS = {
    "miss": DISKS,
    "hit": replace(DISKS, cache=FlashCache(4 * DATA)),
    "mixed": replace(DISKS, cache=FlashCache(DATA // 2)),
    "tier": replace(DISKS, tier=FlashTier(DATA // 4, cycle_s=0.5)),
}
HOT = (80, 20)
"""Of the tier: so many per cent of the reads go to so many per cent of the data."""
TOLERANCE = 0.10


@dataclass(frozen=True)
class Point:
    read_ms: float
    by_flash: float  # share of the reads
    late: float  # share of the I/Os


@dataclass(frozen=True)
class Home:
    """The place of an array: a file on it, a way to change its model, and its counters."""

    file: Path
    environment: dict[str, str]
    change: Callable[[ArrayModel], object]
    counters: Callable[[], ArrayCounters]

    def fio(self, *options: str) -> dict:
        """Run fio and return what it says of its reads."""
        command = ["fio", "--name=emulated", f"--filename={self.file}", f"--size={DATA}", "--direct=1", *options]
        done = subprocess.run(
            [*command, "--thread", "--group_reporting", "--output-format=json"],
            env=os.environ | self.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]

    def outstanding(self, number: int) -> list[str]:
        if self.environment:  # the interposer sees plain calls only
            return ["--ioengine=psync", f"--numjobs={number}"]
        return ["--ioengine=libaio", f"--iodepth={number}"]


def draw(kind: str) -> Callable[[], tuple[int, int, int]]:
    """Return a function that draws I/Os as fio does: an operation, an offset and a number of bytes."""
    chance = random.Random(1)
    share, hot = HOT[0] / 100, DATA * HOT[1] // 100

    def one() -> tuple[int, int, int]:
        if kind != "tier":
            return READ, chance.randrange(DATA // 8192) * 8192, 8192
        low, high = (0, hot) if chance.random() < share else (hot, DATA)
        return READ, chance.randrange(low // 8192, high // 8192) * 8192, 8192

    return one


def expected(kind: str, outstanding: int) -> Point:
    oracle = Oracle(ARRAYS[kind], seed=outstanding)
    blocks = list(range(DATA // 8192))
    random.Random(2).shuffle(blocks)
    for block in blocks if ARRAYS[kind].cache else []:  # as full as it gets
        oracle.cached.put(block)
    warm = 20_000 if kind == "tier" else 500
    oracle.closed(outstanding, warm + 10_000, draw(kind))
    return Point(1e3 * fmean(oracle.latencies[warm:]), fmean(oracle.by_flash[warm:]), 0)


def measured(kind: str, outstanding: int, home: Home, seconds: float) -> Point:
    more = [f"--random_distribution=zoned:{HOT[0]}/{HOT[1]}:{100 - HOT[0]}/{100 - HOT[1]}"] if kind == "tier" else []
    before = home.counters()
    done = home.fio(
        "--rw=randread", "--bs=8k", "--norandommap", "--randrepeat=0", "--time_based", f"--runtime={seconds}",
        *home.outstanding(outstanding), *more,
    )  # fmt: skip
    after = home.counters()
    reads = after.reads - before.reads
    flash = after.flash.reads - before.flash.reads if after.flash and before.flash else 0
    return Point(done["lat_ns"]["mean"] / 1e6, flash / reads, (after.late - before.late) / reads)


def compare(home: Home, seconds: float) -> None:
    print(f"{'':8}{'outst.':>6}{'model ms':>10}{'seen ms':>10}{'ratio':>8}{'flash':>8}{'seen':>8}{'late':>8}")
    for kind, model in ARRAYS.items():
        home.change(model)
        if model.cache:  # everything read once, in its order: what does not fit leaves again, all blocks alike
            home.fio("--rw=read", "--bs=64k", "--ioengine=psync")
        elif model.tier:
            measured(kind, 16, home, 40 * model.tier.cycle_s)
        for outstanding in OUTSTANDING:
            seen = measured(kind, outstanding, home, seconds)
            report(kind, outstanding, expected(kind, outstanding), seen)


def through_the_interposer(seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        file = Path(scratch) / "file"
        _write(file)
        with EmulatedArrays.create(
            Path("/dev/shm/stallmark-benchmark"), {"array": Path(scratch)}, {"array": DISKS}, build_dir=Path(scratch)
        ) as devices:  # fmt: skip
            change = partial(devices.set_model, "array")
            compare(Home(file, devices.environment(), change, lambda: devices.counters()["array"]), seconds)


def on_a_block_device(seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        array = BlockDeviceArray(Path(scratch), "benchmark")
        facts = array.create(DATA, DISKS)
        try:
            print(f"The way there and back takes {array.done().path_ms:.3f} ms.")
            compare(Home(Path(str(facts.loop)), {}, array.change, lambda: array.done().counters), seconds)
        finally:
            array.destroy()


def _write(file: Path) -> None:
    with file.open("wb") as stream:
        for _ in range(DATA // MIB):
            stream.write(os.urandom(MIB))


def report(kind: str, outstanding: int, model: Point, seen: Point) -> None:
    ratio = seen.read_ms / model.read_ms
    verdict = "" if abs(ratio - 1) <= TOLERANCE else "  beyond 10 %"
    print(
        f"{kind:8}{outstanding:6}{model.read_ms:10.3f}{seen.read_ms:10.3f}{ratio:8.3f}{model.by_flash:8.3f}"
        f"{seen.by_flash:8.3f}{seen.late:8.3f}{verdict}",
        flush=True,
    )


READER = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
block = [mmap.mmap(-1, 8192)]
offsets = [i * 7919 % 65536 * 8192 for i in range(20_000)]
begin = time.process_time_ns()
for offset in offsets:
    os.preadv(file, block, offset)
print((time.process_time_ns() - begin) / len(offsets))
"""


def cost() -> None:
    """Return the CPU time of a read in memory (tmpfs has no direct I/O, so the file is on disk, the time is
    the CPU's)."""
    fast = ArrayModel(spindles=1, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=100_000)
    models = {
        "no interposer": None,
        "a simple device": fast,
        "a cache": replace(fast, cache=FlashCache(DATA, read_ms=0, write_ms=0, mb_per_s=100_000)),
        "a tier": replace(fast, tier=FlashTier(DATA, read_ms=0, write_ms=0, mb_per_s=100_000)),
    }
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        file = Path(scratch) / "file"
        _write(file)
        for _ in range(3):
            for name, model in models.items():
                state = Path("/dev/shm/stallmark-benchmark")
                with EmulatedArrays.create(
                    state, {"array": Path(scratch)}, {"array": model}, build_dir=Path(scratch)
                ) as devices:
                    extra = devices.environment() if model else {}
                    command = [sys.executable, "-c", READER, str(file)]
                    done = subprocess.run(command, env=os.environ | extra, capture_output=True, text=True, check=True)
                    print(f"{name:16} {float(done.stdout):8.0f} ns of CPU per read", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["interposer", "device", "cost"])
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    given = parser.parse_args()
    begin = time.monotonic()
    if given.what == "cost":
        cost()
    else:
        (through_the_interposer if given.what == "interposer" else on_a_block_device)(given.seconds)
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
