"""The cost of driving several loads: the driver's CPU per transaction with as many users and transactions in all.

    python -m benchmarks.driver_loads full [loads [rounds]]    closed loop, no think time
    python -m benchmarks.driver_loads light [loads [rounds]]   an open loop of few transactions

One load and several alternate on one server; the figure is the median of the ratios within each round. The CPU is that
of all executors and of the conductor, in the measured interval.
"""

import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import psutil
from benchmarks.cached_bank import cached_bank

from stallmark.driver.controller import Drive, LoadProgress
from stallmark.driver.load import LoadSpec
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

USERS, SECONDS, WARM_UP_S = 30, 12, 3
LIGHT_TPS = 200.0
BRANCHES = 10


def driven(engine: EmbeddedEngine, folder: Path, mode: str, loads: int) -> tuple[float, float, int]:
    """Return (committed TPS, driver CPU µs per transaction, executors) of the measured interval."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = RecordWriter(folder, Manifest(started=now()))
    arrivals = Arrivals() if mode == "full" else Arrivals("poisson", rate=LIGHT_TPS / loads)
    seed = random.randrange(1000)
    specs = [
        LoadSpec(
            f"bank {number}",
            "bank",
            {"branches": BRANCHES},
            {"transfer": 1},
            (USERS // loads,),
            seed,
            call_timeout_s=60,
            arrivals=arrivals,
        )
        for number in range(loads)
    ]
    steps = consecutive_steps([USERS], ramp_s=0, warm_up_s=WARM_UP_S, measure_s=SECONDS)
    drive = Drive(Timeline(steps), engine.spec(), specs, writer)
    conductor = psutil.Process(drive._process.pid)
    spent: dict[bool, list[float]] = {False: [], True: []}  # before it is measured, and while

    def note(progress: LoadProgress) -> None:
        if progress.elapsed_s < progress.step.end_s:
            times = conductor.cpu_times()
            spent[progress.elapsed_s >= progress.step.measure_s].append(times.user + times.system)

    drive.start()
    drive.follow(note, lambda: None)
    drive.finish()
    writer.close()
    record = Record(folder)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    committed = sum(r["committed"] for r in record.table("transactions").to_pylist() if r["second"] in inside)
    users = record.table("users").to_pylist()
    cpu_us = sum(r["cpu_us"] for r in users if r["second"] in inside) + (spent[True][-1] - spent[True][0]) * 1e6
    return committed / SECONDS, cpu_us / committed, len({r["executor"] for r in users})


def main(mode: str, loads: int, rounds: int) -> None:
    work = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
    with cached_bank(work / "loads", BRANCHES) as engine:
        ratios = []
        for number in range(rounds):
            found = {}
            for count in (1, loads) if number % 2 else (loads, 1):  # neither always comes first
                found[count] = tps, cpu_us, executors = driven(engine, work / "record", mode, count)
                print(f"{count} loads, {executors} executors: {tps:,.0f} TPS {cpu_us:.1f} µs", end="  ", flush=True)
            ratios.append(found[loads][1] / found[1][1])
            print(f"ratio {ratios[-1]:.3f}", flush=True)
        print(f"{mode}: {loads} loads take {statistics.median(ratios):.3f} × the CPU of one per transaction")


if __name__ == "__main__":
    given = [int(number) for number in sys.argv[2:]]
    main(sys.argv[1], *given, *[5, 3][len(given) :])
