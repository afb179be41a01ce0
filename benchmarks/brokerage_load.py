"""The brokerage's load: its rate against the server's COPY of the same rows, its generators, its memory.

    python -m benchmarks.brokerage_load rate [customers] [days] [repeats]     (from the root of the repository)
    python -m benchmarks.brokerage_load generators [days]
    python -m benchmarks.brokerage_load memory [units …]

`rate` fills the same bare heaps on the same embedded server in turn, with two streams each, and the ratio within a
repeat is what counts. The loader's time holds the start of its processes, generation and the ledger. `memory` makes
batches of a few load units out of so many, in a process of its own for each, and says the time per load unit.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
from benchmarks.load import SEED, _loaders, _peak_bytes

from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.embedded import EmbeddedEngine, EmbeddedServer
from stallmark.loaders import crew
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.plan import Batch, Plan
from stallmark.schema import deploy
from stallmark.schema.brokerage import METADATA
from stallmark.schema.ledger import METADATA as OWN_TABLES

STREAMS = 2
MEASURED_UNITS = 3  # of each population, in `memory`


def rate(customers: int = 5_000, days: float = 1.0, repeats: int = 3) -> None:
    scale = LOADER.scale({"customers": customers, "days": days})
    batches = Plan(LOADER.groups(scale)).batches()
    with tempfile.TemporaryDirectory(prefix="stallmark-load-") as name:
        folder = Path(name)
        server = EmbeddedServer(folder / "server")
        engine = EmbeddedEngine(server, "load")
        try:
            deploy.create_tables(engine, OWN_TABLES)
            deploy.create_tables(engine, deploy.take_apart(METADATA).tables)
            rows, streams = _ready_files(folder, scale, batches)
            ratios = []
            for _ in range(repeats):
                copied = _copy(engine, streams)
                loaded, peak = _load(engine, scale, batches)
                ratios.append(copied / loaded)
                print(
                    f"{rows:,} rows: COPY {copied:.1f} s ({rows / copied / 1e3:,.0f} k/s), load {loaded:.1f} s "
                    f"({rows / loaded / 1e3:,.0f} k/s), ratio {ratios[-1]:.2f}, loader's peak {peak / 1e6:.0f} MB"
                )
            print(f"median ratio {statistics.median(ratios):.2f}")
        finally:
            server.close()


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
        f"{units} load units: {statistics.median(seconds):.2f} CPU seconds each, peak {peak / 1e6:.0f} MB",
        flush=True,
    )


def _ready_files(folder: Path, scale: dict, batches: list[Batch]) -> tuple[int, list[list[tuple[str, Path]]]]:
    """The same rows as text, a file per stream and table."""
    rows = 0
    streams = []
    options = pa.csv.WriteOptions(include_header=False, quoting_style="needed")
    for k in range(STREAMS):
        sinks: dict[str, pa.csv.CSVWriter] = {}
        for batch in batches[k::STREAMS]:
            for table, piece in LOADER.batch(SEED, scale, batch):
                rows += piece.num_rows
                if table not in sinks:
                    sinks[table] = pa.csv.CSVWriter(
                        folder / f"{table}-{k}.csv", piece.schema, write_options=options
                    )
                sinks[table].write_table(piece)
        for sink in sinks.values():
            sink.close()
        streams.append([(table, folder / f"{table}-{k}.csv") for table in sinks])
    return rows, streams


def _empty(engine: Engine) -> None:
    engine.execute(
        f"TRUNCATE {', '.join(table.fullname for table in METADATA.sorted_tables)}, stallmark.ledger"
    )
    engine.execute("CHECKPOINT")


def _copy(engine: Engine, streams: list[list[tuple[str, Path]]]) -> float:
    _empty(engine)

    def run(files: list[tuple[str, Path]]) -> None:
        for table, path in files:
            engine.execute(f"COPY {table} FROM '{path}' (FORMAT csv)")

    started = time.monotonic()
    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(run, streams))
    return time.monotonic() - started


def _load(engine: Engine, scale: dict, batches: list[Batch]) -> tuple[float, int]:
    """Seconds, and the peak bytes of a process."""
    _empty(engine)
    peak = 0
    started = time.monotonic()
    for _ in crew.load(engine, "brokerage", SEED, scale, batches, STREAMS):
        peak = max([peak, *map(_peak_bytes, _loaders())])
    return time.monotonic() - started, peak


if __name__ == "__main__":
    action, *numbers = sys.argv[1:]
    {"rate": rate, "generators": generators, "memory": memory, "unit": unit}[action](
        *(float(n) if "." in n else int(n) for n in numbers)
    )
