"""The cost of knowing what a query did, and the time that the driver takes between two queries.

python -m benchmarks.query_cost [factor] [rounds]   every query as a run executes it (PostgreSQL: EXPLAIN ANALYZE)
                                                    against the same query plainly, alternating; and the gaps of a run

Ratios are of the same query, cached alike: each is executed once before, and the pool holds the whole database.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from stallmark.analysis.read.query_figures import geometric_mean
from stallmark.driver.query_streams import Query, QueryDrive, Stopwatch
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.engines.postgres.queries import PostgresQueries
from stallmark.loaders.find import loader_for
from stallmark.loaders.load import build
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse.parameters import parameters
from stallmark.transactions.warehouse.queries import QUERIES, text

WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
TIMEOUT_S = 600


def main(factor: float, rounds: int) -> None:
    scale = loader_for("warehouse").scale({"factor": factor})
    engine = EmbeddedEngine(EmbeddedServer(WORK / f"warehouse-{factor:g}"), "warehouse")
    try:
        build(engine, find_workload("warehouse"), scale, 1, workers=os.cpu_count() or 1)
        engine.memory.cap(2 * engine.bytes_used() + 64 * 1024**2)
        texts = {query: text(query, "postgresql", parameters(query, 1, 0, factor)) for query in QUERIES}
        session = engine.queries(TIMEOUT_S)
        ratios = {query: _ratio(session, statement, rounds) for query, statement in texts.items()}
        session.close()
        for query, (ratio, plain_s) in ratios.items():
            print(f"Q{query:<3} {plain_s:8.3f} s plainly, {ratio:5.3f} of that as a run executes it")
        print(f"geometric mean {geometric_mean([ratio for ratio, _ in ratios.values()]):.3f}")
        gaps = _gaps_ms(engine, texts)
        print(f"driver between two queries: mean {statistics.mean(gaps):.3f} ms, most {max(gaps):.3f} ms")
    finally:
        engine.close()


def _ratio(session: PostgresQueries, statement: str, rounds: int) -> tuple[float, float]:
    """Return the medians of both ways, the first over the second; and the second in seconds."""
    session.execute_plainly(statement)
    known, plain = [], []
    for _ in range(rounds):
        for times, execute in ((known, session.execute), (plain, session.execute_plainly)):
            began = time.perf_counter()
            execute(statement)
            times.append(time.perf_counter() - began)
    return statistics.median(known) / statistics.median(plain), statistics.median(plain)


def _gaps_ms(engine: EmbeddedEngine, texts: dict[int, str]) -> list[float]:
    """Return the gaps between queries in ms, as a run's record has them."""
    folder = WORK / "query-cost-record"
    shutil.rmtree(folder, ignore_errors=True)
    writer = RecordWriter(folder, Manifest(started=now()))
    drive = QueryDrive(engine, writer, TIMEOUT_S, Stopwatch(), "warehouse")
    drive.start()
    try:
        steps = [Query(f"Q{query}", statement) for query, statement in texts.items()]
        drive.follow("power", [(0, steps)], lambda progress: None, lambda: None)
    finally:
        drive.finish()
        writer.close()
    rows = Record(folder).table("queries").sort_by("position").to_pylist()
    return [(after["started_s"] - before["started_s"] - before["seconds"]) * 1000 for before, after in pairwise(rows)]


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
