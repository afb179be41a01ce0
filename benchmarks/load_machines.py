"""The master of a load from many machines: its CPU and memory, and how soon the record has what they report.

    python -m benchmarks.load_machines 1 2 8 32 100     so many load machines, one number after the other

The command and the conductor are those of a run; the load machines are simulated in one process beside them. CPU is in
% of a core, of the conductor and of the command as the record has them, and of the merging and writing of rows in the
latter. Memory is proportional set size. Every transaction that was reported must be in the record.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import simulated_machines
from support.simulated_machines import EXECUTORS, USERS, WORKLOAD, Order, Told, executor_second

from stallmark.driver.controller import Drive, LoadProgress
from stallmark.driver.load import ExpectedMachines, LoadSpec, Timeline, consecutive_steps
from stallmark.driver.messages import Report
from stallmark.driver.rows import RowMerger, Rows
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

WARM_UP_S, SECONDS = 4, 12
PORT = 15_557
QUARTERS_LEFT = 3  # of a second: the reports without transactions


class Measured(NamedTuple):
    """The figures of one run. `merging` is the CPU time that the command took for the rows while the load lasted."""

    record: Record
    told: Told
    ready_s: float
    merging_s: float
    lasted_s: float
    memory_mib: list[float]


class Timed:
    """A function, and the CPU time that its calls have taken."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.spent_s = 0.0

    def __call__(self, *arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return self._function(*arguments)
        finally:
            self.spent_s += time.thread_time() - began


def measure(machines: int, port: int, folder: Path, warm_up_s: float, seconds: float) -> Measured:
    """Run a load on so many simulated machines."""
    users = machines * EXECUTORS * USERS
    deck = {kind.name: cards for kind, cards in WORKLOAD.users.deck.items()}
    load = LoadSpec(WORKLOAD.name, WORKLOAD.name, {}, deck, (users,), seed=1, call_timeout_s=60)
    timeline = Timeline(
        consecutive_steps([(f"{users} users", users)], ramp_s=0, warm_up_s=warm_up_s, measure_s=seconds)
    )
    writer = RecordWriter(folder, Manifest(started=now()))
    drive = Drive(timeline, "", [load], writer, ExpectedMachines(machines, "127.0.0.1", port))
    memory: list[float] = []

    def note(progress: LoadProgress) -> None:
        if not memory and progress.elapsed_s > timeline.end_s - 1:
            for pid in (drive._process.pid, os.getpid()):
                memory.append(psutil.Process(pid).memory_full_info().pss / 2**20)

    merger: Any = drive._merger
    merger.add, merger.write_before = parts = Timed(merger.add), Timed(merger.write_before)
    order = msgspec.json.encode(Order(machines, port, str(folder))).decode()
    command = [sys.executable, simulated_machines.__file__, order]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as simulated:
        try:
            began = time.monotonic()
            drive.start()
            ready_s = time.monotonic() - began
            drive.follow(note, lambda: None)
            merging_s, lasted_s = sum(part.spent_s for part in parts), drive.clock()
        finally:
            drive.finish()
            writer.update(load_machines=drive.load_machines)
            writer.close()
        told = msgspec.json.decode(simulated.communicate()[0], type=Told)
    return Measured(Record(folder), told, ready_s, merging_s, lasted_s, memory)


def committed(record: Record) -> dict[str, int]:
    """Return the transactions in a record by name."""
    found: Counter[str] = Counter()
    for row in record.table("transactions").to_pylist():
        found[row["transaction"]] += row["committed"]
    return dict(found)


def figures(measured: Measured) -> dict[str, str]:
    record, told = measured.record, measured.told
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS - 1)
    cpu: Counter[str] = Counter()
    for row in record.table("client_cpu").to_pylist():
        if row["second"] in inside:
            cpu[row["process"]] += row["cpu_us"] / 1e4 / len(inside)
    conductor_mib, command_mib = measured.memory_mib
    return {
        "conductor %": f"{cpu['conductor']:.1f}",
        "command %": f"{cpu['command']:.1f}",
        "merging %": f"{100 * measured.merging_s / measured.lasted_s:.1f}",
        "conductor MiB": f"{conductor_mib:.0f}",
        "command MiB": f"{command_mib:.0f}",
        "KiB/s received": f"{told.bytes / told.seconds / 1024:,.0f}",
        "ready after s": f"{measured.ready_s:.1f}",
        "users after s": f"{told.users_s:.1f}",
        "in the record after s": f"{statistics.median(told.delays_s):.2f}",
        "at most": f"{max(told.delays_s):.2f}",
        "sent late by ms": f"{told.late_ms:.0f}",
        "clocks within ms": f"{max(machine.clock_within_ms for machine in record.manifest.load_machines):.2f}",
        "transactions": f"{sum(told.committed.values()):,}",
    }


def merging_there_ms(seconds: int = 30) -> float:
    """Return the CPU time that a load machine takes to merge the reports of its executors in a second."""
    rng, merger = np.random.default_rng(2), RowMerger()
    made = [executor_second(rng, executor) for executor in range(EXECUTORS)]
    reports = [Report.from_rows(rows) for rows in made]
    reports += QUARTERS_LEFT * [
        Report.from_rows(Rows(users=rows.users, deferred_queue=rows.deferred_queue)) for rows in made
    ]
    began = time.process_time()
    for _ in range(seconds):
        for report in reports:
            merger.add(report.rows())
        Report.from_rows(merger.pop_before(1))
    return (time.process_time() - began) * 1e3 / seconds


def main(counts: list[int]) -> None:
    print(f"{EXECUTORS} executors each, {USERS} users in one; {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"a load machine merges a second of its executors' reports in {merging_there_ms():.1f} ms of CPU")
    for count in counts:
        with tempfile.TemporaryDirectory() as work:
            found = measure(count, PORT, Path(work) / "run", WARM_UP_S, SECONDS)
            shown = figures(found)
            assert committed(found.record) == found.told.committed
        if count == counts[0]:
            print("machines |", " | ".join(shown))
        print(f"{count} |", " | ".join(shown.values()), flush=True)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [1, 2, 8, 32, 100])
