"""The rate of a loader against the server's own COPY of the same rows, for several benchmarks.

Both fill the same bare heaps on the same embedded server in turn, with two streams each, and the ratio within a repeat
is what counts. The loader's time holds the start of its processes, generation and the ledger. COPY has its rows ready:
no load can reach it. Its bound is COPY's time, and that of making all rows once with both cores.
"""

import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.csv
import sqlalchemy as sa
from benchmarks.load import SEED, _loaders, _peak_bytes

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders import loader_pool
from stallmark.loaders.find import loader_for
from stallmark.loaders.plan import Batch, LoadPlan, Piece
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.schema.ledger import METADATA as OWN_TABLES

STREAMS = 2

Files = Sequence[tuple[str, Path]]


def rate(workload: str, metadata: sa.MetaData, scale: Mapping[str, Any], repeats: int) -> None:
    """Print rows, seconds and the ratio of each repeat."""
    loader = loader_for(workload)
    scale = loader.scale(scale)
    batches = LoadPlan(loader.groups(scale)).batches()
    with tempfile.TemporaryDirectory(prefix="stallmark-load-") as name:
        folder = Path(name)
        server = EmbeddedServer(folder / "server")
        engine = EmbeddedEngine(server, "load")
        try:
            deploy.create_tables(engine, OWN_TABLES)
            deploy.create_tables(engine, ddl_of(metadata).tables)
            rows, streams = _ready_files(workload, folder, scale, batches)
            ratios, of_bound = [], []
            for _ in range(repeats):
                made = _making_cpu_s(workload, scale, batches)
                copied = _copy(engine, metadata, streams)
                loaded, peak = _load(engine, workload, metadata, scale, batches)
                ratios.append(copied / loaded)
                of_bound.append((copied + made / STREAMS) / loaded)
                print(
                    f"{rows:,} rows: COPY {copied:.1f} s ({rows / copied / 1e3:,.0f} k/s), "
                    f"made in {made:.1f} s of CPU, load {loaded:.1f} s ({rows / loaded / 1e3:,.0f} k/s), "
                    f"{ratios[-1]:.2f} of COPY, {of_bound[-1]:.2f} of the bound, loader's peak {peak / 1e6:.0f} MB",
                    flush=True,
                )
            print(f"median {statistics.median(ratios):.2f} of COPY, {statistics.median(of_bound):.2f} of the bound")
        finally:
            server.close()


def _ready_files(
    workload: str, folder: Path, scale: Mapping[str, Any], batches: Sequence[Batch]
) -> tuple[int, list[Files]]:
    """Write the same rows as text, a file per stream and table; return the number of rows and the files."""
    rows = 0
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    sinks: list[dict[str, pyarrow.csv.CSVWriter]] = [{} for _ in range(STREAMS)]
    for number, pieces in enumerate(_made(workload, scale, batches)):
        k = number % STREAMS
        for table, piece in pieces:
            rows += piece.num_rows
            if table not in sinks[k]:
                path = folder / f"{table}-{k}.csv"
                sinks[k][table] = pyarrow.csv.CSVWriter(path, piece.schema, write_options=options)
            sinks[k][table].write_table(piece)
    for sink in (sink for of_stream in sinks for sink in of_stream.values()):
        sink.close()
    return rows, [[(table, folder / f"{table}-{k}.csv") for table in of_stream] for k, of_stream in enumerate(sinks)]


def _made(workload: str, scale: Mapping[str, Any], batches: Sequence[Batch]) -> Iterator[Iterator[Piece]]:
    """Yield the rows of each batch, as loader processes have them."""
    loader = loader_for(workload)
    with loader.supply(scale, batches, STREAMS) as supply:
        for batch in supply.batches:
            yield loader.supplied(supply.folders, SEED, scale, batch)


def _making_cpu_s(workload: str, scale: Mapping[str, Any], batches: Sequence[Batch]) -> float:
    """Return the CPU seconds that making all rows takes, in this process and its children."""
    before = _cpu_s()
    for pieces in _made(workload, scale, batches):
        for _ in pieces:
            pass
    return _cpu_s() - before


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _empty(engine: Engine, metadata: sa.MetaData) -> None:
    engine.execute(f"TRUNCATE {', '.join(table.fullname for table in metadata.sorted_tables)}, stallmark.ledger")
    engine.execute("CHECKPOINT")


def _copy(engine: Engine, metadata: sa.MetaData, streams: Sequence[Files]) -> float:
    _empty(engine, metadata)

    def run(files: Files) -> None:
        for table, path in files:
            engine.execute(f"COPY {table} FROM '{path}' (FORMAT csv)")

    started = time.monotonic()
    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(run, streams))
    return time.monotonic() - started


def _load(
    engine: Engine, workload: str, metadata: sa.MetaData, scale: Mapping[str, Any], batches: Sequence[Batch]
) -> tuple[float, int]:
    """Return seconds, and the peak bytes of a process."""
    _empty(engine, metadata)
    peak = 0
    started = time.monotonic()
    for _ in loader_pool.load(engine, workload, SEED, scale, batches, STREAMS):
        peak = max([peak, *map(_peak_bytes, _loaders())])
    return time.monotonic() - started, peak
