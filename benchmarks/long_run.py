"""A long run, and what it takes on: is the memory, the descriptors, the threads of each process flat, and how much does
the record grow in an hour?

    python -m benchmarks.long_run 20                  minutes
    python -m benchmarks.long_run 20 --clock-by 3600  half-way the wall clock of all of it is set
    python -m benchmarks.long_run 480 --speed 10      its clocks go ten times as fast: 48 minutes of ours

Each slope is the median of the slopes between all minutes (Theil and Sen) with its 95 % interval, from the second
quarter on: what a process takes on while it warms up is no leak. Memory is what a process has for itself alone.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import psutil
from benchmarks.faults.clock import Clock
from benchmarks.faults.works import PARTS
from rich.console import Console
from rich.table import Table
from scipy.stats import theilslopes
from support.tool import Command, Tool

from stallmark.record.reader import Record

EVERY_S, MINUTE_S = 5, 60
USERS, THINK_MS = 8, 20
"""The users, and how long they think by our clocks: at another speed the server is asked as often."""
MIB = 1 << 20
LITTLE_PER_HOUR = {"memory": 8.0, "descriptors": 2.0, "threads": 1.0}
"""Slopes up to so many (MiB, or as many) are called flat: in a day they do no harm."""


def sample(tool: Tool, command: Command) -> dict[tuple[str, str], float]:
    """Return what each part of the run has now, by part and measure; several processes of a part together."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    words = {part: word for part, word in PARTS.items() if part in ("conductor", "executor", "guard")}
    for process in tool.processes():
        try:
            line = process.cmdline()
            part = "command" if process.pid == command.process.pid else "server"
            part = next((name for name, word in words.items() if any(one.endswith(word) for one in line)), part)
            found[part, "memory"] += process.memory_full_info().uss / MIB
            found[part, "descriptors"] += process.num_fds()
            found[part, "threads"] += process.num_threads()
        except psutil.Error:
            continue
    found["record", "disk"] = sum(path.stat().st_size for path in tool.runs.rglob("*.arrows")) / MIB
    return found


def slope(times_s: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Return the slope by the hour and its interval, from means of a minute."""
    minutes = (times_s // MINUTE_S).astype(int)
    means = [values[minutes == minute].mean() for minute in np.unique(minutes)]
    found = theilslopes(means, np.unique(minutes) / 60)
    return found.slope, found.low_slope, found.high_slope


def main() -> int:
    """Run, sample, print a table; return 1 where something surely grows by more than a little."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run")
    parser.add_argument("minutes", type=float)
    parser.add_argument("--clock-by", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--speed", type=int, choices=range(1, 101), default=1, metavar="1 to 100")
    asked = parser.parse_args()
    folder, out = Path(tempfile.mkdtemp(prefix="stallmark-long-")), Console(soft_wrap=True)
    clock = Clock(folder) if asked.clock_by or asked.speed > 1 else None
    tool = Tool(folder, dict(clock.environment) if clock else {})
    scenario = tool.scenario(
        measure=f"{asked.minutes * 60:.0f}s",
        users=USERS,
        think_time={"mean": f"{THINK_MS * asked.speed}ms"},
        workload={"name": "bank", "scale": {"branches": 4}},
    )
    command = tool.start_anew("run", scenario)
    samples, times, began = [], [], 0.0
    while command.process.poll() is None:
        time.sleep(EVERY_S)
        if not list(tool.runs.rglob("users.arrows")):
            continue  # nothing is driven yet
        if not began:
            began = time.monotonic()
            if clock:
                clock.hasten(asked.speed)
        times.append((time.monotonic() - began) * asked.speed)
        if clock and times[-1] > asked.minutes * 30:
            clock.set(asked.clock_by)
        samples.append(sample(tool, command))
    code = command.process.wait()
    out.print(command.text)
    grows = show(np.array(times), samples, asked.minutes * 60, out)
    record = Record(next(tool.runs.glob("*/*/manifest.json")).parent)
    committed = sum(record.table("transactions")["committed"].to_pylist())
    [numbers] = record.manifest.workload.counted.values()
    out.print(f"{committed:,} seen committed, {(numbers.after or 0) - numbers.before:,} counted; it ended with {code}.")
    out.print(f"Its folder: {folder}")
    return int(grows or code not in (0, 4, 5) or committed != (numbers.after or 0) - numbers.before)


def show(times: np.ndarray, samples: list[dict[tuple[str, str], float]], ends_s: float, out: Console) -> bool:
    """Print the slope of each measure of each part while it was driven; return whether one grows."""
    inside = (times > ends_s / 4) & (times < ends_s - MINUTE_S)
    table = Table("part", "measure", "first", "last", "an hour", "from", "to", "")
    grows = False
    for part, measure in sorted({key for one in samples for key in one}):
        values = np.array([one.get((part, measure), np.nan) for one in samples])[inside]
        known = ~np.isnan(values)
        if len(np.unique(times[inside][known] // MINUTE_S)) < 3:
            continue
        by_hour, low, high = slope(times[inside][known], values[known])
        little = LITTLE_PER_HOUR.get(measure) if part != "server" else None  # its caches are its own affair
        word = "" if little is None else "flat" if high <= little else "grows" if low > little else "not shown"
        grows |= word == "grows"
        first, last = values[known][0], values[known][-1]
        table.add_row(part, measure, *(f"{one:+.2f}" for one in (first, last, by_hour, low, high)), word)
    out.print(table)
    return grows


if __name__ == "__main__":
    sys.exit(main())
