"""Run records of known truth, written by the real RecordWriter, for tests of the analysis and of the report.

    from support.synthetic import Truth, make_experiment, make_run

    folders = make_experiment(tmp_path)                         # 4 buffer pools and one bare variant
    folders = make_experiment(tmp_path, kind="user-ramp")       # 1, 10, 20, 50, 100 users in one run
    folders = make_experiment(tmp_path, repeats=3)
    folder = make_run(tmp_path / "run", Truth(tps=300, epoch_change_at=20))

Everything a record says follows from a `Truth`: in a closed loop the latency is users / TPS − think time, so
Little's law holds in every second, and counters are the integral of the rates.
"""

import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from stallmark.record.manifest import Manifest
from stallmark.record.writer import RecordWriter
from support.manifests import on
from support.synthetic_brokerage import Brokerage
from support.synthetic_rows import BLOCK, CLIENT_CORES, COLLECTOR_TABLES, Tables, histogram

__all__ = ["BLOCK", "EMULATED", "MIB", "Brokerage", "Step", "Truth", "histogram", "make_experiment", "make_run"]

MIB = 1 << 20
EMULATED = {"spindles": 8, "read_ms": 8.0, "write_ms": 4.0, "sync_ms": 2.0, "mb_per_s": 200}


@dataclass(frozen=True)
class Step:
    """One step's truth; latency in a closed loop follows from users, TPS and think time."""

    users: int = 30
    tps: float = 400.0
    think_ms: float = 0.0
    name: str = ""

    @property
    def latency_ms(self) -> float:
        return self.users / self.tps * 1000 - self.think_ms


@dataclass(frozen=True)
class Truth:
    """The truth of one run. Shares are of the users' time; the rest of the time is CPU."""

    users: int = 30
    tps: float = 400.0
    think_ms: float = 0.0
    steps: tuple[Step, ...] = ()  # instead of the three above
    warm_up_s: float = 5
    measured_s: float = 30
    arrivals: str = "closed"
    reads_per_transaction: float = 2.0  # physical, data files; one in five by an I/O worker
    read_ms: float = 8.0
    writes_per_transaction: float = 0.2  # data files, without extends
    extends_per_second: float = 2.0
    write_ms: float = 4.0
    syncs_per_transaction: float = 0.3
    sync_ms: float = 2.0
    requests_per_transaction: float = 20.0  # block requests, hits and reads
    waits: dict[str, float] = field(
        default_factory=lambda: {"io": 0.72, "wal": 0.06, "lock": 0.04, "client": 0.03, "other": 0.01}
    )
    host_cpu: float = 0.35
    cores: int = 2
    noise: float = 0.03  # relative standard deviation of per-second rates
    coupling: float = 1.0  # how far a slower read lowers the same second's TPS; 0 = independent
    overhead_share: float = 0.01  # of the users' time, lost in the driver
    executor_cpu: float = 0.2  # of a core, each of 2 executors
    foreign_cpu: float = 0.0  # share of the host's CPUs
    run_delay: float = 0.0  # tasks of the server that wait for a CPU
    lag_ms: float = 0.05  # per transaction
    foreign_reads_per_second: float = 0.5
    failed_per_second: float = 0.0
    rolled_back_share: float = 0.0
    pool_bytes: int = 64 * MIB
    database_bytes: int = 320 * MIB
    growth_share: float = 0.01
    variant: str = "cap 64 MiB"
    repeat: int = 1
    sequence: int = 1
    device: dict[str, Any] = field(default_factory=lambda: dict(EMULATED))
    emulated: bool = True
    report_delay_s: float = 0.9  # sessions hand in their counts late, as PostgreSQL's do
    device_share: float = 1.0  # of the server's read and write stall that is the device's own
    checkpoint_every_s: float = 30.0
    sample_offset_s: float = 0.3  # samples never fall on whole seconds
    epoch_change_at: float | None = None  # s since run start: the server's counters begin again
    falls_at: float | None = None  # the same, unannounced: the epoch stays
    cut_at: float | None = None  # the tool was killed: streams without end, status running
    off: tuple[str, ...] = ()  # collectors that measured nothing
    brokerage: Brokerage | None = None  # its transactions instead of the bank's; `tps` are then those of users
    seed: int = 1

    @property
    def plan(self) -> tuple[Step, ...]:
        return self.steps or (Step(self.users, self.tps, self.think_ms, "steady"),)

    @property
    def server_cores(self) -> float:
        """The cores that the server's processes keep busy: what other programs, executors and the rest leave."""
        client = 2 * self.executor_cpu + sum(cores for _, cores in CLIENT_CORES)
        return max(0.01, self.cores * (self.host_cpu - self.foreign_cpu) - client)

    @property
    def step_s(self) -> float:
        return self.warm_up_s + self.measured_s

    @property
    def seconds(self) -> int:
        return math.ceil(self.step_s * len(self.plan))


