"""The tables of a synthetic record: rates drawn from a truth, and the rows that follow from them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stallmark.record import histogram as hdr
from stallmark.record.writer import RecordWriter
from support.synthetic_brokerage import CARDS, Brokerage, Trading

if TYPE_CHECKING:
    from support.synthetic import Truth

BLOCK = 8192
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
        **_counters(["records", "full_page_images", "bytes", "buffers_full", "writes", "syncs", "write_ms", "sync_ms"]),
    ),
    "waits": pa.schema(
        [
            ("t", pa.float64()),
            ("second", pa.int32()),
            ("application", pa.string()),
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
    "checkpoints": _schema(**_CLOCK, **_counters(["timed", "requested", "write_ms", "sync_ms", "buffers_written"])),
    "host": _schema(
        user_s=pa.float64(),
        system_s=pa.float64(),
        iowait_s=pa.float64(),
        idle_s=pa.float64(),
        steal_s=pa.float64(),
        cores=pa.int32(),
        available_bytes=pa.int64(),
    ),
    "server_cpu": _schema(epoch=pa.string(), user_s=pa.float64(), system_s=pa.float64(), run_delay_s=pa.float64()),
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

CLIENT_CORES = ("command", 0.03), ("conductor", 0.01)


class Tables:
    """Per-second rates drawn from the truth, and the tables that follow from them."""

    def __init__(self, truth: "Truth", writer: RecordWriter):
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
        self.trading = Trading(truth.brokerage or Brokerage(), truth.seed)
        self.read_ms = truth.read_ms * np.clip(1 + 2 * truth.noise * slow, 0.2, None)

    def write(self, end: int) -> None:
        for tables in (self._drivers(end), self._collectors(end)):
            for name, rows in tables.items():
                if name not in self.truth.off:
                    self.writer.append(name, rows)

    def _drivers(self, end: int) -> dict[str, list[dict[str, Any]]]:
        truth = self.truth
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for second in range(end):
            committed = int(self.committed[second])
            users, think = int(self.users[second]), float(self.think_ms[second])
            usable = users * 1e6 * (1 - truth.overhead_share)
            think_us = int(think * 1000 * committed)
            latency_us = max(1.0, (usable - think_us) / max(committed, 1))
            busy_us = (
                self._trade(second, committed, latency_us)
                if truth.brokerage
                else self._transfer(second, committed, latency_us)
            )
            lag = int(truth.lag_ms * 1000 * committed)
            self.rows["users"] += [
                {
                    "second": second, "executor": executor, "running": users / 2, "busy_us": busy_us // 2,
                    "think_us": think_us // 2, "lag_us": lag // 2, "lag_max_us": int(truth.lag_ms * 4000),
                    "cpu_us": int(truth.executor_cpu * 1e6),
                }
                for executor in range(2)
            ]  # fmt: skip
            self.rows["client_cpu"] += [
                {"second": second, "process": process, "cpu_us": int(cores * 1e6)} for process, cores in CLIENT_CORES
            ]
        return self.rows

    def _trade(self, second: int, count: int, mean_us: float) -> int:
        """Returns the time that users spent, in µs."""
        rows = self.trading.second(second, count, mean_us)
        for name, some in rows.items():
            self.rows[name] += some
        return sum(row["service_us"] for row in rows["transactions"] if row["transaction"] in CARDS)

    def _transfer(self, second: int, committed: int, latency_us: float) -> int:
        """Returns the time that users spent, in µs."""
        values = self.rng.lognormal(math.log(latency_us) - 0.125, 0.5, committed)
        values = np.maximum(1, values * latency_us / values.mean()).astype(int) if committed else values
        failed, rolled_back = int(self.truth.failed_per_second), int(committed * self.truth.rolled_back_share)
        self.rows["transactions"] += [
            {
                "second": second, "transaction": "transfer", "committed": committed - rolled_back,
                "rolled_back": rolled_back, "failed": failed, "retries": failed * 3, "latency_us": int(values.sum()),
                "service_us": int(values.sum()),
            }
            | histogram("latency", values)
            | histogram("service", values)
        ]  # fmt: skip
        if failed:
            self.rows["errors"] += [
                {
                    "second": second, "transaction": "transfer", "error_class": "deadlock", "code": "40P01",
                    "attempts": failed * 4, "given_up": failed, "message": "deadlock detected",
                }
            ]  # fmt: skip
        return int(values.sum())

    def _collectors(self, end: int) -> dict[str, list[dict[str, Any]]]:
        truth = self.truth
        tables: dict[str, list[dict[str, Any]]] = {name: [] for name in COLLECTOR_TABLES}
        cost = []
        for second in range(end):
            t = second + truth.sample_offset_s
            clock = {"t": t, "server_time": 1.7e9 + t, "epoch": self._epoch(t)}
            total = self._totals(t)
            restart = self._restarted(t)
            told, since = self._totals(max(t - truth.report_delay_s, restart)), self._totals(restart)
            here = {name: told[name] - since[name] for name in told}
            tables["server_io"] += [clock | row for row in _server_io(here, truth)]
            tables["wal"].append(clock | _wal(here, truth))
            tables["database"] += [clock | row for row in _databases(here)]
            tables["checkpoints"].append(
                clock
                | {
                    "timed": int(t // truth.checkpoint_every_s),
                    "requested": 0,
                    "write_ms": t * 10,
                    "sync_ms": t,
                    "buffers_written": int(here["writes"]),
                }
            )
            tables["host"].append(
                {
                    "t": t, "user_s": t * truth.cores * truth.host_cpu * 0.8,
                    "system_s": t * truth.cores * truth.host_cpu * 0.2, "iowait_s": 0.0,
                    "idle_s": t * truth.cores * (1 - truth.host_cpu), "steal_s": 0.0, "cores": truth.cores,
                    "available_bytes": 4 << 30,
                }
            )  # fmt: skip
            tables["server_cpu"].append(
                {
                    "t": t, "epoch": "process 100", "user_s": t * truth.server_cores * 0.8,
                    "system_s": t * truth.server_cores * 0.2, "run_delay_s": t * truth.run_delay,
                }
            )  # fmt: skip
            tables["device"] += [{"t": t} | row for row in _devices(total, truth)]
            tables["waits"] += self._waits(second)
            cost += [
                {"t": t, "collector": name, "wall_us": 900, "cpu_us": 400}
                for name in COLLECTOR_TABLES
                if name not in truth.off
            ]
        return tables | {"collector_cost": cost}

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

    def _waits(self, second: int, application: str = "stallmark-user") -> list[dict[str, Any]]:
        events = {
            "io": "IO:DataFileRead", "wal": "LWLock:WALWrite", "lock": "Lock:transactionid",
            "client": "Client:ClientRead", "other": "LWLock:BufferContent", "cpu": "CPU",
        }  # fmt: skip
        shares = dict(self.truth.waits)
        shares["cpu"] = 1 - sum(shares.values())
        observed = self.rng.multinomial(10 * self.users[second], list(shares.values()))
        return [
            {
                "t": second + 1.0, "second": second, "application": application, "wait_class": name,
                "event": events[name], "samples": int(samples), "polls": 10,
            }
            for name, samples in zip(shares, observed, strict=True)
            if samples
        ]  # fmt: skip


def _server_io(total: dict[str, float], truth: "Truth") -> list[dict[str, Any]]:
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


def _wal(total: dict[str, float], truth: "Truth") -> dict[str, Any]:
    return {
        "records": int(total["transactions"] * 6), "full_page_images": int(total["writes"]),
        "bytes": int(total["transactions"] * 900), "buffers_full": 0, "writes": None, "syncs": None, "write_ms": None,
        "sync_ms": None,
    }  # fmt: skip


def _databases(total: dict[str, float]) -> list[dict[str, Any]]:
    idle = dict.fromkeys(["commits", "rollbacks", "blocks_read", "blocks_hit", "deadlocks", "temp_bytes"], 0)
    own = {"commits": int(total["transactions"]), "blocks_read": int(total["reads"]), "blocks_hit": int(total["hits"])}
    return [
        {"database": "stallmark", "own": True} | idle | own,
        {"database": "other", "own": False} | idle | {"blocks_read": int(total["foreign"])},
    ]


def _devices(total: dict[str, float], truth: "Truth") -> list[dict[str, Any]]:
    spindles = truth.device.get("spindles", 1)
    reads, writes, syncs = int(total["reads"]), int(total["writes"] + total["extends"]), int(total["syncs"])

    def row(entity: str, role: str, reads: int, writes: int, syncs: int, stall: float) -> dict[str, Any]:
        service = reads * truth.device.get("read_ms", truth.read_ms) + writes * truth.write_ms
        return {
            "entity": entity, "role": role, "emulated": truth.emulated, "epoch": "boot", "reads": reads,
            "read_bytes": reads * BLOCK, "read_ms": stall * truth.device_share, "writes": writes,
            "write_bytes": writes * BLOCK, "write_ms": writes * truth.write_ms * truth.device_share, "syncs": syncs,
            "sync_ms": syncs * truth.sync_ms * truth.device_share,
            "busy_ms": float(service if truth.emulated else service / spindles),
            "queue_ms": float(stall + writes * truth.write_ms),
        }  # fmt: skip

    if truth.emulated:
        return [row("data", "data", reads, writes, 0, total["read_stall_ms"]), row("wal", "wal", 0, syncs, syncs, 0.0)]
    name = truth.device["name"]
    return [row(f"data: {name}", "data+wal", reads, writes + syncs, syncs, total["read_stall_ms"])]


def histogram(name: str, values_us: Sequence[int] | np.ndarray) -> dict[str, Any]:
    """Return the columns that a record has of these µs."""
    return hdr.columns(name, hdr.encode(np.array(values_us, np.int64)))
