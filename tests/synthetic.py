"""Run records of known truth, written by the real RecordWriter, for tests of the analysis and of the report.

    from synthetic import Truth, make_experiment, make_run

    folders = make_experiment(tmp_path)                         # 4 buffer pools and one bare variant
    folders = make_experiment(tmp_path, kind="user-ramp")       # 1, 10, 20, 50, 100 users in one run
    folders = make_experiment(tmp_path, repeats=3)
    folder = make_run(tmp_path / "run", Truth(tps=300, epoch_change_at=20))

Everything a record says follows from a `Truth`: in a closed loop the latency is users / TPS − think time, so
Little's law holds in every second, and counters are the integral of the rates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hdrh.histogram import HdrHistogram

from stallmark.driver.record import RecordWriter

MIB = 1 << 20
BLOCK = 8192
EMULATED = {"spindles": 8, "read_ms": 8.0, "write_ms": 4.0, "sync_ms": 2.0, "mb_per_s": 200}
_IO = [f"{verb}{what}" for verb in ("read", "write", "extend") for what in ("s", "_bytes", "_stall_ms")]


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema([("t", pa.float64()), *types.items()])


def _counters(names: Sequence[str]) -> dict[str, pa.DataType]:
    return {name: pa.float64() if name.endswith("_ms") else pa.int64() for name in names}


_CLOCK = {"server_time": pa.float64(), "epoch": pa.string()}
COLLECTOR_TABLES: dict[str, pa.Schema] = {
    "server_io": _schema(
        **_CLOCK,
        entity=pa.string(),
        kind=pa.string(),
        **_counters([*_IO, "syncs", "sync_stall_ms", "hits", "evictions"]),
    ),
    "wal": _schema(
        **_CLOCK,
        **_counters(
            ["records", "full_page_images", "bytes", "buffers_full", "writes", "syncs", "write_ms", "sync_ms"]
        ),
    ),
    "waits": pa.schema(
        [
            ("t", pa.float64()),
            ("second", pa.int32()),
            ("wait_class", pa.string()),
            ("event", pa.string()),
            ("samples", pa.int32()),
            ("polls", pa.int32()),
        ]
    ),
    "database": _schema(
        **_CLOCK,
        database=pa.string(),
        own=pa.bool_(),
        **_counters(["commits", "rollbacks", "blocks_read", "blocks_hit", "deadlocks", "temp_bytes"]),
    ),
    "checkpoints": _schema(
        **_CLOCK, **_counters(["timed", "requested", "write_ms", "sync_ms", "buffers_written"])
    ),
    "host": _schema(
        user_s=pa.float64(),
        system_s=pa.float64(),
        iowait_s=pa.float64(),
        idle_s=pa.float64(),
        steal_s=pa.float64(),
        cores=pa.int32(),
        available_bytes=pa.int64(),
    ),
    "device": _schema(
        entity=pa.string(),
        role=pa.string(),
        emulated=pa.bool_(),
        epoch=pa.string(),
        **_counters(
            [
                *("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms"),
                *("syncs", "sync_ms", "busy_ms", "queue_ms"),
            ]
        ),
    ),
}


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
    """What is true of one run. Shares are of the users' time; the rest of the time is CPU."""

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
    lag_ms: float = 0.05  # per transaction
    foreign_reads_per_second: float = 0.5
    failed_per_second: float = 0.0
    pool_bytes: int = 64 * MIB
    database_bytes: int = 320 * MIB
    growth_share: float = 0.01
    variant: str = "cap 64 MiB"
    repeat: int = 1
    sequence: int = 1
    device: dict[str, Any] = field(default_factory=lambda: dict(EMULATED))
    emulated: bool = True
    sample_offset_s: float = 0.3  # samples never fall on whole seconds
    epoch_change_at: float | None = None  # s since run start: the server's counters begin again
    falls_at: float | None = None  # the same, unannounced: the epoch stays
    cut_at: float | None = None  # the tool was killed: streams without end, status running
    off: tuple[str, ...] = ()  # collectors that measured nothing
    seed: int = 1

    @property
    def plan(self) -> tuple[Step, ...]:
        return self.steps or (Step(self.users, self.tps, self.think_ms, "steady"),)

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


