"""The summary of one step of one run: every quantity over its measured interval."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.attribution import accounted_cores, divide_data_file_io, divide_io
from stallmark.analysis.bottleneck import IS_BOTTLENECK, DeviceKind, StepFigures, analyse_bottleneck, device_verdict
from stallmark.analysis.driver_bound import driver_bound
from stallmark.analysis.finding import Finding, info
from stallmark.analysis.probe_comparison import compare_step_with_probe
from stallmark.analysis.read.active_set import active_set, flash_use
from stallmark.analysis.read.counters import Delta
from stallmark.analysis.read.io import Io, cpu_of_run, host_cpu, summarise_mail_io, timer_iops
from stallmark.analysis.read.io_latency import summarise_io_latency
from stallmark.analysis.read.load_io import IoByLoad
from stallmark.analysis.read.queries import StreamsSummary
from stallmark.analysis.read.server_io import summarise_processes
from stallmark.analysis.read.server_state import ServerState
from stallmark.analysis.read.server_summary import (
    DEVICE,
    SERVER,
    IoSummary,
    delta_over,
    per_second_mean,
    summarise_io,
    summed,
)
from stallmark.analysis.read.server_views import ServerViews, restart_findings, transaction_reads, volume_summaries
from stallmark.analysis.read.statements import executed_statements
from stallmark.analysis.read.throughput import Latencies, Load
from stallmark.analysis.read.times import Interval, ServerClock, Span
from stallmark.analysis.read.transactions import TOTALS, in_order, mean_ms, summarise_maintenance, transaction_summaries
from stallmark.analysis.read.waits import BlockedPair, SampledWaits, WaitParts
from stallmark.analysis.service_level import judge_reads
from stallmark.analysis.steady import Rate, Steadiness, judge, missing_checkpoint
from stallmark.analysis.step_summary import (
    Bottleneck,
    Latency,
    NoteKind,
    ServerFigures,
    StepCause,
    StepInterval,
    StepSummary,
    StepValidity,
    StorageFigures,
    Throughput,
    WaitFigures,
)
from stallmark.analysis.validity import (
    by_hand,
    foreign_cpu_share,
    foreign_share,
    invalid_findings,
    server_lost,
    storage_errors,
)
from stallmark.analysis.validity_gates import Validity
from stallmark.record.devices import emulated_roles, storage_label
from stallmark.record.manifest.storage import Device, Role
from stallmark.record.reader import Record
from stallmark.stats.inference import Correlation, correlate_changes
from stallmark.stats.thresholds import LATE_FLOOR_PER_S


@dataclass(frozen=True)
class Server:
    """The server as it was read over the measured intervals of a run and of all its loads."""

    io: Io
    lines: Mapping[str, np.ndarray | None]
    views: ServerViews
    blocked: Mapping[Span, list[BlockedPair]]
    clocks: Mapping[Span, Finding]
    gaps: Mapping[Span, list[Finding]]
    io_by_load: Mapping[Span, IoByLoad | None]
    clock: ServerClock | None


def summarise_step(
    record: Record,
    key: str,
    interval: Interval,
    server: Server,
    waits: SampledWaits | None,
    wait_parts: WaitParts | None,
    validity: Validity,
    streams: StreamsSummary | None,
) -> StepSummary:
    """Return the summary of a step. All figures are over `interval`: the measured one, or the whole checkpoint cycles
    in it."""
    manifest, io, views = record.manifest, server.io, server.views
    workload, load, errors = validity.workload, validity.load, validity.errors
    step = manifest.steps[interval.index]
    arrivals = step.arrivals
    transactions = transaction_summaries(workload, load, errors, interval)
    latency, service = _merged(load.latency, interval), _merged(load.service, interval)
    total = {name: int(interval.select(load.all(name)).sum()) for name in TOTALS}
    at_the_end = manifest.left_waiting.arrivals + manifest.unheard.unfinished
    never = total["failed"] + (at_the_end if step is manifest.steps[-1] else 0)
    data = summarise_io(io.data, interval, SERVER, "server")
    wal = summarise_io(io.wal, interval, io.wal_names, "server")
    if waits and load.attended:
        waits = waits.without_idle(float(interval.select(load.sessions()).mean()))
    wait_share = waits.shares() if waits else None
    state = views.state.summary(interval)
    host, own = host_cpu(delta_over(io.host, interval)), cpu_of_run(load, io, interval)
    cpu, own_cores = host.busy_share if host else None, own.cores if own else None
    # Beside another load it is not known whose CPU time that of sessions is.
    if own_cores is None and waits and not step.beside:
        own_cores = accounted_cores(load, waits.sessions("cpu"), interval)
    cpu_own = own_cores / host.cores if host and own_cores is not None else None
    if host is None and state:
        cpu, cpu_own = state.cpu_busy_share, state.cpu_process_share
    devices: dict[Role, Delta | None] = {
        "data": delta_over(io.data_device, interval),
        "wal": delta_over(io.wal_device, interval),
    }
    spindles = {role: _spindles(delta, manifest.devices.for_role(role)) for role, delta in devices.items()}
    busy, wal_busy = (_device_busy(delta, spindles[role]) for role, delta in devices.items())
    seen = wait_parts.mean_sessions(interval)[0] if wait_parts else {}
    # Others than the sessions seen use the server's CPUs as well: another load, streams of queries, maintenance.
    alone = not (step.beside or step.streams or manifest.variant.during)
    divided = divide_io(io, seen, own, interval, alone)
    lost = list(server_lost(load, errors, io.server.starts, step.begin_s, interval))
    verdict = (
        None
        if lost
        else device_verdict(
            wait_share,
            data_busy=busy if spindles["data"] else None,
            wal_busy=wal_busy if spindles["wal"] else None,
            cpu_busy=cpu,
            wal_separate=io.wal_device is not None,
            divided=(divide_data_file_io(divided, seen), divided["log"]),
            cpu_own=cpu_own,
            closed=arrivals == "closed",
        )
    )
    foreign_cpu = foreign_cpu_share(manifest, load, io, state, interval)
    late = [_late(device) for device in devices.values()]
    unheard = manifest.unheard.unfinished + manifest.unheard.executors if step is manifest.steps[-1] else 0
    bound = list(driver_bound(load, interval, arrivals, answered=not (lost or unheard)))
    pool = manifest.memory.reached_bytes
    size = manifest.database.bytes_before
    primary = next((transaction.tps for transaction in transactions if transaction.name == workload.primary), 0.0)
    gates = validity.judge(interval, transactions, wait_share)
    clock, maintenance = server.clocks.get(interval.span), summarise_maintenance(record, interval)
    # The I/O of the transactions cannot be separated from that of others.
    counted = None if streams or maintenance or step.beside else delta_over(io.data, interval)
    reads = {own.transaction: own for own in transaction_reads(views, load, interval)}
    latencies = summarise_io_latency(
        views.io_latency, interval, data, wal, lambda database: io.server.io_of(database, interval)
    )
    data_device, server_waits = summarise_io(io.data_device, interval, DEVICE, "device"), views.top_waits(interval)
    throughput = Throughput(
        tps=total["committed"] / interval.seconds,
        committed=total["committed"],
        rolled_back=total["rolled_back"],
        failed=total["failed"],
        retries=total["retries"],
        primary=workload.primary,
        primary_tps=primary if workload.primary else None,
        nominal_tps=workload.nominal_rate,
    )
    figures = StepFigures(
        throughput.result_tps, data, data_device, state.cpu_process_share if state else None, server_waits
    )
    cause = None
    if not manifest.queries:
        cause = (
            StepCause(None, notes=[info(NoteKind.SERVER_LOST)])
            if lost
            else analyse_bottleneck(figures, manifest, load, io, wait_parts, interval, divided)
        )
    return StepSummary(
        key=key,
        run=record.folder.name,
        variant=manifest.variant.name,
        repeat=manifest.repeat,
        step=step.name or f"{step.users} users",
        users=step.users,
        buffer_pool_bytes=pool,
        buffer_pool_share=pool / size if pool and size else None,
        device=storage_label(manifest),
        emulated_roles=emulated_roles(manifest),
        interval=StepInterval(
            measured_s=interval.seconds,
            warm_up_s=step.measure_s - step.begin_s,
            begin_s=interval.begin,
            end_s=interval.end,
            cut=interval.cut,
            cycles=interval.cycles,
            waited=step.waited,
        ),
        throughput=throughput,
        latency=Latency(mean_ms(total), latency.summary(), service.summary(), latency.summary(never)),
        storage=StorageFigures(
            data=data,
            wal=wal,
            data_device=data_device,
            wal_device=summarise_io(io.wal_device, interval, DEVICE, "device"),
            reads_per_transaction=_per_transaction(load, counted, "reads"),
            writes_per_transaction=_per_transaction(load, counted, *SERVER.writes),
            reads_per_write=data.reads / data.writes if data and data.writes else None,
            writes_partial=missing_checkpoint(interval, state) if data else None,
            read_stall_ms_per_s=_read_stall(io, data, interval),
            foreign_io_share=foreign_share(io, interval),
            busy_share=busy,
            late_share=max((share for share in late if share is not None), default=None),
            flash=flash_use(record, io, interval),
            active=active_set(record, io, interval),
            probe=compare_step_with_probe(manifest, data),
        ),
        server=ServerFigures(
            hit_share=_hit_share(delta_over(io.own_database, interval), state),
            cpu_busy_share=cpu,
            foreign_cpu_share=foreign_cpu,
            checkpoints=_checkpoints(delta_over(io.checkpoints, interval)),
            state=state,
            processes=summarise_processes(views.processes, interval),
            files=io.server.summarise_files(interval),
            procedures=views.procedure_summaries(interval, load),
            statements=views.statements.summaries(interval),
            volumes=volume_summaries(record, interval),
            io_latency=latencies,
            query_store=views.query_store.summaries(interval),
        ),
        waits=WaitFigures(
            share=wait_share,
            top=waits.top() if waits else [],
            server_waits=server_waits,
            row_waits=views.row_waits.summaries(interval),
            blocked=server.blocked[interval.span],
        ),
        validity=StepValidity(
            invalid=[
                *by_hand(record.whole.manifest.steps),
                *lost,
                *invalid_findings(load, io, interval, step, errors.summaries(interval), bool(bound), foreign_cpu),
                *(gate.failure for gate in gates if gate.failure and gate.voids),
                *storage_errors(record),
                *([clock] if clock else []),
            ],
            driver_bound=bound,
            errors=errors.summaries(interval),
            bursts=list(errors.bursts(load, interval)),
            gaps=[
                *server.gaps[interval.span],
                *restart_findings(manifest, io, views, interval),
                *views.query_store.findings(interval),
                *views.statements.findings(interval),
            ],
            gates=gates,
            steadiness=_steadiness(load, interval, arrivals),
            slo=judge_reads(manifest.service_level, latencies, data),
        ),
        bottleneck=Bottleneck(
            device_verdict=verdict,
            is_device=IS_BOTTLENECK.get(DeviceKind(verdict.kind)) if verdict else None,
            correlations=[] if lost else list(_correlations(load, io, interval)),
        ),
        transactions=transactions,
        reads=[reads[name] for name in in_order(workload, reads)],
        own_statements=executed_statements(manifest.workload, load, views.statement_reads, interval),
        mail_io=summarise_mail_io(data, timer_iops(load, manifest.workload.transactions, interval))
        if alone and "mailboxes" in manifest.workload.scale and not manifest.loads
        else None,
        cause=cause,
        streams=streams,
        maintenance=maintenance,
        beside=step.beside,
        cells=step.cells,
    )


def _steadiness(load: Load, interval: Interval, arrivals: str) -> Steadiness | None:
    """Return the steadiness of the throughput or, in an open loop, of the mean latency, or None if no transactions were
    executed, as in a phase of queries.

    In an open loop the throughput is the rate of arrivals.
    """
    if not load.counts:
        return None
    committed = load.all("committed")
    if arrivals == "closed":
        return judge(interval.select(committed))
    done = committed + load.all("rolled_back")
    return judge(interval.select(per_second_mean(load.all("latency_us"), done)), Rate.LATENCY)


def _merged(histograms: Mapping[tuple[int, str], Latencies], interval: Interval) -> Latencies:
    merged = Latencies.empty()
    for (index, _), latencies in histograms.items():
        if index == interval.index:
            merged.add(latencies)
    return merged


def _per_transaction(load: Load, data: Delta | None, *counted: str) -> float | None:
    """Return the I/Os per commit of all the server's processes, I/O workers included, in the time that the
    counters cover."""
    known = [data.values[name] for name in counted if name in data.values] if data and not data.broken else []
    committed = data.count_within(load.all("committed")) if data and known else 0.0
    return sum(known) / committed if committed else None


def _hit_share(database: Delta | None, state: ServerState | None) -> float | None:
    """Return the share of block requests that the buffer pool answered, for our database if it is counted, else for the
    server. The server's view of I/O is unusable here: one of its reads may be several blocks."""
    if database is None:
        return state.hit_share if state else None
    if database.broken:
        return None
    asked = database["blocks_hit"] + database["blocks_read"]
    return database["blocks_hit"] / asked if asked else None


