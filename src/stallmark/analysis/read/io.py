"""The counters of the I/O of one run: of the files of the server, and of the devices below them.

CPU time of a run's own processes: the server's, and on the same machine the client's.

Kernel threads that serve their I/O are in neither.

The I/Os of data files of a mail store, and how many mailboxes make as many.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallmark.analysis.read.counters import Counters, Delta, read_counters
from stallmark.analysis.read.server_io import ServerIo, read_untimed_log, untimed_spans
from stallmark.analysis.read.server_summary import SERVER, WAL_VIEW, IoSummary, Names, delta_over
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval, plus
from stallmark.record.devices import is_data_emulated
from stallmark.record.manifest.workload import Transaction
from stallmark.record.reader import Record
from stallmark.stats.thresholds import MAILBOX_IOPS, REPORT_DELAY_S

WAL_PAGE = 8192
_WAL = ["writes", "bytes", "write_ms", "syncs", "sync_ms"]
_DEVICE = ["reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "syncs", "sync_ms"]
_DEVICE += ["busy_ms", "late", "flash_reads", "flash_read_ms", "cache_evictions", "tier_bytes_up", "tier_bytes_down"]
_DEVICE += ["raw_reads", "raw_read_bytes", "raw_writes", "raw_write_bytes"]


@dataclass(frozen=True)
class Io:
    """The counters of one run. A counter that was not measured is None."""

    data: Counters | None
    temp: Counters | None
    wal: Counters | None
    wal_names: Names
    emulated: bool  # the data device
    data_device: Counters | None
    wal_device: Counters | None
    own_database: Counters | None
    other_databases: Counters | None
    host: Counters | None
    checkpoints: Counters | None
    foreign: Counters | None = None  # files of other databases on the same server
    raw_bytes: np.ndarray | None = None  # read by raw loads beside the server, per second; NaN where not known
    server_cpu: Counters | None = None  # the server's processes
    cpu_pressure: Counters | None = None  # time in which anything waited for a CPU
    kernel_cpu: Counters | None = None  # the kernel's threads on the server's machine
    client_cpu: np.ndarray | None = None  # µs of command and conductor on this machine, per second
    untimed: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Gaps between samples, by "data" and "wal", in which the server did not time its I/O: begin and end of each. The
    totals are unknown there."""
    server: ServerIo = field(default_factory=ServerIo)


def read_checkpoints(record: Record) -> Counters | None:
    return read_counters(record, "checkpoints", ["timed", "requested", "done"]).get("")


def _read_log_view(record: Record, delay_s: float) -> Counters | None:
    """Return the counters of the log's own view, with the bytes written in place of the length of the records."""
    counters = read_counters(record, "wal", _WAL, delay_s=delay_s).get("")
    if counters is None or "writes" not in counters.totals:
        return None
    totals = counters.totals
    # Each flush writes the page again in which the last one ended, and fills up that in which it ends itself. With
    # wal_sync_method = open_datasync no sync is counted: there each write is one.
    syncs = totals.get("syncs")
    flushes = totals["writes"] if syncs is None or not syncs.any() else syncs
    if "bytes" in totals:
        totals["bytes"] = totals["bytes"] + WAL_PAGE * flushes
    return counters


def read_io(record: Record, server_io: ServerIo, checkpoints: Counters | None = None) -> Io:
    """Return the counters beside those of the server's I/O and of checkpoints, which were read before. Of the I/O they
    mark where its times stood still."""
    delay = REPORT_DELAY_S.get(record.manifest.server.product, 0.0)
    server = server_io.kinds
    wal, wal_names = server.get("wal"), SERVER
    # Before PostgreSQL 18 only its own view counts the log.
    if wal is None or "writes" not in wal.totals:
        wal, wal_names = _read_log_view(record, delay), WAL_VIEW
    devices = read_counters(record, "device", _DEVICE, group="role", only=["data", "data+wal", "wal"])
    off = server_io.untimed if wal_names is SERVER else {**server_io.untimed, "wal": read_untimed_log(record)}
    untimed = {}
    for kind, counters in (("data", server.get("data")), ("temp", server.get("temp")), ("wal", wal)):
        if counters is not None and len(off.get(kind, ())):
            spans = untimed_spans(counters, off[kind], delay)
            counters.breaks[spans] = True
            untimed[kind] = np.column_stack([counters.t[:-1][spans], counters.t[1:][spans]])
    blocks = ["blocks_read", "blocks_hit"]
    has_raw = any(load.kind == "raw" for load in record.loads)
    databases = read_counters(record, "database", blocks, group="own", entity="database", delay_s=delay)
    return Io(
        data=server.get("data"),
        temp=server.get("temp"),
        wal=wal,
        wal_names=wal_names,
        emulated=is_data_emulated(record.manifest),
        data_device=devices.get("data") or devices.get("data+wal"),
        wal_device=devices.get("wal"),
        own_database=databases.get("true"),
        other_databases=databases.get("false"),
        host=read_counters(record, "host", ["user_s", "system_s", "iowait_s", "idle_s", "steal_s"]).get(""),
        checkpoints=checkpoints,
        foreign=server.get("foreign"),
        raw_bytes=_raw_bytes(record) if has_raw else None,
        server_cpu=read_counters(record, "server_cpu", ["user_s", "system_s", "run_delay_s"]).get(""),
        cpu_pressure=read_counters(record, "host", ["cpu_stalled_s"]).get(""),
        kernel_cpu=read_counters(record, "kernel_cpu", ["system_s"]).get(""),
        # The programs of raw loads are in no table.
        client_cpu=None if has_raw else _sums_per_second(record, "client_cpu", "cpu_us"),
        untimed=untimed,
        server=server_io,
    )


