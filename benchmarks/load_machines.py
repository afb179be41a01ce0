"""The master of a load from many machines: its CPU and memory, and how soon the record has what they report.

    python -m benchmarks.load_machines 1 2 8 32 100     so many load machines, one number after the other

The command and the conductor are those of a run, the load machines are simulated in one process beside them
(simulated_machines.py). Each figure of CPU is % of a core, from the record's own table; memory is PSS.
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
import psutil

from benchmarks.simulated_machines import EXECUTORS, USERS, WORKLOAD, Order, Told
from stallmark.driver.controller import Drive, LoadProgress
from stallmark.driver.load import LoadSpec
from stallmark.driver.machines import ExpectedMachines
from stallmark.driver.merger import Merger
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter

SETTLE_S = 5
ROOT = Path(__file__).parent.parent


class Measured(NamedTuple):
    """The figures of one run. CPU is % of a core."""

    conductor: float
    command: float
    merging: float
    pss_mib: tuple[float, float]
    ready_s: float
    users_s: float
    clock_ms: float
    told: Told
    recorded: int


class Timed:
    """The CPU time of a function's calls, where it stands in the place of the function."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.spent_s = 0.0

    def __call__(self, *arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return self._function(*arguments)
        finally:
            self.spent_s += time.thread_time() - began


def measure(machines: int, port: int, folder: Path, seconds: float) -> Measured:
    """Run a load on so many simulated machines for so long, after it has settled."""
    users = machines * EXECUTORS * USERS
    deck = {kind.name: cards for kind, cards in WORKLOAD.users.deck.items()}
    load = LoadSpec(WORKLOAD.name, WORKLOAD.name, {"customers": 5000, "days": 1}, deck, (users,), 1, 60)
    steps = Timeline(consecutive_steps([users], ramp_s=0, warm_up_s=SETTLE_S, measure_s=seconds))
    writer = RecordWriter(folder, Manifest(started=now()))
    order = Order(machines, port, str(folder))
    command = [sys.executable, "-m", "benchmarks.simulated_machines", msgspec.json.encode(order).decode()]
    drive = Drive(steps, "", [load], writer, ExpectedMachines(machines, "127.0.0.1", port))
    memory: list[float] = []

    def note(progress: LoadProgress) -> None:
        if not memory and progress.elapsed_s > SETTLE_S + seconds - 1:
            memory.extend(psutil.Process(pid).memory_full_info().pss / 2**20 for pid in (drive._process.pid, os.getpid()))

    merger: Any = drive._merger
    parts = [Timed(merger.add), Timed(merger.write_before)]
    merger.add, merger.write_before = parts
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as simulated:
        began = time.monotonic()
        try:
            drive.start()
            ready_s = time.monotonic() - began
            drive.follow(note, lambda: None)
            spent_s, lasted_s = sum(part.spent_s for part in parts), drive.clock()
        finally:
            drive.finish()
            writer.close()
        assert simulated.stdout
        told = msgspec.json.decode(simulated.stdout.read(), type=Told)
    record = Record(folder)
    inside = range(SETTLE_S, SETTLE_S + int(seconds) - 1)
    cpu: Counter[str] = Counter()
    for row in record.table("client_cpu").to_pylist():
        if row["second"] in inside:
            cpu[row["process"]] += row["cpu_us"] / 1e4 / len(inside)
    running: Counter[int] = Counter()
    for second, count in zip(*(record.table("users")[name].to_pylist() for name in ("second", "running")), strict=True):
        running[second] += count
    recorded = sum(record.table("transactions")["committed"].to_pylist())
    assert recorded == told.committed, f"{recorded:,} in the record, {told.committed:,} were sent"
    return Measured(
        cpu["conductor"],
        cpu["command"],
        100 * spent_s / lasted_s,
        (memory[0], memory[1]),
        ready_s,
        0.0,
        max(machine.clock_within_ms for machine in drive.load_machines),
        told,
        recorded,
    )


def main(counts: list[int], seconds: float = 12) -> None:
    print(f"{EXECUTORS} executors each, {USERS} users in one; {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    heads = ("machines", "conductor %", "command %", "of it merging %", "conductor MiB", "command MiB", "KiB/s received",
             "record behind s", "at most", "ready s", "clock ±ms", "reports/s", "late ms", "transactions")  # fmt: skip
    print(" | ".join(heads))
    for count in counts:
        with tempfile.TemporaryDirectory() as work:
            found = measure(count, 5599, Path(work) / "run", seconds)
        told = found.told
        print(
            f"{count} | {found.conductor:.1f} | {found.command:.1f} | {found.merging:.1f} | {found.pss_mib[0]:.0f} | "
            f"{found.pss_mib[1]:.0f} | {told.bytes / told.seconds / 1024:,.0f} | "
            f"{statistics.median(told.delays_s):.2f} | {max(told.delays_s):.2f} | {found.ready_s:.1f} | "
            f"{found.clock_ms:.2f} | {told.reports / told.seconds:.0f} | {told.late_ms:.0f} | {found.recorded:,}",
            flush=True,
        )


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [1, 2, 8, 32, 100])
