"""Records of runs of queries with known times, written by the real RecordWriter.

make_query_run(folder, seconds={"Q1": 2.0})                       # a power run; what is not named takes a second
make_query_run(folder, variant="flash", plans={"Q9": "other"})
make_query_run(folder, run="each", dops=(1, 2), only=(1, 6))
make_query_run(folder, run="throughput", streams=2)
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Step
from stallmark.record.writer import RecordWriter
from support.manifests import on

DISKS = {"spindles": 8, "read_ms": 4.0}
GAP_S = 0.0005  # between two queries


def make_query_run(
    folder: Path,
    *,
    variant: str = "disks",
    sequence: int = 1,
    repeat: int = 1,
    run: str = "power",
    streams: int = 2,
    refresh: bool = True,
    factor: float = 1,
    seconds: Mapping[str, float] | None = None,
    plans: Mapping[str, str] | None = None,
    failed: Mapping[str, str] | None = None,
    dops: Sequence[int | None] = (None,),
    only: Sequence[int] = range(1, 23),
    speedup: float = 0.6,
    device: Mapping[str, Any] = DISKS,
    pool_bytes: int = 64 << 20,
    cut: str | None = None,
    measures: bool = True,
) -> Path:
    """`failed`: class of error by query; `speedup`: run time at twice the degree of parallelism over that at once."""
    seconds, plans, failed = dict(seconds or {}), dict(plans or {}), dict(failed or {})
    phases = ["power", "throughput"] if run == "both" else [run]
    manifest: dict[str, Any] = {
        "started": f"2026-11-22T10:{sequence:02d}:00.000+00:00",
        "scenario": {"name": "queries", "title": "Queries", "answers": "Which are faster?"},
        "variant": {"name": variant},
        "repeat": repeat,
        "workload": {"name": "warehouse", "scale": {"factor": factor}, "transactions": []},
        "kind": "queries",
        "queries": {"run": run, "phases": phases, "streams": streams if "throughput" in phases else None,
                    "refresh": refresh, "dops": list(dops), "timeout_s": 120.0},
        "server": {"product": "PostgreSQL", "version": "18.1"},
        "memory": {"configured_bytes": pool_bytes, "reached_bytes": pool_bytes},
        "database": {"bytes_before": 1 << 30, "bytes_after": 1 << 30},
        "devices": {"data": on(device)["data"]},
        "collectors": {},
        "conditions": [],
        "steps": [],
        "notes": [],
    }  # fmt: skip
    writer = RecordWriter(folder, Manifest(**manifest))
    now = 0.0
    for phase in phases:
        began = now
        for stream, names, dop in _streams(phase, streams, refresh, dops, only):
            t = now if phase == "each" else began
            for position, name in enumerate(names, 1):
                took = seconds.get(name, 1.0) * (speedup ** ((dop or 1).bit_length() - 1))
                row: dict[str, Any] = {
                    "phase": phase, "stream": stream, "position": position, "query": name, "dop": dop,
                    "started_s": t, "seconds": took,
                }  # fmt: skip
                if name in failed:
                    row |= {"error_class": failed[name], "error": f"it went wrong ({failed[name]})"}
                elif name.startswith("Q") and measures:
                    row |= _measured(plans.get(name, "usual"), took, dop)
                writer.append("queries", [row])
                t += took + GAP_S
            now = max(now, t - GAP_S)
        if cut is None:
            users = streams if phase == "throughput" else 1
            step = Step(name=f"{phase} run", phase=phase, users=users, begin_s=began, measure_s=began, end_s=now)
            writer.update(steps=(*writer.manifest.steps, step))
    writer.close(cut)
    return folder


def _streams(phase: str, streams: int, refresh: bool, dops: Sequence[int | None], only: Sequence[int]) -> list:
    queries = [f"Q{number}" for number in only]
    if phase == "power":
        return [(0, ["RF1", *queries, "RF2"] if refresh else queries, None)]
    if phase == "each":
        return [(0, queries, dop) for dop in dops]
    found: list = [(number, queries, None) for number in range(1, streams + 1)]
    return [*found, (streams + 1, ["RF1", "RF2"] * streams, None)] if refresh else found


def _measured(plan: str, seconds: float, dop: int | None) -> dict[str, Any]:
    return {
        "rows": 4, "logical_reads": 900, "physical_reads": 300, "read_bytes": 300 * 8192, "spill_bytes": 0,
        "actual_dop": dop or 1, "wait_ms": json.dumps({"data file read": seconds * 800}), "plan_hash": plan,
    }  # fmt: skip