def make_experiment(tmp_path: Path, kind: str = "buffer-pool", repeats: int = 1, **truth: Any) -> list[Path]:
    """Write the records of a whole experiment below `tmp_path`; `truth` overrides fields of every `Truth`.

    buffer-pool: 5 %, 20 %, 50 % and 100 % of 320 MiB on an emulated device, and 20 % on the bare device,
    where the CPU is the limit. user-ramp: one run of five steps.
    """
    if kind == "buffer-pool":
        truths = buffer_pool_truths()
    elif kind == "user-ramp":
        truths = [user_ramp_truth()]
    else:
        raise ValueError(kind)
    folders = []
    for repeat in range(1, repeats + 1):
        for one in truths:
            number = len(folders) + 1
            one = replace(one, repeat=repeat, sequence=number, seed=number, **truth)
            folders.append(make_run(tmp_path / f"{number:02d}-{one.variant.replace(' ', '-')}", one, kind))
    return folders


def buffer_pool_truths() -> list[Truth]:
    def waits(io: float, wal: float) -> dict[str, float]:
        return {"io": io, "wal": wal, "lock": 0.04, "client": 0.03, "other": 0.01}

    size = 320 * MIB
    emulated = [
        Truth(tps=412, reads_per_transaction=2.1, read_ms=28, waits=waits(0.84, 0.04), host_cpu=0.18),
        Truth(tps=540, reads_per_transaction=1.6, read_ms=26, waits=waits(0.78, 0.06), host_cpu=0.24),
        Truth(tps=890, reads_per_transaction=0.9, read_ms=21, waits=waits(0.62, 0.12), host_cpu=0.38),
        Truth(tps=3120, reads_per_transaction=0.0, read_ms=8, waits=waits(0.02, 0.33), host_cpu=0.88),
    ]
    shares = (0.05, 0.2, 0.5, 1.0)
    runs = [
        replace(truth, variant=f"cap {share:.0%}", pool_bytes=int(size * share), database_bytes=size)
        for truth, share in zip(emulated, shares, strict=True)
    ]
    bare = Truth(
        tps=4300,
        reads_per_transaction=1.6,
        read_ms=0.09,
        write_ms=0.05,
        sync_ms=0.2,
        waits=waits(0.02, 0.03),
        host_cpu=0.97,
        emulated=False,
        device={"name": "vda", "model": "Virtio block device", "rotational": False},
        variant="bare device, cap 20%",
        pool_bytes=int(size * 0.2),
        database_bytes=size,
    )
    return [*runs, bare]


def user_ramp_truth() -> Truth:
    ramp = {1: 45.0, 10: 330.0, 20: 520.0, 50: 610.0, 100: 615.0}
    return Truth(
        variant="ramp",
        steps=tuple(Step(users, tps, 0.0, f"{users} users") for users, tps in ramp.items()),
        measured_s=20,
    )


