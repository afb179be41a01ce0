"""Files of other tools for a run of known truth: what a disk did that slows the run's transactions down.

The shapes are those of tests/attach/samples; only times and values are made here.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from stallmark.analysis.read.throughput import read_load
from stallmark.record.reader import Record, recorded_seconds

Write = Callable[[Path, Sequence[datetime], np.ndarray], Path]


def disk_of(folder: Path, every: int = 1, clock_s: float = 0.0, around_s: int = 0) -> tuple[list[datetime], np.ndarray]:
    """Instants and read latencies in seconds of a disk whose latency rises where the run's TPS falls.

    A sample every `every` seconds, at the end of its interval, by a clock that is `clock_s` fast; `around_s` more
    before and after the run.
    """
    record = Record(folder)
    seconds = recorded_seconds(record)
    tps = read_load(record, seconds, []).all("committed").astype(float)
    rest = np.full(around_s, tps.mean()) * np.random.default_rng(5).normal(1, 0.03, (2, around_s))
    whole = np.concatenate([rest[0], tps, rest[1]])
    count = len(whole) // every
    means = whole[: count * every].reshape(count, every).mean(axis=1)
    latency = 0.008 * tps.mean() / means
    started = datetime.fromisoformat(record.manifest.started) - timedelta(seconds=around_s)
    ends = [started + timedelta(seconds=(n + 1) * every + clock_s) for n in range(count)]
    return ends, latency


def perfmon(path: Path, ends: Sequence[datetime], latency: np.ndarray, zone: str = "Europe/Berlin") -> Path:
    """By the local clock of the zone, with the bias it had at the first sample."""
    local = [end.astimezone(ZoneInfo(zone)) for end in ends]
    bias = -int((local[0].utcoffset() or timedelta()).total_seconds() // 60)
    disk, rows = r"\\SQL01\PhysicalDisk(1 D:)", []
    names = (
        "Avg. Disk sec/Read",
        "Avg. Disk sec/Write",
        "Disk Transfers/sec",
        "Disk Bytes/sec",
        "Avg. Disk Queue Length",
    )
    header = [f"(PDH-CSV 4.0) (W. Europe Standard Time)({bias})"]
    header += [rf"{disk}\{name}" for name in names] + [r"\\SQL01\Memory\Available MBytes"]
    for number, (when, value) in enumerate(zip(local, latency, strict=True)):
        cells = [f"{v:.9f}" for v in (value, value / 2, 800 / value * 0.008, 6.5e6, value * 100, 1024)]
        if number == 0:
            cells[:5] = [" "] * 5  # rates need two samples
        rows.append([f"{when:%m/%d/%Y %H:%M:%S}.{when.microsecond // 1000:03d}", *cells])
    # The comment of the data collector set ends the header, and is in no row.
    lines = [",".join(f'"{c}"' for c in row) for row in [[*header, "Made for a test"], *rows]]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    return path


def iostat(path: Path, ends: Sequence[datetime], latency: np.ndarray, zone: str = "UTC") -> Path:
    def disk(device: str, share: float, value: float) -> dict:
        return {
            "disk_device": device, "r/s": 600 * share, "w/s": 200 * share, "rkB/s": 4800 * share, "wkB/s": 1600 * share,
            "r_await": round(value * 1000, 2), "w_await": round(value * 500, 2), "aqu-sz": round(value * 100, 2),
            "util": 50.0,
        }  # fmt: skip

    reports = [
        {
            "timestamp": f"{end.astimezone(ZoneInfo(zone)):%m/%d/%Y %I:%M:%S %p}",
            "disk": [disk("sda", 0.01, 0.001), disk("nvme0n1", 1.0, float(value))],
        }
        for end, value in zip(ends, latency, strict=True)
    ]
    host = {"nodename": "db1", "sysname": "Linux", "date": "11/21/2025", "statistics": reports}
    path.write_text(json.dumps({"sysstat": {"hosts": [host]}}, indent=1))
    return path


def array_csv(path: Path, ends: Sequence[datetime], latency: np.ndarray) -> Path:
    rows = ["Time,Read Response Time (ms),Total IO Rate (IO/s),Cache Hits (%)"]
    for end, value in zip(ends, latency, strict=True):
        rows.append(f"{end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ},{value * 1000:.3f},{5000 + value:.1f},{90 - value:.2f}")
    path.write_text("\n".join(rows) + "\n")
    return path
