"""The cost of driving SQL Server on the client: our sessions and our bulk copy against a responder that answers at
once.

    python -m benchmarks.mssql calls     30 users of an executor call a procedure: calls per second, CPU µs per call
    python -m benchmarks.mssql bulk      rows per second and writer, five columns, one and two writers
    python -m benchmarks.mssql collectors  share of a core that all collectors take, by collector, at a large server

With FILES=1000 and SESSIONS=500 in the environment `collectors` is of a server with so many.

The responder (tests/support/tds) is a process of its own, with Microsoft's real driver on our side. It is no server:
only our own cost is measured. The figures are medians of rounds; both processes share the machine's cores.
"""

import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from stallmark.collectors import ON_REQUEST, collectors_for
from stallmark.collectors.sampler import Sampler
from stallmark.driver.executor import SWITCH_INTERVAL_S, keep_to_one_core
from stallmark.engines.mssql.bulk import BulkCopyWriter, Copier
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.session import MssqlSession
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import now
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter

USERS, SECONDS = 30, 8
WATCHED_S = 30
ROWS, PIECES = 100_000, 10
STATEMENTS = {
    "RPC": "{CALL dbo.one_row(?, ?, ?)}",
    "EXEC": "EXEC dbo.one_row ?, ?, ?",
    "transaction": "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION; "
    "EXEC dbo.one_row ?, ?, ?; COMMIT TRANSACTION",
}


@contextmanager
def responder(script: Path | None = None) -> Iterator[MssqlEngine]:
    argv = [sys.executable, "-m", "support.tds.responder", "--port", "0"]
    argv += ["--script", str(script)] if script else []
    tests = Path(__file__).parent.parent / "tests"
    with subprocess.Popen(argv, cwd=tests, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        try:
            yield MssqlEngine(f"mssql://bench:bench@127.0.0.1:{port}/bench?Encrypt=no")
        finally:
            process.terminate()


def calls(engine: MssqlEngine, sql: str) -> tuple[float, float]:
    """Return (calls per second, CPU µs per call) of USERS threads in this process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    everywhere = os.sched_getaffinity(0)
    keep_to_one_core(0)
    sessions = []
    for _ in range(USERS):
        session = MssqlSession(engine.connect("bench"), calls_by_rpc=True)
        session.prepare("call", sql)
        session.call("call", (1, 2, 3))
        sessions.append(session)
    counts = [0] * USERS
    begin, cpu = time.monotonic(), time.process_time()
    end = begin + SECONDS

    def work(index: int) -> None:
        draw = random.Random(index).random
        call = sessions[index].call
        while time.monotonic() < end:
            call("call", (int(draw() * 1e6), index, 7))
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(USERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed, spent = time.monotonic() - begin, time.process_time() - cpu
    os.sched_setaffinity(0, everywhere)
    for session in sessions:
        session.close()
    return sum(counts) / passed, spent / sum(counts) * 1e6


def bulk(engine: MssqlEngine, writers: int) -> float:
    """Return rows per second of all writers."""
    rng = np.random.default_rng(1)
    names = pa.array([f"customer {number:08d}" for number in range(ROWS)])
    piece = pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "account": pa.array(rng.integers(0, 1000, ROWS, np.int32)),
            "name": names,
            "amount": pa.array(rng.integers(0, 10**6, ROWS)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
            "at": pa.array(rng.integers(0, 2**50, ROWS)).cast(pa.timestamp("us")),
        }
    )

    def load(_: int) -> None:
        writer = BulkCopyWriter(engine.connect("bench"), Copier(engine))
        for _ in range(PIECES):
            writer.write("dbo.load", piece)

    begin = time.monotonic()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(load, range(writers)))
    return writers * ROWS * PIECES / (time.monotonic() - begin)


def collectors(engine: MssqlEngine) -> dict[str, float]:
    """Return the share of a core, by collector, and "all": what the process took meanwhile, writing the
    record included."""
    with TemporaryDirectory() as folder:
        writer = RecordWriter(Path(folder) / "run", Manifest(started=now()))
        usable = [c for c in collectors_for(engine, list(ON_REQUEST["mssql"])) if c.unavailable() is None]
        for collector in usable:
            writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
        begin = time.monotonic()
        sampler = Sampler(usable, writer.append, lambda: time.monotonic() - begin)
        sampler.start()
        since, cpu = time.monotonic(), time.process_time()
        time.sleep(WATCHED_S)
        passed, spent = time.monotonic() - since, time.process_time() - cpu
        sampler.stop()
        writer.close()
        assert not sampler.failures, sampler.failures
        costs = Record(Path(folder) / "run").table("collector_cost").to_pylist()
    shares: Counter[str] = Counter()
    for row in costs:
        shares[row["collector"]] += row["cpu_us"] / 1e6 / passed
    return dict(shares.most_common()) | {"all": spent / passed}


def watch(rounds: int) -> None:
    with responder(Path(__file__).with_name("mssql_views.py")) as engine:
        found = [collectors(engine) for _ in range(rounds)]
    for name in found[0]:
        print(f"{name:20} {statistics.median(round[name] for round in found):7.3%} of a core")


def main(mode: str, rounds: int) -> None:
    if mode == "collectors":
        return watch(rounds)
    with responder() as engine:
        if mode == "calls":
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in STATEMENTS}
            for _ in range(rounds):
                for name, sql in STATEMENTS.items():
                    found[name].append(calls(engine, sql))
                    print(f"{name}: {found[name][-1][0]:,.0f} calls/s, {found[name][-1][1]:.1f} µs", flush=True)
            for name, results in found.items():
                rate, cpu = (statistics.median(column) for column in zip(*results, strict=True))
                print(f"median {name}: {rate:,.0f} calls/s, {cpu:.1f} µs of client CPU per call")
        else:
            for writers in (1, 2):
                rates = [bulk(engine, writers) for _ in range(rounds)]
                print(f"{writers} writers: median {statistics.median(rates) / writers / 1e6:.2f} M rows/s and writer")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
