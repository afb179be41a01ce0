"""The cost of judging long records: size, time and memory of `report`, `report --json` and `compare`, as they grow.

    python -m benchmarks.judging                          2 runs, 1 load: 1.5, 6 and 24 hours
    python -m benchmarks.judging --loads 5 --runs 12      of several loads, and many runs
    python -m benchmarks.judging --files 1000 --hours 1.5 6

Records are made as those of day_record.py, a run in a process of its own, with every load's transactions of four types
each second. Memory is what the processes of a command have for themselves, together, every 50 ms. The bars are 10 s and
500 MB for a day of a run. It is linear where the CPU time of a day stays as runs grow longer.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from benchmarks.day_record import IO_COUNTS, TPS, USERS, histogram_columns, write, write_record
from rich.console import Console
from rich.table import Table

from stallmark.record import histogram as hdr
from stallmark.record.manifest import read_manifest, write_manifest
from stallmark.record.manifest.workload import Load, application
from stallmark.record.schema import ROWS_AT_ONCE
from stallmark.record.table_file import writing, written

POOL = 200  # different histograms: making them takes longer than writing them
TYPES = ("read", "write", "update", "look up")
COMMANDS = (("report",), ("report", "--json"), ("compare",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, nargs="+", default=[1.5, 6.0, 24.0])
    parser.add_argument("--loads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--files", type=int, default=0, help="files of a server that counts by file, each second")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:
        make(asked.make, round(asked.hours[0] * 3600), asked.number, asked.loads, asked.files)
        return
    table = Table(
        "hours", "runs", "loads", "files", "MB", "MB/h of a run", "command", "s", "CPU s", "CPU s/day", "memory, MB"
    )
    for hours in asked.hours:
        with tempfile.TemporaryDirectory() as scratch:
            for number in range(asked.runs):
                where = ["--make", f"{scratch}/{number + 1:02d}", "--number", str(number), "--hours", str(hours)]
                size = ["--loads", str(asked.loads), "--files", str(asked.files)]
                subprocess.run([sys.executable, "-m", "benchmarks.judging", *where, *size], check=True)
            stored = sum(file.stat().st_size for file in Path(scratch).glob("*/*")) / 1e6
            about = [f"{hours:g}", *map(str, (asked.runs, asked.loads, asked.files)), f"{stored:.0f}"]
            about.append(f"{stored / asked.runs / hours:.1f}")
            for command in COMMANDS:
                seconds, cpu, memory = measure([*command, scratch])
                days = asked.runs * hours / 24
                seen = [f"{seconds:.1f}", f"{cpu:.1f}", f"{cpu / days:.1f}", f"{memory / 1e6:.0f}"]
                table.add_row(*about, " ".join(command), *seen)
    Console(width=140).print(table)


def measure(command: list[str]) -> tuple[float, float, int]:
    """Return the seconds that a command takes, those of CPU, and the most memory that its processes have for
    themselves."""
    began, cpu, most = time.perf_counter(), _cpu_s(), 0
    tool = str(Path(sys.executable).with_name("stallmark"))
    child = psutil.Popen([tool, *command], stdout=subprocess.DEVNULL)
    while child.poll() is None:
        most = max(most, sum(map(_memory, [child, *_children(child)])))
        time.sleep(0.05)
    assert child.returncode in (0, 1), child.returncode
    return time.perf_counter() - began, _cpu_s() - cpu, most


def _cpu_s() -> float:
    """Return the CPU time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _memory(process: psutil.Process) -> int:
    """Return the bytes that belong to the process alone; 0 when it has ended."""
    try:
        info = process.memory_full_info()
        return int(getattr(info, "uss", info.rss))
    except psutil.Error:
        return 0


