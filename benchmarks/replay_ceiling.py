"""The ceiling that a replay finds on random emulated arrays, against what their model can do by queueing theory.

python -m benchmarks.replay_ceiling [ARRAYS] [REPEATS] [SEED]    default: 3 arrays, 2 times each, 4 minutes a time

An array is spindles with fixed times, hit at random. By Pollaczek and Khinchine an I/O takes its own time on average
and waits for λ E[S²] / 2 (1 − ρ). The multiple at which reads take what the service level allows is what a replay
should find.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.sizing.manifest import Piece, Window
from stallmark.stats.ceiling_search import Asked
from stallmark.storage.emulator import ArrayModel, EmulatedArrays
from stallmark.storage.replay import replay

WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
MIB = 1 << 20
LIMIT = ServiceLevelObjective(name="oltp", read_ms=20, percentile="p95")
ASKED = Asked(0.25, 8, 0.05, whole=False)
PLAYED = 0.25
LOG = ArrayModel(2, 1, 1, 1, 200)


def array(chance: random.Random) -> ArrayModel:
    return ArrayModel(chance.randint(2, 6), chance.uniform(4, 11), chance.uniform(4, 11), 1, 200)


def window(model: ArrayModel, chance: random.Random) -> Window:
    """Return a minute of I/O that keeps the array busy for 20 to 60 % of the time, with a burst of writes in it."""
    assert model.read_ms and model.write_ms
    busy, share = chance.uniform(0.2, 0.6), chance.uniform(0.6, 0.95)
    rate = busy * model.spindles * 1000 / (share * model.read_ms + (1 - share) * model.write_ms)
    pieces = []
    for of_writes in (0.8, 0.8, 1.6, 0.8):
        reads, writes = rate * share, rate * (1 - share) * of_writes
        pieces.append(
            Piece(
                seconds=15,
                reads=reads,
                read_bytes=reads * 8192,
                writes=writes,
                write_bytes=writes * 8192,
                log_writes=rate / 10,
                log_bytes=rate / 10 * 8192,
            )
        )
    return Window(begin=0, because="ios_per_s", pieces=tuple(pieces))


def read_ms(model: ArrayModel, asked: Window, multiple: float) -> float:
    """Return the mean time of reads by queueing theory; infinite where a piece is too much."""
    assert model.read_ms and model.write_ms and model.mb_per_s
    transfer = 8192 / model.mb_per_s / 1000
    times = [model.read_ms + transfer, model.write_ms + transfer]
    total = 0.0
    for piece in asked.pieces:
        rates = [rate * multiple / model.spindles / 1000 for rate in (piece.reads, piece.writes)]
        busy = sum(rate * one for rate, one in zip(rates, times, strict=True))
        if busy >= 1:
            return float("inf")
        wait = sum(rate * one**2 for rate, one in zip(rates, times, strict=True)) / (2 * (1 - busy))
        total += piece.reads * (times[0] + wait)
    return total / sum(piece.reads for piece in asked.pieces)


def ceiling_by_theory(model: ArrayModel, asked: Window) -> float:
    low, high = ASKED.low, ASKED.high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if read_ms(model, asked, middle) <= LIMIT.read_ms else (low, middle)
    return low


def ceiling_by_replay(model: ArrayModel, asked: Window, seed: int) -> float:
    folders = {"raw": WORK / "replay" / "data", "wal": WORK / "replay" / "log"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    state = Path(f"/dev/shm/stallmark-benchmark-{os.getpid()}")
    with EmulatedArrays.create(state, folders, {"raw": model, "wal": LOG}, build_dir=WORK / "build") as devices:
        found = replay(
            [asked],
            ASKED,
            LIMIT,
            data=folders["raw"],
            log=folders["wal"],
            data_bytes=256 * MIB,
            log_bytes=32 * MIB,
            played=PLAYED,
            devices=devices,
            seed=seed,
        )
    for level in found.levels:
        [reads] = [stream for stream in level.streams if stream.name == "reads"]
        theory = read_ms(model, asked, level.level)
        print(
            f"    {level.level:5g} ×: {level.verdict}, reads {reads.mean_ms:.1f} ms, by theory {theory:.1f}", flush=True
        )
    return found.holds or 0.0


def main(arrays: int = 3, repeats: int = 2, seed: int = 1) -> None:
    chance = random.Random(seed)
    ratios, apart = [], []
    for _ in range(arrays):
        model = array(chance)
        asked = window(model, chance)
        theory = ceiling_by_theory(model, asked)
        found = []
        for again in range(repeats):
            began = time.monotonic()
            found.append(ceiling_by_replay(model, asked, seed + again))
            print(
                f"{model.spindles} spindles, {model.read_ms:.1f} and {model.write_ms:.1f} ms: {found[-1]:.2f} ×, by "
                f"theory {theory:.2f} × ({found[-1] / theory:.2f}), after {time.monotonic() - began:.0f} s",
                flush=True,
            )
        ratios += [one / theory for one in found]
        apart += [abs(a - b) / max(a, b) for a, b in combinations(found, 2)]
    print(f"replay ÷ theory: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    if apart:
        print(f"two replays of one array: median {statistics.median(apart):.0%} apart, at most {max(apart):.0%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
