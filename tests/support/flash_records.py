"""Records of a known array: what its flash did and how much was active, put into synthetic records.

folder = with_flash(make_run(tmp_path / "run", Truth()), cache_bytes=64 * MIB, hit_share=0.5, active_extents=500)
folder = on_array(make_run(tmp_path / "run", Truth(**REAL)), dram_bytes=8 * GIB)
probe_result(1000.0, emulated=False)
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stallmark.record.manifest import read_manifest
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep
from support.manifests import changed, on
from support.synthetic import EMULATED, MIB
from support.tables import get, put

EXTENT = 65536
FLASH_MS = 0.5
REAL: dict[str, Any] = {
    "emulated": False, "device": {"name": "sdb", "model": "MSA 2040", "rotational": True}, "read_ms": 8,
}  # fmt: skip
READS = Pattern("8k-random-read", "read", "random", 8192)


def with_flash(
    folder: Path,
    kind: str = "cache",
    size: int = 64 * MIB,
    hit_share: float = 0.5,
    active_extents: int = 500,
    later_share: float | None = None,
) -> Path:
    """Of the reads `hit_share` took FLASH_MS, from the middle of the measured interval on `later_share`; the others
    what is left. All that was active was touched by the end."""
    table = get(folder, "device")
    rows, data = table.num_rows, np.array([role == "data" for role in table["role"].to_pylist()])
    t, reads = table["t"].to_numpy(), table["reads"].to_numpy()
    grown = np.rint(active_extents * np.clip(t / t.max(), 0, 1))
    hits = np.zeros(rows)
    risen = np.diff(reads[data], prepend=0) * _shares(folder, t[data], hit_share, later_share)
    hits[data] = np.rint(np.cumsum(risen))
    columns = {
        "flash_reads": hits,
        "flash_read_ms": hits * FLASH_MS,
        "cache_evictions": np.rint(t * 100) if kind == "cache" else None,
        "tier_bytes_up": np.rint(t * MIB) if kind == "tier" else None,
        "tier_bytes_down": np.rint(t * MIB / 2) if kind == "tier" else None,
        "flash_used_bytes": np.full(rows, size / 2),
        "active_extents_run": grown,
        "active_extents_60s": np.where(t >= 20, active_extents / 2, np.nan),
        "extent_bytes": np.full(rows, EXTENT),
    }
    for name, values in columns.items():
        found = np.full(rows, np.nan) if values is None else np.where(data, values, np.nan)
        table = table.append_column(name, pa.array(found, from_pandas=True))
    put(folder, "device", table)
    flash = {"size": size, "read_ms": FLASH_MS, "write_ms": FLASH_MS, "mb_per_s": 400, "channels": 8}
    return changed(folder, devices=on(EMULATED | {kind: flash}, EMULATED))


def _shares(folder: Path, t: np.ndarray, hit_share: float, later_share: float | None) -> np.ndarray:
    [step] = read_manifest(folder).steps
    middle = (step.measure_s + step.end_s) / 2
    return np.where(t <= middle, hit_share, hit_share if later_share is None else later_share)


def on_array(folder: Path, **array: Any) -> Path:
    return changed(folder, array=array)


def probe_result(iops: float, emulated: bool = True, spread: float = 0.01) -> ProbeResult:
    """One step at 8 outstanding, whose rate goes up and down by `spread` in some seconds."""
    windows = tuple((0.25 * n, iops * (1 + spread * math.sin(n / 5))) for n in range(1, 41))
    step = ProbeStep(READS, 8, 10.0, round(iops * 10), round(iops * 10) * 8192, 8000 / iops, (), windows)
    return ProbeResult("fio-3.33", "psync", emulated, None, "/data", 256 * MIB, "2025-11-21T10:00:00+00:00", (step,))
