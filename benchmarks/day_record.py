"""How long a record of 24 hours takes to summarise, and in how much memory.

    python benchmarks/day_record.py [--seconds 86400] [--keep FOLDER]

Writes a record as a run of that length would (1 transaction type, 2 executors, every collector at its own
interval), then summarises it in a process of its own and prints one line. The bars are 20 s and 1 GB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stallmark.record import histogram as hdr
from stallmark.record.manifest import Manifest, read_manifest, write_manifest
from stallmark.record.manifest.storage import Device, EmulatedArray
from stallmark.record.schema import ROWS_AT_ONCE, TABLES
from stallmark.record.table_file import writing, written
from stallmark.record.writer import RecordWriter

USERS, LOADS, TPS, SERVER_ROWS, SEED = 30, 3, 500, 20, 1
IO_COUNTS = [f"{verb}{what}" for verb in ("read", "write", "extend") for what in ("s", "_bytes", "_stall_ms")]
DEVICE_COUNTS = ["reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "syncs", "sync_ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=86_400)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the record here and leave it")
    parser.add_argument("--do", choices=["write", "summarise"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do == "write":
        write_record(options.keep, options.seconds)
    elif options.do == "summarise":
        summarise_record(options.keep)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            measure((options.keep or Path(scratch)) / "day", options.seconds)


def measure(folder: Path, seconds: int) -> None:
    arguments = [sys.executable, __file__, "--seconds", str(seconds), "--keep", str(folder)]
    subprocess.run([*arguments, "--do", "write"], check=True)
    stored = sum(file.stat().st_size for file in folder.iterdir())
    began = time.perf_counter()
    child = subprocess.Popen([*arguments, "--do", "summarise"], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    said = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, child.returncode
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(
        f"record of {seconds:,} s ({stored / 1e6:.0f} MB): summarised in {said['seconds']:.1f} s "
        f"({time.perf_counter() - began:.1f} s with start and imports, {usage.ru_utime + usage.ru_stime:.1f} s "
        f"CPU), peak memory {peak / 1e6:.0f} MB; {said['committed']:,} transactions, p99 {said['p99']:.1f} ms"
    )


def summarise_record(folder: Path) -> None:
    from stallmark.analysis.experiment import summarise
    from stallmark.record.reader import find_records

    began = time.perf_counter()
    step = summarise(find_records([folder])).steps[0]
    took = time.perf_counter() - began
    assert step.storage.data and step.waits.share and step.bottleneck.correlations, step.key
    assert not step.validity.invalid, step.validity.invalid
    p99 = step.latency.percentiles_ms["p99"]
    print(json.dumps({"seconds": took, "committed": step.throughput.committed, "p99": p99}))


def write_record(folder: Path, seconds: int) -> None:
    rng = np.random.default_rng(SEED)
    second = np.arange(seconds)
    RecordWriter(folder, _manifest(seconds)).close()
    blobs = [_histogram(rng) for _ in range(200)]
    committed = rng.poisson(TPS, seconds)
    latency_us = np.full(seconds, USERS * 990_000)
    write(
        folder,
        "transactions",
        {
            "second": second,
            "transaction": ["transfer"] * seconds,
            "committed": committed,
            "latency_us": latency_us,
            "service_us": latency_us,
        }
        | histogram_columns("latency", [blobs[i % len(blobs)] for i in range(seconds)])
        | histogram_columns("service", [blobs[(i + 7) % len(blobs)] for i in range(seconds)]),
    )
    write(
        folder,
        "users",
        {
            "second": np.repeat(second, 2),
            "executor": np.tile([0, 1], seconds),
            "running": np.full(2 * seconds, USERS / 2),
            "busy_us": np.repeat(latency_us // 2, 2),
            "cpu_us": np.full(2 * seconds, 300_000),
        },
    )
    t = second + 0.3
    clock = {"server_time": 1.7e9 + t, "epoch": ["reset 1 start 2"] * seconds}
    entities = [f"client backend {n}/relation/normal" for n in range(SERVER_ROWS)]
    rows = {"t": t} | clock
    kinds = ["data"] * (SERVER_ROWS - 5) + ["wal"] * 4 + ["temp"]
    names = [*IO_COUNTS, "syncs", "sync_stall_ms", "hits", "evictions"]
    write(folder, "server_io", _entities(rng, rows, {"entity": entities, "kind": kinds}, names))
    names = ["commits", "rollbacks", "blocks_read", "blocks_hit", "deadlocks", "temp_bytes"]
    bases = {"database": ["stallmark", "postgres", "template1"], "own": [True, False, False]}
    databases = _entities(rng, rows, bases, names)
    databases["blocks_read"] = databases["blocks_read"] * np.tile([1000, 1, 1], seconds)
    write(folder, "database", databases)
    devices = {"entity": ["data", "wal", "underlying: vda"], "role": ["data", "wal", "underlying"]}
    write(folder, "device", _entities(rng, rows, devices, [*DEVICE_COUNTS, "busy_ms", "queue_ms", "late"]))
    write(folder, "wal", _entities(rng, rows, {}, ["records", "full_page_images", "bytes", "buffers_full"]))
    write(folder, "checkpoints", _entities(rng, rows, {}, ["timed", "requested", "done", "buffers_written"]))
    cpu = {"user_s": t * 0.5, "system_s": t * 0.2, "iowait_s": t * 0.3, "idle_s": t, "steal_s": t * 0}
    write(folder, "host", {"t": t} | cpu | {"cores": np.full(seconds, 2)})
    write(folder, "waits", _waits(rng, seconds))
    loads = {"application": [f"stallmark-user-{n}" for n in range(LOADS)]}
    write(folder, "load_io", _entities(rng, rows, loads, [*IO_COUNTS, "hits"]))
    costs = [f"collector {n}" for n in range(9)]
    write(
        folder,
        "collector_cost",
        {"t": np.repeat(t, len(costs)), "collector": costs * seconds, "cpu_us": np.full(len(costs) * seconds, 300)},
    )
    slow = {"t": t[::5], "epoch": ["start 2"] * len(t[::5])}
    names = ["heap_reads", "heap_hits", "index_reads", "index_hits"]
    write(folder, "relations", _entities(rng, slow, {"relation": list("abcdefgh")}, names))


def _entities(rng: np.random.Generator, samples: dict, entities: dict, counts: list[str]) -> dict:
    """Return rows of every sample for every entity, with cumulative counters."""
    n = len(samples["t"])
    m = len(next(iter(entities.values()), [""]))
    columns = {name: np.repeat(np.asarray(values), m) for name, values in samples.items()}
    columns |= {name: np.tile(np.asarray(values), n) for name, values in entities.items()}
    for name in counts:
        columns[name] = rng.poisson(50, (n, m)).cumsum(axis=0).ravel()
        if name.endswith("_ms"):
            columns[name] = columns[name] * 8.0
    return columns


def _waits(rng: np.random.Generator, seconds: int) -> dict:
    classes = {"io": 0.8, "wal": 0.05, "lock": 0.05, "cpu": 0.05, "client": 0.03, "other": 0.02}
    return {
        "t": np.repeat(np.arange(seconds) + 1.0, len(classes)),
        "second": np.repeat(np.arange(seconds), len(classes)),
        "wait_class": list(classes) * seconds,
        "event": [f"{name}:event" for name in classes] * seconds,
        "samples": rng.multinomial(USERS * 10, list(classes.values()), seconds).ravel(),
        "polls": np.full(seconds * len(classes), 10),
    }


def write(folder: Path, name: str, columns: dict) -> None:
    """Write a table as RecordWriter does at the end of a run. Columns of our own tables that are not given are 0."""
    table = pa.table(columns)
    if name in TABLES:
        rows = table.num_rows
        missing = {f.name: pa.array(np.zeros(rows, int)) for f in TABLES[name] if f.name not in columns}
        table = pa.table(dict(columns) | missing).select(TABLES[name].names).cast(TABLES[name])
    path = folder / f"{name}.parquet"
    with writing(path, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS_AT_ONCE)
    made = read_manifest(folder)
    write_manifest(folder, made.changed(tables=made.tables | {name: written(path)}))


def histogram_columns(name: str, histograms: Sequence[hdr.Histogram]) -> dict[str, pa.Array]:
    rows = [hdr.columns(name, histogram) for histogram in histograms]
    return {each: pa.array([row[each] for row in rows], TABLES["transactions"].field(each).type) for each in rows[0]}


def _histogram(rng: np.random.Generator) -> hdr.Histogram:
    return hdr.encode(rng.lognormal(np.log(USERS / TPS * 1e6) - 0.125, 0.5, TPS).astype(np.int64))


def _manifest(seconds: int) -> Manifest:
    array = EmulatedArray(spindles=40, read_ms=8.0, write_ms=4.0, sync_ms=1.0, mb_per_s=200)
    step = {"name": f"{USERS} users", "users": USERS, "begin_s": 0.0, "measure_s": 60.0, "end_s": seconds - 1.0}
    described: dict[str, Any] = {
        "scenario": {"name": "day", "title": "A day"},
        "variant": {"name": "day"},
        "repeat": 1,
        "sequence": 1,
        "started": "2025-11-21T00:00:00.000+00:00",
        "steps": [step | {"arrivals": "closed", "rate": None, "think_ms": 0.0}],
        "memory": {"reached_bytes": 1 << 30},
        "database": {"bytes_before": 10 << 30, "bytes_after": 10 << 30},
        "devices": dict.fromkeys(("data", "wal"), Device(emulated_array=array)),
    }
    return Manifest(**described)


if __name__ == "__main__":
    main()