def make_run(folder: Path, truth: Truth, scenario: str = "buffer-pool") -> Path:
    """Write one record into the new `folder` and return it."""
    writer = RecordWriter(folder, _manifest(truth, scenario))
    for name, schema in COLLECTOR_TABLES.items():
        if name not in truth.off:
            writer.add_table(name, schema)
    end = truth.seconds if truth.cut_at is None else min(truth.seconds, math.ceil(truth.cut_at))
    _Run(truth, writer).write(end)
    if truth.cut_at is None:
        writer.close()
    else:
        for sink, _ in writer._streams.values():
            sink.close()  # as after SIGKILL: no end-of-stream mark, no Parquet
    return folder


def _manifest(truth: Truth, scenario: str) -> dict[str, Any]:
    steps = []
    for number, step in enumerate(truth.plan):
        begin = number * truth.step_s
        steps.append(
            {
                "name": step.name,
                "users": step.users,
                "begin_s": begin,
                "measure_s": begin + truth.warm_up_s,
                "end_s": begin + truth.step_s,
                "arrivals": truth.arrivals,
                "rate": None if truth.arrivals == "closed" else step.tps,
                "think_ms": step.think_ms,
            }
        )
    titles = {
        "server_io": "Server I/O",
        "wal": "Write-ahead log",
        "waits": "Waits of the users",
        "database": "Databases",
        "checkpoints": "Checkpoints",
        "host": "Host CPU",
        "device": "Block device",
    }
    return {
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
            "original": "128MB",
        },
        "database": {
            "bytes_before": truth.database_bytes,
            "bytes_after": int(truth.database_bytes * (1 + truth.growth_share)),
        },
        "cache_start": "cold",
        "device": {"emulated": truth.emulated, "data": truth.device, "wal": truth.device},
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
        "machine": {"cpu": "Synthetic CPU", "cores": truth.cores, "memory_bytes": 8 << 30, "os": "Linux"},
        "reset": "restore",
        "notes": [],
    }


