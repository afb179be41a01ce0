"""Summaries built by hand, for tests of the report: what the analysis would say, without running it."""

from dataclasses import replace
from typing import Any

import numpy as np

from stallmark.analysis.bottleneck import device_verdict
from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import ExperimentKind, Finding, caution, info, invalid
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.transactions import TransactionSummary
from stallmark.analysis.run import RunSeries, RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition
from stallmark.stats.inference import Correlation
from support.manifests import on
from support.steps import changed_step, step_of

MIB = 1 << 20
EMULATED = DeviceLabel("8 spindles, 4 ms", emulated=True)
VDA, NVME = DeviceLabel("vda", emulated=False), DeviceLabel("nvme0n1", emulated=False)
WAITS = {"io": 0.84, "wal": 0.06, "lock": 0.04, "cpu": 0.03, "client": 0.02, "other": 0.01}
DRIVER_BOUND = caution(DriverKind.EXECUTOR_CPU, machine=0, share=0.95)
FOREIGN_IO = invalid(ValidityKind.FOREIGN_IO, share=0.2, with_writes=False)
PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")


def io(reads: int = 48_113, read_ms: float | None = 31.4, source: str = "server", **more: Any) -> IoSummary:
    values = {
        "source": source, "seconds": 60.0, "reads": reads, "read_bytes": reads * 8192, "read_ms": read_ms,
        "read_interval_mean_ms": None if read_ms is None else read_ms * 1.07, "writes": 4_021,
        "write_bytes": 4_021 * 8192, "write_ms": 5.23, "write_interval_mean_ms": 7.91, "syncs": 311, "sync_ms": 2.17,
    }  # fmt: skip
    return IoSummary(**values | more)


def latencies(p50: float, **more: float | None) -> dict[str, float | None]:
    factors = dict(zip(PERCENTILES, (1.0, 1.72, 2.03, 2.81, 4.4, 7.9), strict=True))
    return {name: p50 * factor for name, factor in factors.items()} | more


def step(**more: Any) -> StepSummary:
    tps = more.get("tps", 412.3)
    users = more.get("users", 30)
    p50 = users / tps * 900
    transaction = TransactionSummary(
        "transfer", int(tps * 60), 0, 3, 17, tps, p50 * 1.11, latencies(p50), latencies(p50 * 0.97)
    )
    values = {
        "key": "01/steady",
        "run": "01-cap-5%",
        "variant": "cap 5%",
        "repeat": 1,
        "step": "steady",
        "users": users,
        "buffer_pool_bytes": 16 * MIB,
        "buffer_pool_share": 0.05,
        "device": EMULATED,
        "emulated_roles": ("data", "wal"),
        "measured_s": 60.0,
        "warm_up_s": 20.0,
        "tps": tps,
        "committed": int(tps * 60),
        "rolled_back": 0,
        "failed": 3,
        "retries": 17,
        "latency_mean_ms": p50 * 1.11,
        "latency_ms": latencies(p50),
        "service_ms": latencies(p50 * 0.97),
        "transactions": [transaction],
        "data_io": io(),
        "wal_io": io(reads=0, read_ms=None, writes=7_402, write_ms=0.61),
        "device_io": io(reads=48_097, read_ms=31.2, source="device"),
        "wal_device_io": io(reads=0, read_ms=None, source="device", writes=7_402, write_ms=0.58),
        "reads_per_transaction": 1.944,
        "hit_share": 0.8713,
        "read_stall_ms_per_s": 25_180.0,
        "wait_share": WAITS,
        "top_waits": [("IO:DataFileRead", 0.838), ("IO:WalSync", 0.041), ("Lock:transactionid", 0.037)],
        "cpu_busy_share": 0.183,
        "foreign_cpu_share": 0.004,
        "correlations": [
            Correlation("TPS", "read time", "ms per I/O", 58, -0.62, -0.76, -0.43),
            Correlation("TPS", "read stall", "stall-ms per second", 58, 0.11, -0.15, 0.36),
        ],
        "errors": [],
        "driver_bound": [],
        "device_verdict": device_verdict(WAITS, 0.914, None, 0.183, False),
        "invalid": [],
        "foreign_io_share": 0.001,
        "device_is_bottleneck": True,
        "device_busy_share": 0.914,
    }
    return step_of(**values | more)


