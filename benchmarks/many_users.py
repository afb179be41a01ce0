"""Many users with think time on one load machine: the time to connect, memory, CPU and late starts.

    python -m benchmarks.many_users 10 100 1000 5000 10000

Users of the bank think so long that RATE transactions a second come from all of them together, against a scripted
server that answers at once (benchmarks/scripted_postgres.py). So what changes with their number is the client's doing.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from shutil import rmtree

import psutil
from benchmarks.client import client_memory_mib, spent_us

from stallmark.analysis.read.driver_tables import read_load
from stallmark.analysis.read.interval import measured_intervals
from stallmark.analysis.validity.driver_bound import driver_bound, little_gap
from stallmark.driver.controller import Drive, LoadProgress
from stallmark.driver.load import LoadSpec
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.experiment.work import steps_of
from stallmark.processes import start_module
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

RATE = 1000
SECONDS = 20
CONNECT_S = 5, 200  # for them all: so much, and one more for every so many users
THINK_TIMES = 4  # of warm-up: until then those who think longest have not been heard of


def run(users: int, port: int, server: psutil.Process) -> dict[str, float | str]:
    """Return the figures of one run."""
    folder = Path(tempfile.gettempdir()) / f"stallmark-many-users-{os.getpid()}"
    rmtree(folder, ignore_errors=True)
    think_s = users / RATE
    arrivals = Arrivals(think_ms=think_s * 1000, think="exponential")
    load = LoadSpec(
        "bank", "bank", {"branches": 40}, {"transfer": 1}, (users,), 1, call_timeout_s=60, arrivals=arrivals
    )
    connect_s = CONNECT_S[0] + users // CONNECT_S[1]
    warm_up_s = connect_s + round(THINK_TIMES * think_s)
    timeline = Timeline(consecutive_steps([users], ramp_s=0, warm_up_s=warm_up_s, measure_s=SECONDS))
    writer = RecordWriter(folder, Manifest(started=now(), steps=steps_of(timeline, arrivals)))
    began = time.monotonic()
    drive = Drive(timeline, f"postgresql://user@127.0.0.1:{port}/bank?sslmode=disable", [load], writer)
    memory: list[float] = []
    served: list[float] = []

    def note(progress: LoadProgress) -> None:
        if len(served) < 2 and progress.elapsed_s > warm_up_s + len(served) * (SECONDS - 2):
            served.append(sum(server.cpu_times()[:2]))
        if len(memory) < (progress.elapsed_s > warm_up_s + SECONDS - 2):
            memory.append(client_memory_mib())

    drive.start()
    ready_s = time.monotonic() - began
    try:
        drive.follow(note, lambda: None)
    finally:
        stopping = time.monotonic()
        drive.finish()
        ended_s = time.monotonic() - stopping
        writer.close()
    record = Record(folder)
    [interval] = measured_intervals(record.manifest, warm_up_s + SECONDS, cut=False)
    read = read_load(record, warm_up_s + SECONDS, [interval])
    running: Counter[int] = Counter()
    lag_max_ms = 0.0
    for row in record.table("users").to_pylist():
        running[row["second"]] += row["running"]
        if interval.begin <= row["second"] < interval.end:
            lag_max_ms = max(lag_max_ms, row["lag_max_us"] / 1000)
    seconds = range(interval.begin, interval.end - 1)  # the record's last second may be cut
    done, spent = spent_us(record, seconds)
    invalid = [str(finding.kind) for finding in driver_bound(read, interval, "closed")]
    if little_gap(read, interval):
        invalid.append("littles_law")
    latency, service = read.latency[0, "transfer"], read.service[0, "transfer"]
    return {
        "users": users,
        "ready s": ready_s,
        "all run after s": next((second for second in count() if running[second] > users - 0.5), float("nan"))
        if max(running.values()) > users - 0.5 else float("nan"),
        "ended after s": ended_s,
        "MiB": memory[0],
        "TPS": done / len(seconds),
        "client µs": sum(spent.values()),
        **{f"{process} µs": cpu for process, cpu in spent.items()},
        "server µs": (served[1] - served[0]) / (SECONDS - 2) / (done / len(seconds)) * 1e6,
        "lag mean ms": float(interval.of(read.user_sum("lag_us")).sum()) / latency.size / 1000,
        "lag max ms": lag_max_ms,
        "latency p99 ms": latency.percentile_ms(0.99) or float("nan"),
        "service p99 ms": service.percentile_ms(0.99) or float("nan"),
        "invalid": " ".join(invalid) or "-",
    }  # fmt: skip


def main(numbers: list[int]) -> None:
    with start_module(
        "benchmarks.scripted_postgres", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        port = int(server.stdout.readline())
        for users in numbers:
            found = run(users, port, psutil.Process(server.pid))
            print(", ".join(f"{what} {v if isinstance(v, str) else format(v, ',.4g')}" for what, v in found.items()),
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [10, 100, 1000, 5000, 10_000])