def make(folder: Path, seconds: int, number: int, loads: int, files: int) -> None:
    """Make the record of day_record.py, with the loads' own rows in place of its one load's."""
    write_record(folder, seconds)
    rng = np.random.default_rng(number + 1)
    names = [f"load{one}" for one in range(loads)]
    made = read_manifest(folder)
    several = {
        "loads": tuple(
            Load(name=name, kind="users", counts=(USERS,), workload=made.workload.changed(name=name)) for name in names
        ),
        "steps": tuple(step.changed(users=USERS * loads) for step in made.steps),
    }
    write_manifest(
        folder,
        made.changed(
            variant={"name": "AB"[number % 2]},
            repeat=number // 2 + 1,
            sequence=number + 1,
            started=f"2025-11-{number + 1:02d}T00:00:00.000+00:00",
            **(several if loads > 1 else {}),
        ),
    )
    each = TPS // len(TYPES) // loads
    pool = histogram_columns("latency", [_histogram(rng, each) for _ in range(POOL)])
    pool |= histogram_columns("service", [_histogram(rng, each) for _ in range(POOL)])
    rows = seconds * loads * len(TYPES)
    drawn = pa.array(rng.integers(0, POOL, rows))
    latency_us = np.full(rows, USERS * 990_000 // len(TYPES))
    of_loads = {"second": np.repeat(np.arange(seconds), loads * len(TYPES))}
    of_loads |= {"load": pa.array(np.tile(np.repeat(names, len(TYPES)), seconds))}
    of_loads |= {"transaction": pa.array(np.tile(TYPES, seconds * loads)), "committed": np.full(rows, each)}
    of_loads |= {"latency_us": latency_us, "service_us": latency_us}
    write(folder, "transactions", of_loads | {name: column.take(drawn) for name, column in pool.items()})
    second = np.repeat(np.arange(seconds), 2 * loads)
    users = {"second": second, "load": pa.array(np.tile(np.repeat(names, 2), seconds))}
    users |= {"executor": np.tile(np.arange(2 * loads), seconds), "running": np.full(len(second), USERS / 2)}
    busy = {"busy_us": np.full(len(second), USERS * 495_000), "cpu_us": np.full(len(second), 300_000)}
    write(folder, "users", users | busy)
    _waits(folder, rng, seconds, names if loads > 1 else [])
    if files:
        _files(folder, rng, seconds, files)


def _waits(folder: Path, rng: np.random.Generator, seconds: int, loads: list[str]) -> None:
    classes = {"io": 0.8, "wal": 0.05, "lock": 0.05, "cpu": 0.05, "client": 0.03, "other": 0.02}
    count = max(len(loads), 1)
    rows = seconds * count * len(classes)
    columns = {
        "t": np.repeat(np.arange(seconds) + 1.0, count * len(classes)),
        "second": np.repeat(np.arange(seconds), count * len(classes)),
        "wait_class": pa.array(np.tile(list(classes), seconds * count)),
        "event": pa.array(np.tile([f"{name}:event" for name in classes], seconds * count)),
        "samples": rng.multinomial(USERS * 5, list(classes.values()), seconds * count).ravel(),
        "polls": np.full(rows, 5),
    }
    if loads:
        names = [application("users", load) for load in loads]
        columns["application"] = pa.array(np.tile(np.repeat(names, len(classes)), seconds))
    write(folder, "waits", columns)


def _files(folder: Path, rng: np.random.Generator, seconds: int, files: int) -> None:
    """Write the I/O of so many files each second, as SQL Server tells it."""
    made = read_manifest(folder)
    write_manifest(folder, made.changed(server=made.server.changed(product="SQL Server")))
    at_once = max(1, ROWS_AT_ONCE // files)
    names = pa.array([f"stallmark/file{number}" for number in range(files)])
    total = np.zeros((len(IO_COUNTS), files))
    path = folder / "server_io.parquet"
    schema = pa.schema(
        [("t", pa.float64()), ("took_s", pa.float64()), ("server_time", pa.float64()), ("epoch", pa.string())]
        + [("entity", pa.string()), ("kind", pa.string()), ("size_bytes", pa.int64())]
        + [(name, pa.int64()) for name in IO_COUNTS if not name.startswith("extend")]
    )
    with writing(path, schema) as writer:
        for begin in range(0, seconds, at_once):
            t = np.arange(begin, min(begin + at_once, seconds)) + 0.3
            rows = len(t) * files
            columns = {"t": np.repeat(t, files), "took_s": np.full(rows, 0.01), "epoch": pa.array(["start 1"] * rows)}
            columns |= {"server_time": 1.7e9 + np.repeat(t, files)}
            columns |= {"entity": names.take(pa.array(np.tile(np.arange(files), len(t))))}
            kinds = np.where(np.arange(files) < files - 4, "data", "wal")
            columns |= {"kind": pa.array(np.tile(kinds, len(t))), "size_bytes": np.full(rows, 1 << 30)}
            for number, name in enumerate(IO_COUNTS):
                if name in schema.names:
                    risen = total[number] + rng.integers(0, 3, (len(t), files)).cumsum(axis=0)
                    columns[name], total[number] = risen.ravel().astype(np.int64), risen[-1]
            writer.write_table(pa.table(columns).select(schema.names).cast(schema))
    made = read_manifest(folder)
    write_manifest(folder, made.changed(tables=made.tables | {"server_io": written(path)}))


def _histogram(rng: np.random.Generator, count: int) -> hdr.Histogram:
    return hdr.encode(rng.lognormal(np.log(USERS / TPS * 1e6) - 0.125, 0.5, count).astype(np.int64))


if __name__ == "__main__":
    main()
