"""How long two records of 24 hours take to compare, and in how much memory.

    python benchmarks/compare_day.py [--seconds 86400] [--keep FOLDER]

Writes two records as runs of the brokerage of that length would (30 users, every type of transaction with its
histograms each second, every collector at its own interval), then compares them in a process of its own, as
`stallmark compare` does with its report, and prints one line. The bars are 20 s and 1 GB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from day_record import TPS, USERS, histogram_columns, write, write_record

from stallmark.record import histogram as hdr
from stallmark.record.manifest_file import read_manifest, write_manifest
from stallmark.transactions import find_workload

POOL = 60  # different histograms for each number of transactions: making them takes longer than writing them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=86_400)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the records here and leave them")
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        compare(options.compare)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            measure(options.keep or Path(scratch), options.seconds)


def measure(folder: Path, seconds: int) -> None:
    for seed, name in enumerate(("A", "B"), 1):
        if not (folder / name).exists():
            make(folder / name, name, seconds, seed)
    stored = sum(file.stat().st_size for file in folder.glob("[AB]/*"))
    began = time.perf_counter()
    child = psutil.Popen([sys.executable, __file__, "--compare", str(folder)], stdout=subprocess.PIPE, text=True)
    peak = 0
    while child.poll() is None:
        peak = max(peak, sum(map(_memory, [child, *_children(child)])))
        time.sleep(0.05)
    said = json.loads(child.stdout.read())
    assert child.returncode == 0, child.returncode
    print(
        f"two records of {seconds:,} s ({stored / 1e6:.0f} MB): compared in {said['seconds']:.1f} s "
        f"({time.perf_counter() - began:.1f} s with start and imports), peak memory {peak / 1e6:.0f} MB "
        f"on {os.cpu_count()} cores; {said['verdict']}, {said['committed']:,} transactions"
    )


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _memory(process: psutil.Process) -> int:
    """Return the bytes that belong to the process alone; pages of files that several map are not counted. 0 when it
    has ended."""
    try:
        info = process.memory_full_info()
        return int(getattr(info, "uss", info.rss))
    except psutil.Error:  # it has ended
        return 0


def compare(folder: Path) -> None:
    from stallmark.analysis.compare.verdicts import compare_runs
    from stallmark.cli.summaries import summarise_each
    from stallmark.report.comparison.page import write_comparison

    began = time.perf_counter()
    experiment = summarise_each([folder])[""]
    found = compare_runs(experiment.runs)
    write_comparison(experiment, found, folder / "comparison.html")
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - began,
                "verdict": found.pairs[0].verdict,
                "committed": sum(step.throughput.committed for step in experiment.steps),
            }
        )
    )


def make(folder: Path, variant: str, seconds: int, seed: int) -> None:
    """Make the record of day_record.py, with the brokerage's transactions in place of its one."""
    write_record(folder, seconds)
    started = f"2025-11-2{seed}T00:00:00.000+00:00"
    write_manifest(folder, read_manifest(folder).changed(variant={"name": variant}, sequence=seed, started=started))
    rng = np.random.default_rng(seed)
    cards = {kind.name: number for kind, number in find_workload("brokerage").users.deck.items()}
    shares = np.array(list(cards.values())) / sum(cards.values())
    counts = rng.poisson(TPS * shares, (seconds, len(shares)))
    second, kind = np.nonzero(counts)
    committed = counts[second, kind]
    pool = {n: [_histogram(rng, n) for _ in range(POOL)] for n in np.unique(committed)}
    pick = rng.integers(0, POOL, len(committed))
    latency_us = committed * (USERS * 990_000 // TPS)
    write(
        folder,
        "transactions",
        {
            "second": second,
            "transaction": np.array(list(cards))[kind],
            "committed": committed,
            "latency_us": latency_us,
            "service_us": latency_us,
        }
        | histogram_columns("latency", [pool[n][i] for n, i in zip(committed, pick, strict=True)])
        | histogram_columns("service", [pool[n][(i + 7) % POOL] for n, i in zip(committed, pick, strict=True)]),
    )


def _histogram(rng: np.random.Generator, n: int) -> hdr.Histogram:
    return hdr.encode(rng.lognormal(np.log(USERS / TPS * 1e6) - 0.125, 0.5, n).astype(np.int64))


if __name__ == "__main__":
    main()
