"""The cost of driving: Stallmark's users against pgbench and against a bare threaded loop, on one server in one run.

    python -m benchmarks.driver cpu 5     so many rounds: same one-call function, pool larger than the data, bare device

Contestants alternate; the figures are medians of the ratios within each round. On a noisy machine a single round
says little.
"""

import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from psycopg import pq

from stallmark.driver.controller import Drive
from stallmark.driver.executor import SWITCH_INTERVAL_S, keep_to_one_core
from stallmark.driver.load import LoadSpec, Timeline, consecutive_steps
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer, binary
from stallmark.loaders.load import build
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.transactions import find_workload

USERS, SECONDS, WARM_UP_S = 30, 12, 3
BRANCHES = 40


def drive_load(engine: EmbeddedEngine, folder: Path, load: LoadSpec, warm_up_s: float, seconds: float) -> Record:
    """Drive a load on the engine into a record at a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = RecordWriter(folder, Manifest(started=now()))
    steps = consecutive_steps(
        [(f"{count} users", count) for count in load.users], ramp_s=0, warm_up_s=warm_up_s, measure_s=seconds
    )
    drive = Drive(Timeline(steps), engine.spec(), [load], writer)
    drive.start()
    drive.follow(lambda progress: None, lambda: None)
    drive.finish()
    writer.close()
    return Record(folder)


def stallmark(engine: EmbeddedEngine, folder: Path) -> tuple[float, float]:
    """Return (committed TPS, executor CPU µs per transaction) of the measured interval."""
    load = LoadSpec(
        "bank", "bank", {"branches": BRANCHES}, {"transfer": 1}, (USERS,), random.randrange(1000), call_timeout_s=60
    )
    record = drive_load(engine, folder, load, WARM_UP_S, SECONDS)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    committed = sum(r["committed"] for r in record.table("transactions").to_pylist() if r["second"] in inside)
    cpu = sum(r["cpu_us"] for r in record.table("users").to_pylist() if r["second"] in inside)
    return committed / SECONDS, cpu / committed


def pgbench(engine: EmbeddedEngine, script: Path, *options: str) -> tuple[float, float]:
    server = engine.server
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [binary("pgbench"), "-n", "-c", str(USERS), "-j", "2", "-T", str(SECONDS + WARM_UP_S), "-f", script]
    done = subprocess.run(
        [*argv, *options, "-h", server.socket_folder, "-U", "stallmark", "bank"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tps = float(re.search(r"tps = ([\d.]+)", done.stdout)[1])
    count = int(re.search(r"actually processed: (\d+)", done.stdout)[1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return tps, cpu / count * 1e6


def bare_loop(engine: EmbeddedEngine) -> tuple[float, float]:
    """Drive USERS threads in two plain processes around `PGconn.exec_prepared`, and nothing else. Each process keeps to
    one core, as executors do: on both, its threads cost up to twice as much."""
    argv = [sys.executable, __file__, "loop", engine.server.url("bank"), str(USERS // 2), str(SECONDS + WARM_UP_S)]
    processes = [subprocess.Popen([*argv, str(core)], stdout=subprocess.PIPE, text=True) for core in range(2)]
    results = [process.communicate()[0].split() for process in processes]
    count = sum(int(result[0]) for result in results)
    return count / (SECONDS + WARM_UP_S), sum(float(result[1]) for result in results) / count * 1e6


def loop(conninfo: str, threads: int, seconds: float, core: int) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_to_one_core(core)
    counts = [0] * threads
    end = time.monotonic() + seconds

    def work(index: int) -> None:
        connection = pq.PGconn.connect(conninfo.encode())
        connection.prepare(b"t", b"SELECT bank.transfer($1, $2, $3, $4)")
        draw = random.Random(index).random
        while time.monotonic() < end:
            teller = int(draw() * BRANCHES * 10) + 1
            account = int(draw() * BRANCHES * 100_000) + 1
            values = [
                b"%d" % account,
                b"%d" % teller,
                b"%d" % ((teller - 1) // 10 + 1),
                b"%d" % int(draw() * 9999 - 5000),
            ]
            connection.exec_prepared(b"t", values)
            counts[index] += 1

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sum(counts), time.process_time())


def prepare() -> tuple[EmbeddedEngine, Path]:
    work = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
    server = EmbeddedServer(work / "bank")
    engine = EmbeddedEngine(server, "bank")
    build(engine, find_workload("bank"), {"branches": BRANCHES}, 1, workers=2)
    if not engine.backup.label():
        engine.backup.keep("the bank as loaded")
    engine.backup.restore()
    engine.memory.cap(1024**3)
    # CPU-bound: commits do not wait for this machine's disk, for no contestant.
    engine.execute("ALTER DATABASE bank SET synchronous_commit = off")
    engine.prefill.fill("bank")
    engine.checkpoint()
    engine.devices.engage()
    return engine, work


def main(rounds: int) -> None:
    engine, work = prepare()
    try:
        script = work / "script.sql"
        script.write_text(
            f"\\set aid random(1, {BRANCHES} * 100000)\n\\set tid random(1, {BRANCHES} * 10)\n"
            "\\set bid (:tid - 1) / 10 + 1\n\\set delta random(-5000, 5000)\n"
            "SELECT bank.transfer(:aid, :tid, :bid, :delta);\n"
        )
        ratios, above = [], []
        for round_number in range(rounds):
            contestants = [
                lambda: stallmark(engine, work / "record"), lambda: pgbench(engine, script, "-M", "prepared"),
            ]  # fmt: skip
            if round_number % 2:  # neither always finds the fresher tables
                theirs, ours = contestants[1](), contestants[0]()
            else:
                ours, theirs = contestants[0](), contestants[1]()
            bare = bare_loop(engine)
            ratios.append(ours[0] / theirs[0])
            above.append(ours[1] - bare[1])
            print(f"round {round_number + 1}: stallmark {ours[0]:,.0f} TPS {ours[1]:.1f} µs", end="  ")
            print(f"pgbench {theirs[0]:,.0f} TPS {theirs[1]:.1f} µs", end="  ")
            print(f"bare loop {bare[0]:,.0f} TPS {bare[1]:.1f} µs  ratio {ratios[-1]:.3f}", flush=True)
        print(f"median ratio to pgbench {statistics.median(ratios):.3f}")
        print(f"executor CPU above the bare loop: median {statistics.median(above):.1f} µs per transaction")
    finally:
        engine.close()


if __name__ == "__main__":
    if sys.argv[1] == "loop":
        loop(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    else:
        main(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
