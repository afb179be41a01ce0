"""The cost of reading profiles of servers in production: size, time and memory of `report`, as they grow.

    python -m benchmarks.profile_reading                               40 files: 6 and 24 hours
    python -m benchmarks.profile_reading --files 1000 --hours 6 24 168

A profile is made as a collector leaves it that reads a SQL Server every 15 s: files, 200 of them at work, 150 types of
wait, the counters of the server. Memory is what the process of the command has for itself, every 50 ms. It must not
grow with hours as rows do.
"""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.judging import measure
from rich.console import Console
from rich.table import Table

from stallmark.record.profile.folder import write_profile
from stallmark.record.profile.manifest import ProfiledServer, ProfileManifest, Session
from stallmark.record.profile.raw import RAW_TABLES
from stallmark.record.table_file import writing, written

INTERVAL_S = 15
AT_WORK = 200
WAITS = 150
AT_ONCE = 100  # samples in a batch
STARTED, BEGAN = "2026-03-02T00:00:00+00:00", 1_772_409_600.0
IO = {"reads": 400, "read_bytes": 400 * 8192, "read_stall_ms": 800, "writes": 90, "write_bytes": 90 * 8192}
IO |= {"write_stall_ms": 70}
COUNTERS = {"batches": 900, "transactions": 400, "cpu_ms": 20_000, "log_flushes": 300, "log_bytes": 4_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, nargs="+", default=[6.0, 24.0])
    parser.add_argument("--files", type=int, default=40)
    asked = parser.parse_args()
    table = Table("hours", "files", "rows", "MB", "command", "s", "CPU s", "memory, MB")
    for hours in asked.hours:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "profile"
            rows = make(folder, round(hours * 3600 / INTERVAL_S), asked.files)
            stored = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            for command in (["report"], ["report", "--json"]):
                seconds, cpu, memory = measure([*command, str(folder)])
                seen = [f"{seconds:.1f}", f"{cpu:.1f}", f"{memory / 1e6:.0f}"]
                table.add_row(f"{hours:g}", str(asked.files), f"{rows:,}", f"{stored:.0f}", " ".join(command), *seen)
    Console(width=120).print(table)


def make(folder: Path, samples: int, files: int) -> int:
    """Make a profile of one session and return the rows of all its tables."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    sums = {name: np.zeros(len(found)) for name, found in _entities(files).items()}
    rows = 0
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(writing(folder / f"{name}-001.parquet", schema))
            for name, schema in RAW_TABLES.items()
        }
        for first in range(0, samples, AT_ONCE):
            for name, columns in _batch(rng, np.arange(first, min(first + AT_ONCE, samples)), files, sums).items():
                found = pa.table(columns).select(RAW_TABLES[name].names).cast(RAW_TABLES[name])
                writers[name].write_table(found)
                rows += found.num_rows
    tables = {path.stem: written(path) for path in folder.glob("*.parquet")}
    server = ProfiledServer(engine="mssql", product="SQL Server", cores=16, memory_bytes=1 << 36)
    write_profile(
        folder,
        ProfileManifest(
            source="server",
            started=STARTED,
            interval_s=INTERVAL_S,
            servers=(server,),
            sessions=(Session(started=STARTED, ended=STARTED, end="complete"),),
            tables=tables,
        ),
    )
    return rows


def _entities(files: int) -> dict[str, list[str]]:
    return {
        "file_counters": [f"{number // 2 + 5}/{number % 2 + 1}" for number in range(files)],
        "server_counters": list(COUNTERS),
        "wait_counters": [f"WAIT_{number}" for number in range(WAITS)],
    }


def _batch(
    rng: np.random.Generator, samples: np.ndarray, files: int, sums: dict[str, np.ndarray]
) -> dict[str, dict[str, pa.Array]]:
    """Return the rows of some samples. `sums`: what each entity did so far, in intervals at the mean rate."""
    times = BEGAN + samples * float(INTERVAL_S)
    nothing = pa.nulls(len(samples), pa.int64())
    found = {
        "samples": {"sample": samples, "session": np.ones(len(samples)), "clock": times, "monotonic_s": times}
        | {"server_clock": times, "took_s": np.full(len(samples), 0.01), "start": ["2026-03-01"] * len(samples)}
        | {"server": np.ones(len(samples)), "own_cpu_ms": nothing}
    }
    for name, entities in _entities(files).items():
        done = rng.uniform(0.5, 1.5, (len(samples), len(entities)))
        if name == "file_counters":
            done[:, AT_WORK:] = 0  # what does nothing has one row, in the first sample
        total = sums[name] + np.cumsum(done, axis=0)
        sums[name] = total[-1]
        kept = done > 0
        kept[samples == 0] = True
        at, entity = np.nonzero(kept)
        count = total[kept]
        columns = {"sample": samples[at], "epoch": pa.array(["1"] * len(at))}
        texts = pa.array(entities).take(pa.array(entity))
        if name == "file_counters":
            classes = pa.array(["data", "log"]).take(pa.array(entity % 2))
            columns |= {"entity": texts, "database": texts, "file_class": classes}
            columns |= {column: pa.array(np.floor(count * rate)) for column, rate in IO.items()}
            columns |= {"size_bytes": np.full(len(at), 1 << 30)}
        elif name == "server_counters":
            columns |= {"counter": texts, "value": np.floor(count * np.array(list(COUNTERS.values()))[entity])}
        else:
            columns |= {"wait_type": texts, "wait_class": pa.array(["io"] * len(at))}
            columns |= {
                "waits": np.floor(count * 50),
                "wait_ms": np.floor(count * 400),
                "signal_ms": np.floor(count * 9),
            }
        found[name] = columns
    return found


if __name__ == "__main__":
    main()