def _read_stall(io: Io, data: IoSummary | None, interval: Interval) -> float | None:
    delta = delta_over(io.data, interval)
    if data is None or delta is None or "read_stall_ms" not in delta.values:
        return None
    return delta["read_stall_ms"] / delta.seconds


def _spindles(counted: Delta | None, device: Device) -> int | None:
    """Return the number of spindles of an emulated array that counted for itself, or None if the kernel counted.

    The kernel counts for a real device, and for an array emulated as a block device unless root reads its counters.
    """
    array = device.emulated_array
    if array and (not array.block_device or (counted is not None and "late" in counted.values)):
        return array.spindles
    return None


def _device_busy(device: Delta | None, spindles: int | None) -> float | None:
    """Return the busy share of a device, 0 to 1. An emulated array counts service time summed over its spindles, a real
    device the time with any I/O under way."""
    if device is None or device.broken or "busy_ms" not in device.values:
        return None
    return min(1.0, device["busy_ms"] / 1000 / device.seconds / (spindles or 1))


def _late(device: Delta | None) -> float | None:
    """Return the share of an emulated array's I/Os for which the real device was slower, or None if it is not counted,
    or I/Os are too few to matter."""
    if device is None or device.broken or "late" not in device.values:
        return None
    done = device["reads"] + device["writes"] + device.values.get("syncs", 0.0)
    return device["late"] / done if done > LATE_FLOOR_PER_S * device.seconds else None