def _raw_bytes(record: Record) -> np.ndarray:
    """Return the bytes that raw loads read per second; NaN if a load has a folder of its own, which may be on another
    device."""
    apart = any(load.raw and load.raw.folder for load in record.loads)
    read = _sums_per_second(record, "raw_io", "read_bytes")
    return np.full(len(read), np.nan) if apart else read


def _sums_per_second(record: Record, table: str, column: str) -> np.ndarray:
    total = np.zeros(0)
    for batch in record.batches(table, ["second", column]):
        total = plus(total, batch.column("second").to_numpy(), batch.column(column).to_numpy())
    return total


@dataclass(frozen=True)
class HostCpu:
    """The CPUs of the server's machine over an interval, in cores."""

    cores: float
    idle: float  # or waiting for I/O
    busy: float
    """Neither idle nor waiting for I/O. Stolen time counts as busy: it was asked for and not given."""
    kernel: float

    @property
    def busy_share(self) -> float:
        return self.busy / self.cores


def host_cpu(host: Delta | None) -> HostCpu | None:
    """Return the use of the CPUs from the increments of their times, or None if unknown."""
    if host is None or host.broken or not (total_s := sum(host.values.values())):
        return None
    idle_s = host.values.get("idle_s", 0.0) + host.values.get("iowait_s", 0.0)
    times_s = total_s, idle_s, total_s - idle_s, host.values.get("system_s", 0.0)
    return HostCpu(*(time_s / host.seconds for time_s in times_s))


THIS_MACHINE = 0
"""The load machine that is the one Stallmark ran on."""


@dataclass(frozen=True)
class OwnCpu:
    """CPU seconds in a part of an interval."""

    seconds: float  # length of the part
    server_user_s: float
    server_system_s: float
    server_run_delay_s: float | None  # runnable, waiting for a CPU
    client_s: float | None  # 0 if the server is on another machine, None if unknown

    @property
    def cpu_s(self) -> float | None:
        """Return the CPU seconds of server and client on the server's machine."""
        return None if self.client_s is None else self.server_user_s + self.server_system_s + self.client_s

    @property
    def cores(self) -> float | None:
        """Return the mean number of CPUs that the run kept busy."""
        return None if self.cpu_s is None else self.cpu_s / self.seconds


def cpu_of_run(load: Load, io: Io, interval: Interval) -> OwnCpu | None:
    """Return the run's own CPU time in an interval, or None if that of the server's processes is not known."""
    server = delta_over(io.server_cpu, interval)
    if server is None or server.broken:
        return None
    client = _client_cores(load, io, interval) if io.host is not None else 0.0
    return OwnCpu(
        server.seconds,
        server["user_s"],
        server["system_s"],
        server.values.get("run_delay_s"),
        None if client is None else client * server.seconds,
    )


def _client_cores(load: Load, io: Io, interval: Interval) -> float | None:
    """Return the cores that the client kept busy on this machine, or None if they are not known: a load machine may be
    another name of this one."""
    if io.client_cpu is None or any(load.executors.keys() - {THIS_MACHINE}):
        return None
    spent = interval.select(io.client_cpu)  # the last second may be missing
    executors = float(interval.select(load.user_sum("cpu_us")).mean())
    return (executors + float(spent.mean())) / 1e6 if len(spent) else None


def mailboxes(iops: float) -> int:
    """Return the number of mailboxes that do `iops` I/Os per second."""
    return math.floor(iops / MAILBOX_IOPS)


@dataclass(frozen=True)
class MailIo:
    """Reads and writes of data files per second, by all the server's processes, without the I/Os of timers
    (`apart_iops`, None if the server cannot separate sessions, which includes the timers' I/Os)."""

    iops: float
    mailboxes: int  # number of mailboxes that do that many I/Os
    read_ms: float | None
    apart_iops: float | None


def timer_iops(load: Load, transactions: Sequence[Transaction], interval: Interval) -> float | None:
    """Return the I/Os per second of transactions that timers start, those not sampled estimated from the sampled ones,
    or None without any."""
    per_second = None
    for name in (transaction.name for transaction in transactions if transaction.source == "timer"):
        own = load.own_io.get(name)
        if own is None or not (sampled := interval.select(own["sampled"]).sum()):
            continue
        ended = interval.select(load.ended_per_second(name)).sum()
        per_second = (per_second or 0.0) + float(
            interval.select(own["reads"]).sum() * ended / sampled
        ) / interval.seconds
    return per_second


def summarise_mail_io(data: IoSummary | None, apart: float | None) -> MailIo | None:
    """Return the summary of a step in which mail ran alone, or None if its I/Os were not counted. `apart` is
    `timer_iops`."""
    if not data or not data.seconds:
        return None
    iops = max(0.0, data.iops - (apart or 0.0))
    return MailIo(iops, mailboxes(iops), data.read_ms, apart)
