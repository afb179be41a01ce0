"""Load rate against the server's own COPY of the same rows from ready files, with as many streams.

    python -m benchmarks.load [branches] [repeats]        (from the root of the repository)

Both fill the same bare heap on the same embedded server, in turn, within one run: the ratio is what counts,
the rates are this machine's. The loader's time holds the start of its processes, generation and the ledger.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.csv

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders import loader_pool
from stallmark.loaders.bank import LOADER
from stallmark.loaders.plan import Batch, LoadPlan
from stallmark.schema import deploy
from stallmark.schema.bank.tables import METADATA
from stallmark.schema.ddl import ddl_of
from stallmark.schema.ledger import METADATA as OWN_TABLES

SEED = 1
STREAMS = (1, 2)


def main(branches: int = 30, repeats: int = 3) -> None:
    scale = LOADER.scale({"branches": branches})
    batches = [b for b in LoadPlan(LOADER.groups(scale)).batches() if b.group == "accounts"]
    rows = branches * 100_000
    with tempfile.TemporaryDirectory(prefix="stallmark-load-") as folder, _engine(Path(folder)) as engine:
        copied: dict[int, list[float]] = {n: [] for n in STREAMS}
        loaded: dict[int, list[tuple[float, float]]] = {n: [] for n in STREAMS}
        files = {n: _ready_files(Path(folder), scale, batches, n) for n in STREAMS}
        peak = 0
        for _ in range(repeats):
            for streams in STREAMS:
                copied[streams].append(_copy(engine, files[streams]))
                seconds, steady, memory = _load(engine, scale, batches, streams)
                loaded[streams].append((seconds, steady))
                peak = max(peak, memory)
        _print(rows, copied, loaded)
    print(f"loader process, peak resident memory: {peak / 1e6:.0f} MB")
    print(f"generator: {_generator_cpu(scale, batches) * 1e9:.0f} ns of CPU per row")


def _print(rows: int, copied: dict[int, list[float]], loaded: dict[int, list[tuple[float, float]]]) -> None:
    """Print medians in thousands of rows per second; the ratios are taken within a repeat."""
    print(f"{rows:,} accounts, median of {len(copied[1])}")
    print(f"{'streams':>8}{'COPY k/s':>10}{'load k/s':>10}{'ratio':>7}{'without start':>15}")
    for streams in STREAMS:
        pairs = list(zip(copied[streams], loaded[streams], strict=True))
        _line(
            str(streams),
            rows / statistics.median(c for c, _ in pairs),
            rows / statistics.median(s for _, (s, _) in pairs),
            statistics.median(c / s for c, (s, _) in pairs),
            statistics.median(c / s for c, (_, s) in pairs),
        )
    best = [
        (min(c), min(s for s, _ in pair), min(s for _, s in pair))
        for c, pair in zip(zip(*copied.values(), strict=True), zip(*loaded.values(), strict=True), strict=True)
    ]
    _line(
        "best",
        rows / statistics.median(c for c, _, _ in best),
        rows / statistics.median(s for _, s, _ in best),
        statistics.median(c / s for c, s, _ in best),
        statistics.median(c / s for c, _, s in best),
    )


def _line(streams: str, copy: float, load: float, ratio: float, steady: float) -> None:
    print(f"{streams:>8}{copy / 1e3:>10.0f}{load / 1e3:>10.0f}{ratio:>7.2f}{steady:>15.2f}")


@contextmanager
def _engine(folder: Path) -> Iterator[Engine]:
    server = EmbeddedServer(folder / "server")
    engine = EmbeddedEngine(server, "load")
    try:
        deploy.create_tables(engine, OWN_TABLES)
        deploy.create_tables(engine, ddl_of(METADATA).tables)
        yield engine
    finally:
        server.close()


def _ready_files(folder: Path, scale: dict, batches: list[Batch], streams: int) -> list[Path]:
    """Write the same rows as text, one file per stream; return the paths."""
    paths = [folder / f"accounts-{streams}-{k}.csv" for k in range(streams)]
    for k, path in enumerate(paths):
        with path.open("wb") as sink:
            for batch in batches[k::streams]:
                for _, rows in LOADER.batch(SEED, scale, batch):
                    options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
                    pa.csv.write_csv(rows, sink, options)
    return paths


def _empty(engine: Engine) -> None:
    engine.execute("TRUNCATE bank.accounts, stallmark.ledger")
    engine.execute("CHECKPOINT")


def _copy(engine: Engine, files: list[Path]) -> float:
    _empty(engine)
    started = time.monotonic()
    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(lambda path: engine.execute(f"COPY bank.accounts FROM '{path}'"), files))
    return time.monotonic() - started


def _load(engine: Engine, scale: dict, batches: list[Batch], streams: int) -> tuple[float, float, int]:
    """Return seconds; seconds for as many rows at the rate after the processes were up; peak bytes of a process."""
    _empty(engine)
    peak = 0
    ends: list[float] = []
    started = time.monotonic()
    for _ in loader_pool.load(engine, "bank", SEED, scale, batches, streams):
        ends.append(time.monotonic())
        peak = max([peak, *map(_peak_bytes, _loaders())])
    # The first batch of each stream holds its start; count from the last of these.
    steady = (ends[-1] - ends[streams - 1]) / (len(batches) - streams) * len(batches)
    return ends[-1] - started, steady, peak


def _loaders() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "stallmark.loaders.worker" in p.cmdline()]


def _peak_bytes(process: psutil.Process) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _generator_cpu(scale: dict, batches: list[Batch]) -> float:
    started = time.process_time()
    rows = sum(table.num_rows for batch in batches for _, table in LOADER.batch(SEED, scale, batch))
    return (time.process_time() - started) / rows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
