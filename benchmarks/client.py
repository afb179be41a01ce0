"""The whole client's cost: CPU by process, memory, and the time until all users run.

    python -m benchmarks.client bank 30           30 users as fast as they can, all in memory
    python -m benchmarks.client brokerage 30 5    five runs; the figures are medians

CPU is per transaction of the measured interval: that of the executors, the conductor and the command, each as the
record has it. Memory is proportional set size (Linux), which counts shared pages once over all processes.
"""

import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Container
from pathlib import Path
from shutil import rmtree
from typing import Any

import psutil

from stallmark.driver.controller import Drive, LoadProgress
from stallmark.driver.load import LoadSpec
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.transactions import find_workload

WARM_UP_S, SECONDS = 5, 15
SCALES: dict[str, dict[str, Any]] = {
    "bank": {"branches": 40},
    "brokerage": {"customers": 5000, "days": 1, "compressibility": 2},
}
WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"


def run(engine: EmbeddedEngine, name: str, users: int) -> dict[str, float]:
    """Return the figures of one run."""
    workload, folder = find_workload(name), WORK / "record"
    rmtree(folder, ignore_errors=True)
    load = LoadSpec(
        name,
        name,
        SCALES[name],
        {kind.name: cards for kind, cards in workload.users.deck.items()},
        (users,),
        seed=1,
        call_timeout_s=60,
        background_per_user=workload.background.sessions_per_user,
    )
    writer = RecordWriter(folder, Manifest(started=now()))
    steps = consecutive_steps([users], ramp_s=0, warm_up_s=WARM_UP_S, measure_s=SECONDS)
    began = time.monotonic()
    drive = Drive(Timeline(steps), engine.spec(), [load], writer)
    ready_s = memory = 0.0

    def note(progress: LoadProgress) -> None:
        nonlocal memory
        if not memory and progress.elapsed_s > WARM_UP_S + SECONDS - 2:
            memory = client_memory_mib()

    drive.start()
    ready_s = time.monotonic() - began
    drive.follow(note, lambda: None)
    drive.finish()
    writer.close()
    record = Record(folder)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS - 1)  # the record's last second may be cut
    done, spent = spent_us(record, inside)
    running: Counter[int] = Counter()
    for row in record.table("users").to_pylist():
        running[row["second"]] += row["running"]
    all_run = min(second for second, count in running.items() if count > users - 0.01)
    figures = {f"{process} µs": cpu for process, cpu in spent.items()}
    return {"TPS": done / len(inside), "client µs": sum(spent.values()), **figures, "MiB": memory, "ready s": ready_s,
            "all run after s": ready_s + all_run}  # fmt: skip


def client_memory_mib() -> float:
    """Return the memory of this command and of what drives for it."""
    here = psutil.Process()
    driving = [child for child in here.children(recursive=True) if "stallmark.driver" in _line(child)]
    return sum(process.memory_full_info().pss for process in [here, *driving]) / 2**20


def spent_us(record: Record, seconds: Container[int]) -> tuple[int, dict[str, float]]:
    """Return how many transactions ended in these seconds, and the CPU of each that processes spent."""
    tables = ("transactions", "users", "client_cpu")
    rows = {table: [r for r in record.table(table).to_pylist() if r["second"] in seconds] for table in tables}
    done = sum(row["committed"] + row["rolled_back"] for row in rows["transactions"])
    spent = {"executors": sum(row["cpu_us"] for row in rows["users"]) / done}
    for process in ("conductor", "command"):
        spent[process] = sum(row["cpu_us"] for row in rows["client_cpu"] if row["process"] == process) / done
    return done, spent


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def main(name: str, users: int, rounds: int) -> None:
    engine = EmbeddedEngine(EmbeddedServer(WORK / name), name)
    try:
        build(engine, find_workload(name), SCALES[name], 1, workers=2)
        engine.memory.cap(2 * 1024**3)
        # CPU-bound: commits do not wait for this machine's disk.
        engine.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        engine.prefill.fill(name)
        engine.checkpoint()
        found = []
        for number in range(rounds):
            found.append(run(engine, name, users))
            print(f"{number + 1}:", ", ".join(f"{what} {value:,.1f}" for what, value in found[-1].items()), flush=True)
        print(f"{name}, {users} users, median of {rounds}:", end=" ")
        print(", ".join(f"{what} {statistics.median(one[what] for one in found):,.1f}" for what in found[0]))
    finally:
        engine.close()


if __name__ == "__main__":
    given = [int(number) for number in sys.argv[2:]]
    main(sys.argv[1], *given, *[30, 3][len(given) :])