class _Run:
    """Per-second rates drawn from the truth, and the tables that follow from them."""

    def __init__(self, truth: Truth, writer: RecordWriter):
        self.truth, self.writer = truth, writer
        rng = np.random.default_rng(truth.seed)
        n = truth.seconds
        steps = [truth.plan[min(int(s // truth.step_s), len(truth.plan) - 1)] for s in range(n)]
        slow = rng.normal(size=n)
        own = rng.normal(size=n)
        self.rng = rng
        self.users = np.array([step.users for step in steps])
        self.think_ms = np.array([step.think_ms for step in steps])
        mixed = truth.coupling * -slow + (1 - abs(truth.coupling)) * own
        tps = np.array([step.tps for step in steps]) * np.clip(1 + truth.noise * mixed, 0.2, None)
        self.committed = np.rint(tps).astype(int)
        self.read_ms = truth.read_ms * np.clip(1 + 2 * truth.noise * slow, 0.2, None)

    def write(self, end: int) -> None:
        self._drivers(end)
        for name, rows in self._collectors(end).items():
            if name in self.truth.off:
                continue
            for start in range(0, len(rows), 200):
                self.writer.append(name, rows[start : start + 200])

    def _drivers(self, end: int) -> None:
        truth = self.truth
        for second in range(end):
            committed = int(self.committed[second])
            users, think = int(self.users[second]), float(self.think_ms[second])
            usable = users * 1e6 * (1 - truth.overhead_share)
            think_us = int(think * 1000 * committed)
            latency_us = max(1.0, (usable - think_us) / max(committed, 1))
            values = self.rng.lognormal(math.log(latency_us) - 0.125, 0.5, committed)
            values = np.maximum(1, values * latency_us / values.mean()).astype(int) if committed else values
            failed = int(truth.failed_per_second)
            self.writer.append(
                "transactions",
                [
                    {
                        "second": second,
                        "transaction": "transfer",
                        "committed": committed,
                        "rolled_back": 0,
                        "failed": failed,
                        "retries": failed * 3,
                        "latency_us": int(values.sum()),
                        "service_us": int(values.sum()),
                        "latency": histogram(values),
                        "service": histogram(values),
                    }
                ],
            )
            lag = int(truth.lag_ms * 1000 * committed)
            self.writer.append(
                "users",
                [
                    {
                        "second": second,
                        "executor": executor,
                        "running": users / 2,
                        "busy_us": int(values.sum()) // 2,
                        "think_us": think_us // 2,
                        "lag_us": lag // 2,
                        "lag_max_us": int(truth.lag_ms * 4000),
                        "cpu_us": int(truth.executor_cpu * 1e6),
                    }
                    for executor in range(2)
                ],
            )
            if failed:
                self.writer.append(
                    "errors",
                    [
                        {
                            "second": second,
                            "transaction": "transfer",
                            "error_class": "deadlock",
                            "code": "40P01",
                            "attempts": failed * 4,
                            "given_up": failed,
                            "message": "deadlock detected",
                        }
                    ],
                )

    def _collectors(self, end: int) -> dict[str, list[dict[str, Any]]]:
        truth = self.truth
        tables: dict[str, list[dict[str, Any]]] = {name: [] for name in COLLECTOR_TABLES}
        cost = []
        for second in range(end):
            t = second + truth.sample_offset_s
            clock = {"t": t, "server_time": 1.7e9 + t, "epoch": self._epoch(t)}
            total, since = self._totals(t), self._totals(self._restarted(t))
            here = {name: total[name] - since[name] for name in total}
            tables["server_io"] += [clock | row for row in _server_io(here, truth)]
            tables["wal"].append(clock | _wal(here, truth))
            tables["database"] += [clock | row for row in _databases(here)]
            tables["checkpoints"].append(
                clock
                | {
                    "timed": int(t // 30),
                    "requested": 0,
                    "write_ms": t * 10,
                    "sync_ms": t,
                    "buffers_written": int(here["writes"]),
                }
            )
            tables["host"].append(
                {
                    "t": t,
                    "user_s": t * truth.cores * truth.host_cpu * 0.8,
                    "system_s": t * truth.cores * truth.host_cpu * 0.2,
                    "iowait_s": 0.0,
                    "idle_s": t * truth.cores * (1 - truth.host_cpu),
                    "steal_s": 0.0,
                    "cores": truth.cores,
                    "available_bytes": 4 << 30,
                }
            )
            tables["device"] += [{"t": t} | row for row in _devices(total, truth)]
            tables["waits"] += self._waits(second)
            cost += [
                {"t": t, "collector": name, "wall_us": 900, "cpu_us": 400}
                for name in COLLECTOR_TABLES
                if name not in truth.off
            ]
        self.writer.append("collector_cost", cost)
        return tables

    def _restarted(self, t: float) -> float:
        """When the server's counters last were zero."""
        starts = self.truth.epoch_change_at, self.truth.falls_at
        return max((at for at in starts if at is not None and at <= t), default=0.0)

    def _epoch(self, t: float) -> str:
        change = self.truth.epoch_change_at
        return "second start" if change is not None and t >= change else "first start"

    def _totals(self, t: float) -> dict[str, float]:
        """Integrals of all rates from the run's start to `t`."""
        truth = self.truth

        def integral(rate: np.ndarray) -> float:
            whole = min(int(t), len(rate))
            part = (t - whole) * rate[whole] if whole < len(rate) else 0.0
            return float(rate[:whole].sum() + part)

        tx = self.committed.astype(float)
        reads = tx * truth.reads_per_transaction
        return {
            "transactions": integral(tx),
            "reads": integral(reads),
            "read_stall_ms": integral(reads * self.read_ms),
            "writes": integral(tx * truth.writes_per_transaction),
            "extends": truth.extends_per_second * t,
            "syncs": integral(tx * truth.syncs_per_transaction),
            "hits": integral(tx * (truth.requests_per_transaction - truth.reads_per_transaction)),
            "foreign": truth.foreign_reads_per_second * t,
        }

    def _waits(self, second: int) -> list[dict[str, Any]]:
        events = {
            "io": "IO:DataFileRead",
            "wal": "LWLock:WALWrite",
            "lock": "Lock:transactionid",
            "client": "Client:ClientRead",
            "other": "LWLock:BufferContent",
            "cpu": "CPU",
        }
        shares = dict(self.truth.waits)
        shares["cpu"] = 1 - sum(shares.values())
        observed = self.rng.multinomial(10 * self.users[second], list(shares.values()))
        return [
            {
                "t": second + 1.0,
                "second": second,
                "wait_class": name,
                "event": events[name],
                "samples": int(samples),
                "polls": 10,
            }
            for name, samples in zip(shares, observed, strict=True)
            if samples
        ]


def _server_io(total: dict[str, float], truth: Truth) -> list[dict[str, Any]]:
    """Rows of client backends, I/O workers, checkpointer and WAL; the sums are those of the truth."""

    def row(entity: str, kind: str, **counters: float) -> dict[str, Any]:
        values = dict.fromkeys([*_IO, "syncs", "sync_stall_ms", "hits", "evictions"], 0) | counters
        typed = {name: float(v) if name.endswith("_ms") else int(v) for name, v in values.items()}
        return {"entity": entity, "kind": kind} | typed

    reads, writes, extends = int(total["reads"]), int(total["writes"]), int(total["extends"])
    by_worker = reads // 5
    stall = total["read_stall_ms"]
    return [
        row(
            "client backend/relation/normal",
            "data",
            reads=reads - by_worker,
            read_bytes=(reads - by_worker) * BLOCK,
            read_stall_ms=stall * 0.8,
            extends=extends,
            extend_bytes=extends * BLOCK,
            extend_stall_ms=extends * truth.write_ms,
            hits=total["hits"],
            evictions=reads,
        ),
        row(
            "io worker/relation/normal",
            "data",
            reads=by_worker,
            read_bytes=by_worker * BLOCK,
            read_stall_ms=stall * 0.2,
        ),
        row(
            "checkpointer/relation/normal",
            "data",
            writes=writes,
            write_bytes=writes * BLOCK,
            write_stall_ms=writes * truth.write_ms,
        ),
        row(
            "client backend/wal/normal",
            "wal",
            writes=total["syncs"],
            write_bytes=int(total["syncs"]) * BLOCK,
            write_stall_ms=total["syncs"] * 0.1,
            syncs=total["syncs"],
            sync_stall_ms=int(total["syncs"]) * truth.sync_ms,
        ),
    ]


def _wal(total: dict[str, float], truth: Truth) -> dict[str, Any]:
    return {
        "records": int(total["transactions"] * 6),
        "full_page_images": int(total["writes"]),
        "bytes": int(total["transactions"] * 900),
        "buffers_full": 0,
        "writes": None,
        "syncs": None,
        "write_ms": None,
        "sync_ms": None,
    }


def _databases(total: dict[str, float]) -> list[dict[str, Any]]:
    idle = dict.fromkeys(["commits", "rollbacks", "blocks_read", "blocks_hit", "deadlocks", "temp_bytes"], 0)
    own = {
        "commits": int(total["transactions"]),
        "blocks_read": int(total["reads"]),
        "blocks_hit": int(total["hits"]),
    }
    return [
        {"database": "stallmark", "own": True} | idle | own,
        {"database": "other", "own": False} | idle | {"blocks_read": int(total["foreign"])},
    ]


def _devices(total: dict[str, float], truth: Truth) -> list[dict[str, Any]]:
    spindles = truth.device.get("spindles", 1)
    reads, writes, syncs = int(total["reads"]), int(total["writes"] + total["extends"]), int(total["syncs"])

    def row(entity: str, role: str, reads: int, writes: int, syncs: int, stall: float) -> dict[str, Any]:
        service = reads * truth.device.get("read_ms", truth.read_ms) + writes * truth.write_ms
        return {
            "entity": entity,
            "role": role,
            "emulated": truth.emulated,
            "epoch": "boot",
            "reads": reads,
            "read_bytes": reads * BLOCK,
            "read_ms": stall,
            "writes": writes,
            "write_bytes": writes * BLOCK,
            "write_ms": writes * truth.write_ms,
            "syncs": syncs,
            "sync_ms": syncs * truth.sync_ms,
            "busy_ms": float(service if truth.emulated else service / spindles),
            "queue_ms": float(stall + writes * truth.write_ms),
        }

    if truth.emulated:
        return [
            row("data", "data", reads, writes, 0, total["read_stall_ms"]),
            row("wal", "wal", 0, syncs, syncs, 0.0),
        ]
    name = truth.device["name"]
    return [row(f"data: {name}", "data+wal", reads, writes + syncs, syncs, total["read_stall_ms"])]


def histogram(values_us: Sequence[int] | np.ndarray) -> bytes:
    """Encode µs as a record does."""
    result = HdrHistogram(1, 3_600_000_000, 3, b64_wrap=False)
    for value in values_us:
        result.record_value(int(value))
    return result.encode()