def make_run(
    folder: Path, truth: Truth, scenario: str = "buffer-pool", tables: Callable[[Truth, RecordWriter], Tables] = Tables
) -> Path:
    """Write one record into the new `folder` and return it; `tables` draws its seconds (synthetic_shapes.py)."""
    made = Path(_MADE.name) / sha256(repr((truth, scenario, tables)).encode()).hexdigest()
    if not made.exists():
        _write(made, truth, scenario, tables)
    return Path(shutil.copytree(made, folder))


_MADE = tempfile.TemporaryDirectory()
"""Each record that was made: to copy one takes a tenth of the time."""


def _write(folder: Path, truth: Truth, scenario: str, tables: Callable[[Truth, RecordWriter], Tables]) -> None:
    writer = RecordWriter(folder, _manifest(truth, scenario))
    for name, schema in COLLECTOR_TABLES.items():
        if name not in truth.off:
            writer.add_table(name, schema)
    end = truth.seconds if truth.cut_at is None else min(truth.seconds, math.ceil(truth.cut_at))
    drawn = tables(truth, writer)
    drawn.write(end)
    if truth.brokerage:
        writer.update(workload=truth.brokerage.declared(drawn.trading.results))
    if truth.cut_at is None:
        writer.close()
    else:
        for stream in writer._streams.values():
            stream.close()  # as after SIGKILL: no end-of-stream mark, no Parquet


def _manifest(truth: Truth, scenario: str) -> Manifest:
    steps = []
    for number, step in enumerate(truth.plan):
        begin = number * truth.step_s
        steps.append(
            {
                "name": step.name, "users": step.users, "begin_s": begin, "measure_s": begin + truth.warm_up_s,
                "end_s": begin + truth.step_s, "arrivals": truth.arrivals,
                "rate": None if truth.arrivals == "closed" else step.tps, "think_ms": step.think_ms,
            }
        )  # fmt: skip
    titles = {
        "server_io": "Server I/O", "wal": "Write-ahead log", "waits": "Waits of the users", "database": "Databases",
        "checkpoints": "Checkpoints", "host": "Host CPU",
        "server_cpu": "CPU of the server", "device": "Block device",
    }  # fmt: skip
    described = {
        "stallmark": "0.1.0",
        "experiment": "synthetic",
        "scenario": {
            "name": scenario,
            "title": "How much buffer pool?" if scenario == "buffer-pool" else "How many users?",
            "answers": "How transactions per second grow with the buffer pool."
            if scenario == "buffer-pool"
            else "How transactions per second grow with the users.",
        },
        "variant": {"name": truth.variant, "buffer_pool": f"{truth.pool_bytes // MIB} MiB"},
        "repeat": truth.repeat,
        "sequence": truth.sequence,
        "started": f"2025-11-21T{10 + truth.sequence // 60:02d}:{truth.sequence % 60:02d}:00+00:00",
        "steps": steps,
        "workload": {"name": "bank", "version": 1, "scale": {"branches": 20}, "seed": 42},
        "server": {
            "product": "PostgreSQL",
            "version": "18.4",
            "settings": {"shared_buffers": f"{truth.pool_bytes // MIB}MB", "block_size": str(BLOCK)},
        },
        "memory": {
            "configured_bytes": truth.pool_bytes,
            "reached_bytes": truth.pool_bytes,
            "original_bytes": 128 * MIB,
        },
        "database": {
            "bytes_before": truth.database_bytes,
            "bytes_after": int(truth.database_bytes * (1 + truth.growth_share)),
        },
        "cache_start": "cold",
        "devices": on(truth.device),
        "collectors": {
            name: {
                "title": title,
                "help": "",
                "interval_s": 1.0,
                "unavailable": "The server has no such view." if name in truth.off else None,
            }
            for name, title in titles.items()
        },
        "conditions": [
            {"name": "balances agree", "holds": True, "offending": 0, "seconds": 0.4, "detail": ""},
            {"name": "history complete", "holds": True, "offending": 0, "seconds": 0.9, "detail": ""},
        ],
        "machine": {"cpu": "Synthetic CPU", "cores": truth.cores, "memory_bytes": 8 << 30, "system": "Linux"},
        "reset": "restore",
    }
    return Manifest.model_validate(described)
