"""The warehouse's load: its rate against the server's COPY of the same rows, and what generation alone takes.

    python -m benchmarks.warehouse_load rate [factor] [repeats]     (from the root of the repository)
    python -m benchmarks.warehouse_load generator [factor]

`rate`: see `load_rate`; the text for COPY takes 1.1 GB of temporary files for each 1 of the factor, the database 2 GB.
`generator` makes one batch of each group, and says the rows and what the start of the generator takes of the CPU.
"""

import resource
import sys
import time

from benchmarks import load_rate

from stallmark.loaders.plan import Batch
from stallmark.loaders.warehouse import LOADER
from stallmark.loaders.warehouse.generator import generated
from stallmark.schema.warehouse.tables import METADATA


def rate(factor: float = 1, repeats: int = 3) -> None:
    load_rate.rate("warehouse", METADATA, {"factor": factor}, int(repeats))


def generator(factor: float = 1) -> None:
    scale = LOADER.scale({"factor": factor})
    before = _cpu_s()
    with generated(scale["factor"], ["region"], 1, 1):
        pass
    print(f"the start of the generator: {_cpu_s() - before:.2f} CPU seconds")
    for group in LOADER.groups(scale):
        before, started, rows = _cpu_s(), time.monotonic(), 0
        for _, piece in LOADER.batch(1, scale, Batch(group.name, 0)):
            rows += piece.num_rows
        cpu, seconds = _cpu_s() - before, time.monotonic() - started
        print(f"{group.name}: {rows:,} rows in {seconds:.1f} s, {rows / cpu / 1e6:.2f} M rows per CPU second")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak of a loader process {peak / 1e6:.0f} MB, beside it the generator's own")


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    action, *numbers = sys.argv[1:]
    {"rate": rate, "generator": generator}[action](*map(float, numbers))
