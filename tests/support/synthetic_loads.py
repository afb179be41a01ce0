"""Run records of several loads, of known truth, written by the real RecordWriter.

make_loads_run(folder, alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}, scan=(900.0, 300.0)))
make_loads_run(folder, in_cells({1: {"mail": 60.0, "bank": 200.0}, 2: {"mail": 115.0, "bank": 260.0}}))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stallmark.record import schema
from stallmark.record.manifest import Manifest
from stallmark.record.writer import RecordWriter
from support.manifests import on
from support.synthetic import MIB, Step, Truth, histogram
from support.synthetic_rows import BLOCK, COLLECTOR_TABLES, Tables

WARM_UP_S, MEASURED_S = 3, 22
STEP_S = WARM_UP_S + MEASURED_S
RAW_BLOCK = 262_144
DISKS = {"spindles": 8, "read_ms": 8.0}
QUIET = Truth(noise=0.0, foreign_reads_per_second=0.0)
COUNTS = {"mail": 10, "bank": 20}


@dataclass(frozen=True)
class LoadsStep:
    """A step: what each load does per second in it; a load that is not named rests."""

    name: str
    rates: Mapping[str, float]
    alone: str | None = None
    cells: int | None = None
    users: Mapping[str, int] | None = None  # instead of COUNTS


def alone_and_together(
    users: Mapping[str, tuple[float, float]],
    scan: tuple[float, float] | None = None,
    reports: tuple[float, float] | None = None,
) -> list[LoadsStep]:
    """Each load by itself and then all, as (alone, together) per second: transactions, I/Os, queries."""
    rates = {**users, **({"scan": scan} if scan else {}), **({"reports": reports} if reports else {})}
    return [
        *(LoadsStep(f"{name} alone", {name: alone}, alone=name) for name, (alone, _) in rates.items()),
        LoadsStep("together", {name: together for name, (_, together) in rates.items()}),
    ]


def in_cells(rates: Mapping[int, Mapping[str, float]]) -> list[LoadsStep]:
    return [LoadsStep(f"{k} cell{'s' * (k > 1)}", of, cells=k) for k, of in rates.items()]


def make_loads_run(
    folder: Path,
    steps: Sequence[LoadsStep],
    variant: str = "disks",
    repeat: int = 1,
    sequence: int = 1,
    truth: Truth = QUIET,
    limits_ms: Mapping[str, float] | None = None,
    unaccounted: float = 0.0,
    raw_ends_s: float | None = None,
    device: Mapping[str, Any] = DISKS,
    users: Mapping[str, int] = COUNTS,
    title: str = "The I/O blender",
    scanned_on_device: bool = False,
    waits: Mapping[str, Mapping[str, float]] | None = None,
    experiment: str = "synthetic",
    late_s: float | None = None,
    left: Sequence[tuple[float, float | None, float]] = (),
) -> Path:
    """Write a record. `unaccounted`: the share of the server's reads that no load's session has made; below 0 they have
    counted more than the server. `raw_ends_s`:
    when the raw load's rows end, in seconds since the run's start. `scanned_on_device`: 300 I/Os of it per second are
    among those of the data's device, to the run's end. `waits`: shares of the truth's classes, by load. `late_s`: the
    queries came due at a rate, and every fourth of them waited so long for a stream. `left`: when
    queries were due, began and were given up."""
    names = list(dict.fromkeys(name for step in steps for name in step.rates))
    of_users = [name for name in names if name not in ("scan", "reports")]
    counts = {n: [_count(n, step, users) for step in steps] for n in names}
    writer = RecordWriter(
        folder,
        _manifest(
            steps, counts, variant, repeat, sequence, device, limits_ms or {}, title, experiment, late_s is not None
        ),
    )
    for name, columns in COLLECTOR_TABLES.items():
        writer.add_table(name, columns)
    writer.add_table("load_io", _LOAD_IO)
    end = STEP_S * len(steps)
    total = replace(truth, warm_up_s=WARM_UP_S, measured_s=MEASURED_S, variant=variant, device=dict(device),
                    emulated="spindles" in device, seed=sequence)  # fmt: skip
    whole = Tables(replace(total, steps=tuple(_of_all(step, of_users, users) for step in steps)), writer)
    committed: dict[str, np.ndarray] = {}
    sampled: list[dict[str, Any]] = []
    for number, name in enumerate(of_users):
        here = tuple(Step(_count(name, step, users) or 1, step.rates.get(name, 1.0)) for step in steps)
        own_waits = {**total.waits, **(waits or {}).get(name, {})}
        drawn = Tables(replace(total, steps=here, seed=sequence * 10 + number, waits=own_waits), writer)
        runs = np.repeat([name in step.rates for step in steps], STEP_S)
        committed[name] = np.where(runs, drawn.committed, 0)
        for table, rows in drawn._drivers(end).items():
            own = [row | {"load": name} for row in rows if runs[row["second"]]]
            if table == "users":
                own = [row | {"executor": row["executor"] + 2 * number} for row in own]
            writer.append(table, own)
        sampled += [row for at in np.flatnonzero(runs) for row in drawn._waits(int(at), f"stallmark-user-{name}")]
    whole.committed = sum(committed.values()) if committed else whole.committed
    collected = whole._collectors(end) | {"waits": sampled}
    for row in collected["device"] if scanned_on_device else ():
        row["read_bytes"] += round(300 * row["t"]) * RAW_BLOCK
    for table, rows in collected.items():
        writer.append(table, [_of_sessions(row, max(0, unaccounted)) for row in rows] if table == "server_io" else rows)
    writer.append("load_io", _load_io(committed, whole.truth, end, 1 - unaccounted))
    if "scan" in names:
        writer.add_table("raw_io", schema.RAW_IO)
        writer.append("raw_io", _raw(steps, raw_ends_s))
    if "reports" in names:
        writer.append("queries", _queries(steps, late_s))
        writer.add_table("queries_left", schema.QUERIES_LEFT)
        writer.append(
            "queries_left", [dict(zip(schema.QUERIES_LEFT.names, ("reports", *one), strict=True)) for one in left]
        )
    writer.close()
    return folder


def _count(name: str, step: LoadsStep, users: Mapping[str, int]) -> int:
    each = (step.users or users).get(name, 2 if name == "reports" else 1)
    return each * (step.cells or 1) if name in step.rates else 0


def _of_all(step: LoadsStep, names: Sequence[str], users: Mapping[str, int]) -> Step:
    here = [name for name in names if name in step.rates]
    return Step(sum(_count(name, step, users) for name in here) or 1, sum(step.rates[name] for name in here) or 1.0)


def _of_sessions(row: dict[str, Any], unaccounted: float) -> dict[str, Any]:
    """All reads but the share `unaccounted` are of sessions: those of I/O workers are handed to their entity."""
    if row["entity"] == "client backend/relation/normal":
        reads = round(row["reads"] / 0.8 * (1 - unaccounted))
    elif row["entity"] == "io worker/relation/normal":
        reads = round(row["reads"] / 0.2 * unaccounted)
    else:
        return row
    return row | {"reads": reads, "read_bytes": reads * BLOCK}


_LOAD_IO = pa.schema(
    [
        ("t", pa.float64()),
        ("epoch", pa.string()),
        ("application", pa.string()),
        *((name, pa.int64()) for name in ("sessions", "reads", "read_bytes", "writes")),
    ]
)


def _load_io(committed: Mapping[str, np.ndarray], truth: Truth, end: int, share: float) -> list[dict[str, Any]]:
    rows = []
    for second in range(end):
        t = second + truth.sample_offset_s
        told = max(t - truth.report_delay_s, 0.0)
        for name, rate in committed.items():
            whole = int(told)
            done = float(rate[:whole].sum() + (told - whole) * rate[whole]) * truth.reads_per_transaction * share
            rows.append(
                {
                    "t": t, "epoch": "start", "application": f"stallmark-user-{name}", "sessions": 4,
                    "reads": int(done), "read_bytes": int(done) * BLOCK, "writes": 0,
                }
            )  # fmt: skip
    return rows


def _raw(steps: Sequence[LoadsStep], ends_s: float | None) -> list[dict[str, Any]]:
    rows = []
    for number, step in enumerate(steps):
        for second in range(number * STEP_S, (number + 1) * STEP_S):
            if "scan" not in step.rates or (ends_s is not None and second >= ends_s):
                continue
            for cell in range(1, (step.cells or 1) + 1):
                ios = round(step.rates["scan"] / (step.cells or 1))
                us = np.full(ios, round(1e6 * 16 / step.rates["scan"]))
                rows.append(
                    {
                        "second": second, "load": "scan", "cell": cell, "reads": ios, "read_bytes": ios * RAW_BLOCK,
                        "writes": 0, "write_bytes": 0, "latency_us": int(us.sum()), **histogram("latency", us),
                    }
                )  # fmt: skip
    return rows


def _queries(steps: Sequence[LoadsStep], late_s: float | None) -> list[dict[str, Any]]:
    rows = []
    for number, step in enumerate(steps):
        if not (rate := step.rates.get("reports")):
            continue
        each_s = 2 / rate  # of two streams
        done = int(STEP_S / each_s)
        rows += [
            {
                "phase": "concurrent", "load": "reports", "stream": stream, "position": position + 1,
                "query": f"Q{position % 22 + 1}", "started_s": number * STEP_S + position * each_s, "seconds": each_s,
                "due_s": None if late_s is None
                else number * STEP_S + position * each_s - late_s * (position % 4 == 0),
            }
            for stream in (1, 2)
            for position in range(done)
        ]  # fmt: skip
    return rows


def _manifest(
    steps: Sequence[LoadsStep], counts: Mapping[str, list[int]], variant: str, repeat: int, sequence: int,
    device: Mapping[str, Any], limits_ms: Mapping[str, float], title: str,
    experiment: str, open_queries: bool,
) -> Manifest:  # fmt: skip
    kinds = {"scan": "raw", "reports": "streams"}
    loads = []
    for name, by_step in counts.items():
        kind = kinds.get(name, "users")
        limit = limits_ms.get(name)
        load: dict[str, Any] = {
            "name": name, "kind": kind, "counts": by_step, "cells": max(step.cells or 1 for step in steps),
            "service_level": limit and {"name": "read", "read_ms": limit, "percentile": "p95"},
        }  # fmt: skip
        if kind == "raw":
            load["raw"] = {
                "pattern": "256k-sequential-read", "operation": "read", "order": "sequential",
                "blocks": {RAW_BLOCK: 1.0}, "outstanding": 16, "size_bytes": 1 << 30, "emulated": "spindles" in device,
            }  # fmt: skip
        else:
            load["workload"] = {"name": name if kind == "users" else "warehouse", "version": 1, "seed": 1}
        if kind == "streams" and open_queries:
            load |= {"arrivals": "poisson", "rate": max(step.rates.get(name, 0.0) for step in steps)}
        loads.append(load)
    return Manifest.model_validate(
        {
            "stallmark": "0.1.0", "experiment": experiment,
            "scenario": {"name": "io-blender", "title": title, "answers": "What do loads cost each other?"},
            "variant": {"name": variant}, "repeat": repeat, "sequence": sequence,
            "started": f"2026-11-21T10:{sequence:02d}:00+00:00",
            "steps": [
                {
                    "name": step.name, "users": sum(counts[n][number] for n in counts if n not in kinds),
                    "begin_s": number * STEP_S, "measure_s": number * STEP_S + WARM_UP_S,
                    "end_s": (number + 1) * STEP_S, "alone": step.alone, "cells": step.cells,
                }
                for number, step in enumerate(steps)
            ],
            "workload": {"name": "+".join(sorted({one["workload"]["name"] for one in loads if "workload" in one}))},
            "loads": loads,
            "server": {"product": "PostgreSQL", "version": "18.4", "settings": {"block_size": str(BLOCK)}},
            "memory": {"configured_bytes": 64 * MIB, "reached_bytes": 64 * MIB},
            "database": {"bytes_before": 320 * MIB, "bytes_after": 321 * MIB},
            "cache_start": "cold", "reset": "restore", "devices": on(device),
            "collectors": {name: {"title": name, "interval_s": 1.0} for name in COLLECTOR_TABLES},
            "conditions": [{"name": "balances agree", "holds": True}],
            "machine": {"cpu": "Synthetic CPU", "cores": 2, "memory_bytes": 8 << 30, "system": "Linux"},
        }
    )  # fmt: skip