def _checkpoints(delta: Delta | None) -> int | None:
    """Return the number of checkpoints that did something, or of all where the server counts only these: under a load
    that writes, all do something."""
    if delta is None or delta.broken:
        return None
    return round(delta.values.get("done", delta.values.get("timed", 0.0) + delta.values.get("requested", 0.0)))


def _correlations(load: Load, io: Io, interval: Interval) -> Iterator[Correlation]:
    """Yield the correlations of throughput with read time and read stall. They are of the device's counters where
    known, because these are immediate. The server's sessions report late, in another second than the transactions that
    were slowed."""
    tps = interval.select(load.all("committed"))
    counters, names, whose = io.data_device, DEVICE, "device"
    if counters is None:
        counters, names, whose = io.data, SERVER, "server"
    if counters is None:
        return
    rise = counters.per_second(interval.end, *names.reads, *names.read_ms)
    reads, stall = summed(rise, names.reads), summed(rise, names.read_ms)
    if reads is None or stall is None:
        return
    for right, name, unit in (
        (per_second_mean(stall, reads), f"mean read time ({whose})", "ms per I/O"),
        (stall, f"read stall ({whose})", "stall-ms per second"),
    ):
        if correlation := correlate_changes(tps, interval.select(right), "transactions per second", name, unit):
            yield correlation
