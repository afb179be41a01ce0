"""The cost of driving the brokerage: executor CPU of the full mix, above a bare loop of the same calls.

    python -m benchmarks.brokerage mix 3     so many rounds

Contestants alternate; the figure is the median of the differences within each round.
"""

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.driver import drive_load
from benchmarks.recorded import Recorded, record
from psycopg import pq

from stallmark.driver.load import LoadSpec
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions import find_workload

USERS, SECONDS, WARM_UP_S = 30, 15, 5
SCALE: dict[str, Any] = {"customers": 5000, "days": 1, "compressibility": 2}
RECORDED = 60_000
LARGE_POOL = 2 * 1024**3
WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"


def opened() -> EmbeddedEngine:
    """Open the brokerage as loaded, with a copy of that."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / "brokerage"), "brokerage")
    build(engine, find_workload("brokerage"), SCALE, 1, workers=2)
    return engine


def recorded(engine: EmbeddedEngine) -> list[Recorded]:
    """Return the recorded transactions. They are recorded once; the database is then restored as loaded."""
    kept = WORK / "recorded.pickle"
    if not kept.exists():
        if engine.backup.label() != "as loaded":
            engine.backup.keep("as loaded")
        engine.memory.cap(LARGE_POOL)
        found = list(record(engine, SCALE, RECORDED))
        engine.backup.restore()
        kept.write_bytes(pickle.dumps(found))
    return pickle.loads(kept.read_bytes())


def made_ready(engine: EmbeddedEngine) -> None:
    engine.backup.restore()
    engine.memory.cap(LARGE_POOL)
    engine.execute("ALTER DATABASE brokerage SET synchronous_commit = off")  # no commit waits for this machine's disk
    engine.prefill.fill("brokerage")
    engine.checkpoint()
    engine.devices.engage()


def driven(engine: EmbeddedEngine) -> tuple[float, float]:
    """Return (TPS, executor CPU µs per transaction) of the measured interval."""
    found = find_workload("brokerage")
    load = LoadSpec(
        "brokerage",
        "brokerage",
        SCALE,
        {kind.name: cards for kind, cards in found.users.deck.items()},
        (USERS,),
        seed=1,
        call_timeout_s=60,
        background_per_user=found.background.sessions_per_user,
    )
    kept = drive_load(engine, WORK / "record", load, WARM_UP_S, SECONDS)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    rows = [row for row in kept.table("transactions").to_pylist() if row["second"] in inside]
    done = sum(row["committed"] + row["rolled_back"] for row in rows)
    cpu = sum(row["cpu_us"] for row in kept.table("users").to_pylist() if row["second"] in inside)
    if failed := sum(row["failed"] for row in rows):
        print(f"({failed} failed)", end="  ")
    return done / SECONDS, cpu / done


def mix(rounds: int) -> None:
    engine = opened()
    try:
        transactions = recorded(engine)
        hands = [transactions[index::USERS] for index in range(USERS)]
        for index in range(2):
            (WORK / f"hands{index}.pickle").write_bytes(pickle.dumps(hands[index::2]))
        above = []
        for number in range(rounds):
            figures = {}
            for ours in (False, True) if number % 2 else (True, False):
                made_ready(engine)
                figures[ours] = driven(engine) if ours else bare_loop(engine)
            above.append(figures[True][1] - figures[False][1])
            print(
                f"round {number + 1}: stallmark {figures[True][0]:,.0f} TPS {figures[True][1]:.1f} µs, "
                f"bare loop {figures[False][0]:,.0f} TPS {figures[False][1]:.1f} µs, {above[-1]:.1f} µs above",
                flush=True,
            )
        print(f"mix: executor CPU above the bare loop, median {statistics.median(above):.1f} µs a transaction")
    finally:
        engine.close()


def bare_loop(engine: EmbeddedEngine) -> tuple[float, float]:
    """Drive USERS threads in two plain processes, each on a core, that send the recorded calls and read the
    answers' rows."""
    argv = [sys.executable, "-m", "benchmarks.brokerage", "loop", engine.server.url("brokerage")]
    processes = [subprocess.Popen([*argv, str(index)], stdout=subprocess.PIPE, text=True) for index in range(2)]
    results = [process.communicate()[0].split() for process in processes]
    count = sum(int(result[0]) for result in results)
    return count / max(float(result[2]) for result in results), sum(
        float(result[1]) for result in results
    ) / count * 1e6


def loop(conninfo: str, index: int) -> None:
    from stallmark.driver.executor import SWITCH_INTERVAL_S, keep_to_one_core

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_to_one_core(index)
    hands = pickle.loads((WORK / f"hands{index}.pickle").read_bytes())
    workload = find_workload("brokerage")
    texts = {
        frame: workload.call(kind, frame, "postgresql").encode()
        for kind in workload.transactions
        for frame in kind.frames
    }
    ready = threading.Barrier(len(hands) + 1)
    counts = [0] * len(hands)
    end = [0.0]

    def work(number: int) -> None:
        connection = pq.PGconn.connect(conninfo.encode())
        for frame, text in texts.items():
            connection.prepare(frame.encode(), text)
        mine = [
            (
                each.ends,
                each.isolation and f"BEGIN ISOLATION LEVEL {each.isolation}".encode(),
                [
                    (frame.encode(), [None if v is None else str(v).encode() for v in values])
                    for frame, values in each.calls
                ],
                b"COMMIT" if each.commits else b"ROLLBACK",
            )
            for each in hands[number]
        ]
        ready.wait()
        for ends, begin, calls, finish in mine:
            if time.monotonic() > end[0]:
                break
            if begin:
                connection.exec_(begin)
            for frame, values in calls:
                result = connection.exec_prepared(frame, values)
                value = result.get_value
                for row in range(result.ntuples):
                    [value(row, column) for column in range(result.nfields)]
            if begin:
                connection.exec_(finish)
            counts[number] += ends

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(hands))]
    for worker in workers:
        worker.start()
    end[0] = time.monotonic() + 3600
    ready.wait()
    began, cpu = time.monotonic(), time.process_time()
    end[0] = began + SECONDS + WARM_UP_S
    for worker in workers:
        worker.join()
    print(sum(counts), time.process_time() - cpu, time.monotonic() - began)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "loop":
        loop(rest[0], int(rest[1]))
    else:
        mix(int(rest[0]) if rest else 3)
