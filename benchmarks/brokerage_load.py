"""The brokerage's load: its rate against the server's COPY of the same rows, its generators, its memory.

    python -m benchmarks.brokerage_load rate [customers] [days] [repeats]     (from the root of the repository)
    python -m benchmarks.brokerage_load generators [days]
    python -m benchmarks.brokerage_load memory [units …]

`rate`: see `load_rate`. `memory` makes batches of a few load units out of so many, in a process of its own for each,
and says the time per load unit.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict

from benchmarks import load_rate
from benchmarks.load import SEED

from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.plan import Batch
from stallmark.schema.brokerage.tables import METADATA

MEASURED_UNITS = 3  # of each population, in `memory`


def rate(customers: int = 5_000, days: float = 1.0, repeats: int = 3) -> None:
    load_rate.rate("brokerage", METADATA, {"customers": customers, "days": days}, repeats)


def generators(days: float = 1.0) -> None:
    scale = LOADER.scale({"customers": 5_000, "days": days})
    list(LOADER.batch(SEED, scale, Batch("fixed", 0)))  # the pools of words are made once
    for group in ("trade", "market", "customers"):
        started = time.process_time()
        made: dict[str, int] = defaultdict(int)
        size = 0
        for number in range(3):
            for table, piece in LOADER.batch(SEED, scale, Batch(group, number)):
                made[table] += piece.num_rows
                size += piece.nbytes
        seconds = time.process_time() - started
        rows = sum(made.values())
        print(f"{group}: {rows / seconds / 1e6:.2f} M rows and {size / seconds / 1e6:.0f} MB per CPU second")


def memory(*units: int) -> None:
    for count in units or (5, 50):
        subprocess.run([sys.executable, "-m", "benchmarks.brokerage_load", "unit", str(count)], check=True)


def unit(units: int) -> None:
    scale = LOADER.scale({"customers": 1_000 * units, "days": 1.0})
    list(LOADER.batch(SEED, scale, Batch("fixed", 0)))
    seconds = []
    for number in range(units - MEASURED_UNITS, units):
        started = time.process_time()
        for group in ("trade", "market", "customers"):
            for _ in LOADER.batch(SEED, scale, Batch(group, number)):
                pass
        seconds.append(time.process_time() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{units} load units: {statistics.median(seconds):.2f} CPU seconds each, peak {peak / 1e6:.0f} MB", flush=True
    )


if __name__ == "__main__":
    action, *numbers = sys.argv[1:]
    {"rate": rate, "generators": generators, "memory": memory, "unit": unit}[action](
        *(float(n) if "." in n else int(n) for n in numbers)
    )