def series(steps: list[StepSummary], seconds: int | None = None, seed: int = 1) -> RunSeries:
    rng = np.random.default_rng(seed)
    if seconds is None:
        seconds = int(sum(s.interval.warm_up_s + s.interval.measured_s for s in steps))
    owner = np.minimum(np.arange(seconds) * len(steps) // max(seconds, 1), len(steps) - 1)
    warm = np.concatenate([np.linspace(0.45, 1, 20), np.ones(max(seconds - 20, 0))])[:seconds]

    def line(values: list[float], spread: float) -> np.ndarray:
        return np.array(values)[owner] * rng.normal(1, spread, seconds).clip(0.3)

    tps = line([s.throughput.tps for s in steps], 0.05) * warm
    read_ms = line([(s.storage.data.read_ms if s.storage.data else None) or 0.0 for s in steps], 0.06) / warm**0.3
    reads = line([s.storage.reads_per_transaction or 0.0 for s in steps], 0.02) * tps
    return RunSeries(
        np.arange(seconds), tps, read_ms, reads * read_ms, np.array([s.users for s in steps], dtype=float)[owner]
    )


def manifest(steps: list[StepSummary], **more: Any) -> Manifest:
    plan, begin = [], 0.0
    for one in steps:
        plan.append(
            {
                "name": one.step, "users": one.users, "begin_s": begin, "measure_s": begin + one.interval.warm_up_s,
                "end_s": begin + one.interval.warm_up_s + one.interval.measured_s, "arrivals": "closed", "rate": None,
                "think_ms": 0,
            }
        )  # fmt: skip
        begin += one.interval.warm_up_s + one.interval.measured_s
    emulated = steps[0].emulated
    slow = {"spindles": 8, "read_ms": 4.0, "write_ms": 4.0, "sync_ms": 2.0, "mb_per_s": 150}
    real = {"name": "vda", "model": "Virtio block device", "rotational": False}
    pool = steps[0].buffer_pool_bytes
    described: dict[str, Any] = {
        "stallmark": "0.1.0",
        "started": "2025-11-21T10:02:11+00:00",
        "steps": plan,
        "workload": {"name": "bank", "version": 1, "scale": {"branches": 20}, "seed": 42},
        "server": {
            "product": "PostgreSQL",
            "version": "18.4",
            "settings": {
                "shared_buffers": f"{(pool or 0) // MIB}MB",
                "debug_io_direct": "data",
                "io_method": "worker",
                "max_wal_size": "4GB",
                "checkpoint_timeout": "30s",
                "synchronous_commit": "on",
            },
        },
        "variant": {"name": steps[0].variant, "buffer_pool": f"{pool} B" if pool else None},
        "memory": {"configured_bytes": pool, "reached_bytes": pool, "original_bytes": 128 * MIB},
        "database": {"bytes_before": 320 * MIB, "bytes_after": 323 * MIB},
        "cache_start": "prefilled",
        "devices": on(slow if emulated else real),
        "collectors": {
            "server_io": {
                "title": "Server I/O",
                "help": "pg_stat_io, all backends",
                "interval_s": 1.0,
                "unavailable": None,
            },
            "waits": {
                "title": "Waits of the users",
                "help": "pg_stat_activity at 10 Hz",
                "interval_s": 0.1,
                "unavailable": None,
            },
            "load_io": {
                "title": "I/O per load",
                "help": "pg_stat_get_backend_io",
                "interval_s": 1.0,
                "unavailable": "PostgreSQL 16 has no I/O counters per session; 18 has.",
            },
        },
        "machine": {
            "cpu": "AMD EPYC 7B13",
            "cores": 2,
            "memory_bytes": 8 << 30,
            "distribution": "Debian GNU/Linux 12",
            "system": "Linux 6.1.0",
        },
        "reset": "restore",
        "notes": ["A restore rewrites the array's cache and tier."],
    }
    return Manifest(**described | more)


def run(steps: list[StepSummary], **more: Any) -> RunSummary:
    first = steps[0]
    repeated = f", repeat {first.repeat}" if first.repeat > 1 else ""
    values = {
        "folder": first.run,
        "title": first.variant + repeated,
        "started": "2025-11-21T10:02:11+00:00",
        "manifest": manifest(steps),
        "incomplete_because": None,
        "steps": steps,
        "series": series(steps, seed=sum(map(ord, first.run))),
        "collectors_off": {"I/O per user": "PostgreSQL 16 has no I/O counters per session; 18 has."},
        "collector_cost_share": 0.0061,
        "growth_share": 0.0094,
        "conditions": [
            Condition(name="account balances sum to branch balances", holds=True, seconds=0.41),
            Condition(name="history equals commits", holds=True, seconds=0.93),
        ],
    }
    return RunSummary(**values | more)


def buffer_pool(repeats: int = 1, bare: bool = True) -> ExperimentSummary:
    """5, 20, 50 and 100 % of the data on an emulated device, and 20 % on the bare one."""
    points = [
        # share, TPS, reads per transaction, read ms, hits, host CPU, waits: io, wal, lock, cpu, client
        (0.05, 412.3, 2.104, 31.42, 0.871, 0.18, (0.86, 0.04, 0.03, 0.03, 0.03)),
        (0.2, 547.8, 1.611, 29.17, 0.902, 0.24, (0.80, 0.06, 0.05, 0.05, 0.03)),
        (0.5, 893.1, 0.907, 24.66, 0.944, 0.38, (0.66, 0.12, 0.09, 0.09, 0.03)),
        (1.0, 2_968.0, 0.013, 5.12, 0.9992, 0.86, (0.04, 0.36, 0.22, 0.33, 0.04)),
    ]
    runs = []
    for repeat in range(1, repeats + 1):
        for n, (share, tps, reads, read_ms, hits, cpu, waits) in enumerate(points, 1):
            tps *= 1 + 0.013 * (repeat - 1)
            runs.append(run([_pool_step(f"cap {share:.0%}", n, repeat, share, tps, reads, read_ms, hits, cpu, waits)]))
        if bare:
            one = _pool_step(
                "cap 20%, bare", 5, repeat, 0.2, 4_312.0, 1.608, 0.091, 0.902, 0.97, (0.06, 0.05, 0.19, 0.64, 0.05)
            )
            verdict = device_verdict(one.waits.share, None, None, 0.97, False)
            one = changed_step(one, device=VDA, emulated_roles=(), device_verdict=verdict, device_is_bottleneck=False)
            runs.append(run([one]))
    return experiment(
        runs,
        findings=[found("cap 5%"), info(ExperimentKind.STORAGE_LIMITS, steps=["cap 5%", "cap 20%", "cap 50%"])],
        cautions=[caution(CautionKind.EMULATED, steps=None), caution(CautionKind.SCATTER)],
    )


def user_ramp(emulated: bool = True) -> ExperimentSummary:
    ramp = {1: 45.2, 10: 331.0, 20: 522.0, 50: 611.0, 100: 615.0}
    steps = []
    for users, tps in ramp.items():
        one = step(
            key=f"ramp/{users}",
            run="01-ramp",
            variant="ramp",
            step=f"{users} users",
            users=users,
            tps=tps,
            data_io=io(read_ms=3.9 + users**1.3 / 5, reads=int(tps * 120)),
            warm_up_s=20.0,
        )
        steps.append(one if emulated else replace(one, emulated_roles=(), device=NVME))
    return experiment(
        [run(steps)],
        scenario="user-ramp",
        title="How many users does it carry?",
        answers="Where throughput stops growing with the users, and what they wait for from there on.",
        axis="users",
        findings=[found("ramp")],
        cautions=[caution(CautionKind.LOCAL_DRIVER, steps=None)],
    )


def devices(emulated: bool = False, transactions: int = 1) -> ExperimentSummary:
    """Three named devices, a step each."""
    runs = []
    for n, (name, tps) in enumerate({"HDD 7.2K": 210.0, "HDD 15K": 388.0, "SAS SSD": 1_904.0}.items(), 1):
        one = step(
            key=f"{n}",
            run=f"{n:02d}",
            variant=name,
            device=DeviceLabel(name, emulated),
            emulated_roles=("data", "wal") if emulated else (),
            tps=tps,
            data_io=io(read_ms=9e3 / tps),
        )
        kinds = [
            replace(one.transactions[0], name=f"transaction-type-{k}", latency_ms=latencies(12.0 * k * 400 / tps))
            for k in range(1, transactions + 1)
        ]
        runs.append(run([replace(one, transactions=kinds)]))
    return experiment(runs, scenario="devices", title="Which device?", axis="device", findings=[found("SAS SSD")])


def found(variant: str) -> Finding:
    """Return a finding that names a variant."""
    return info(ExperimentKind.ONE_VARIANT, variant=variant, per_s=412.0, primary=None)


def experiment(runs: list[RunSummary], **more: Any) -> ExperimentSummary:
    values = {
        "scenario": "buffer-pool",
        "title": "How much buffer pool does this load need?",
        "answers": "How transactions per second and read stalls change as the buffer pool grows from a few per cent "
        "of the data to all of it.",
        "emulated": any(s.emulated for r in runs for s in r.steps),
        "axis": "buffer_pool",
        "runs": runs,
        "findings": [],
        "cautions": [],
    }
    return ExperimentSummary(**values | more)


def _pool_step(variant, n, repeat, share, tps, reads, read_ms, hits, cpu, waits) -> StepSummary:
    total = int(tps * 60 * reads)
    folder = f"{repeat}{n}-{variant.replace(' ', '-')}"
    names = ("io", "wal", "lock", "cpu", "client")
    return step(
        key=f"{folder}/steady",
        run=folder,
        variant=variant,
        repeat=repeat,
        buffer_pool_share=share,
        buffer_pool_bytes=int(320 * MIB * share),
        tps=tps,
        reads_per_transaction=reads,
        hit_share=hits,
        cpu_busy_share=cpu,
        foreign_cpu_share=None,
        data_io=io(reads=total, read_ms=read_ms),
        device_io=io(reads=int(total * 0.9987), read_ms=read_ms * 0.992, source="device"),
        wait_share=dict(zip(names, waits, strict=True)) | {"other": max(1 - sum(waits), 0.0)},
        top_waits=[("IO:DataFileRead", waits[0] * 0.99), ("IO:WalSync", waits[1] * 0.7)],
        read_stall_ms_per_s=tps * reads * read_ms,
    )
