"""The judgement of each step of a run: its gates, CPUs used by other programs, and the service level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, OwnCpu, cpu_of_run, delta_over, host_cpu
from stallmark.analysis.read.server_summary import IoLatencySummary, IoSummary, ServerState
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.transactions import Errors, QueueSeries, TransactionSummary
from stallmark.analysis.validity import gates
from stallmark.analysis.validity.gates import Gate
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.manifest.workload import Follows, Workload
from stallmark.stats.thresholds import CPU_DELAY, CPU_LIMITS, FOREIGN_CPU


class ServiceLevelKind(Kind):
    """The findings on a service level, and the reasons why a percentile is not judged."""

    READS_TAKE = "reads_take"
    READS_NOT_KNOWN = "reads_not_known"
    NO_HISTOGRAM = "no_histogram"
    TOO_FEW_READS = "too_few_reads"
    READS_NOT_MEASURED = "reads_not_measured"
    NOTHING_READ = "nothing_read"


# The share of the CPUs of the server's machine that other programs used while a step was measured.


def foreign_cpu_share(
    manifest: Manifest, load: Load, io: Io, state: ServerState | None, interval: Interval
) -> float | None:
    """Return the share of the CPUs that other programs used, or None if it is unknown or does not matter.

    Other programs are all but the server, the client on the same machine and the kernel's threads. A share above the
    limit is omitted if nothing of the run waited for a CPU.
    """
    shares = _cpu_by_processes(manifest, load, io, interval) or _cpu_by_server_notes(state)
    if shares is None:
        return None
    foreign, busy, own = shares
    # Other programs may use idle CPUs: only a run that waited for a CPU was disturbed.
    if foreign > FOREIGN_CPU and not _delays(manifest, load, interval, busy, own):
        return None
    return foreign


def _cpu_by_processes(
    manifest: Manifest, load: Load, io: Io, interval: Interval
) -> tuple[float, float, OwnCpu | None] | None:
    """Return the share of other programs, the share of CPUs that were busy, and the run's own use.

    Not known next to an array that is emulated as a block device: the program that serves it is in no table.
    """
    own, host = cpu_of_run(load, io, interval), host_cpu(delta_over(io.host, interval))
    if own is None or own.cores is None or host is None:
        return None
    # Such an array's program would count as foreign.
    models = (manifest.devices.for_role(role).emulated_array for role in ("data", "wal"))
    if any(model and model.block_device for model in models):
        return None
    kernel = delta_over(io.kernel_cpu, interval)
    threads = kernel["system_s"] / kernel.seconds if kernel and not kernel.broken else 0.0
    return max(0.0, host.cores - host.idle - own.cores - threads) / host.cores, host.busy_share, own


def _cpu_by_server_notes(state: ServerState | None) -> tuple[float, float, OwnCpu | None] | None:
    """Return the same shares from SQL Server's notes of every minute. If these lack the idle time, only the server's
    process is known to be busy."""
    if state is None or state.cpu_busy_share is None or state.cpu_process_share is None:
        return None
    foreign = state.cpu_busy_share - state.cpu_process_share
    return (foreign, state.cpu_busy_share, None) if foreign > 0 else None


def _delays(manifest: Manifest, load: Load, interval: Interval, busy: float, own: OwnCpu | None) -> bool:
    """Return True if the run waited for CPUs: as the kernel counted it or, without its count, if the CPUs were busy
    enough to limit it."""
    # The kernel does not separate the sessions of several loads.
    if own is None or own.server_run_delay_s is None or manifest.loads:
        return busy >= CPU_LIMITS
    spent_s = float(interval.select(load.all("service_us")).sum()) / 1e6
    return own.server_run_delay_s / own.seconds > CPU_DELAY * spent_s / interval.seconds


# The validity gates of each step of a run (gates.py), from its record.
@dataclass(frozen=True)
class Validity:
    """The parts of a run by which its gates are judged."""

    manifest: Manifest
    load: Load
    errors: Errors
    deferred: QueueSeries

    @property
    def workload(self) -> Workload:
        return self.manifest.workload

    def judge(
        self, interval: Interval, transactions: Sequence[TransactionSummary], wait_share: Mapping[str, float] | None
    ) -> list[Gate]:
        """Return the gates of the step measured in `interval`; gates on the complete run are in every step.

        A workload without a primary transaction has no gate on contention: the bank's branches are contended by design.
        """
        executors = sum(bool(interval.select(users["running"]).any()) for users in self.load.users.values())
        # Without a primary transaction the workload contends by design.
        contended = self.workload.primary is not None
        candidates = [
            self._mix(interval, transactions, max(executors, 1)),
            self._followers(interval, max(executors, 1)),
            gates.aborts(transactions) if contended else None,
            gates.locks(wait_share) if contended else None,
            gates.limits(transactions),
            gates.lag(self.deferred.lateness(interval), self._timers_behind(interval)),
            gates.conditions(self.manifest.conditions),
            self._completed(),
        ]
        return [gate for gate in candidates if gate]

    def _mix(self, interval: Interval, transactions: Sequence[TransactionSummary], executors: int) -> Gate | None:
        under_way = {
            transaction.name: interval.select(self.load.counts[transaction.name]["latency_us"]).sum()
            / 1e6
            / interval.seconds
            for transaction in transactions
            if transaction.name in self.load.counts
        }
        done = {transaction.name: transaction.done_count for transaction in transactions}
        return gates.mix(self.workload, done, under_way, executors)

    def _followers(self, interval: Interval, executors: int) -> Gate | None:
        followings = [
            self._following(kind.name, kind.follows, interval) for kind in self.workload.transactions if kind.follows
        ]
        return gates.followers(followings, executors, interval.seconds)

    def _following(self, name: str, follows: Follows, interval: Interval) -> gates.Following:
        """Count followers and sources. Followers that were given up count as arrived; sources that were given up do not
        count."""
        source = self.load.counts.get(follows.transaction)
        done = source["committed"] + source["rolled_back"] if source else np.zeros(self.load.seconds)
        came = self.load.ended_per_second(name)
        return gates.Following(
            name,
            follows,
            int(interval.select(done).sum()),
            int(interval.select(source["rolled_back"]).sum()) if source else 0,
            int(interval.select(came).sum()),
            int(done[: interval.begin].sum()),
            int(came[: interval.begin].sum()),
        )

    def _timers_behind(self, interval: Interval) -> list[list[Any]]:
        """Return the timers' transactions that began less often than they were due; none if the load rested."""
        if not interval.select(self.load.user_sum("running")).any():
            return []
        timers = []
        for kind in self.workload.transactions:
            ended, missed = (
                int(interval.select(counts).sum())
                for counts in (self.load.ended_per_second(kind.name), self.errors.missed_starts(kind.name))
            )
            if timer := gates.missed_periods(kind, ended, missed, interval.seconds):
                timers.append(timer)
        return timers

    def _completed(self) -> Gate | None:
        committed = {name: int(counts["committed"].sum()) for name, counts in self.load.counts.items()}
        return gates.commits(self.workload.counted, committed, self.errors.unknown, self.manifest.unheard)


# Service levels: a limit on the time of reads, and whether the reads of a step met it.
#
# The percentile is judged if the server kept a histogram of single reads, else the mean. A mean above the limit does
# not meet it. A mean within it does not show that 95 % of the reads are: that outcome is "mean only".


class LevelOutcome(StrEnum):
    MET = "met"
    NOT_MET = "not_met"
    MEAN_ONLY = "mean_only"
    NOT_KNOWN = "not_known"


class ReadSource(StrEnum):
    """The source of read times."""

    HISTOGRAM = "histogram_of_single_reads"
    FILE_COUNTERS = "counters_of_data_files"
    NONE = "none"


@dataclass(frozen=True)
class ReadLimit:
    """A limit on the time of reads in milliseconds, and the ideal time."""

    read_ms: float
    ideal_ms: float | None = None


READY_MADE = {"oltp": ReadLimit(20, 10), "dss": ReadLimit(30), "mail": ReadLimit(20)}
"""Guidelines for the data reads of transaction processing, decision support and mail servers, as ESG Lab used them
(IBM System Storage DS5020 with mixed real-world workloads, 2010: OLTP 4-20 ms and ideally no more than 10, DSS 30,
mail 20)."""

PERCENTILES = ("p95", "p99")
MEAN_ONLY = "mean_only"


@dataclass(frozen=True)
class ServiceLevel:
    """One step compared with its service level."""

    name: str  # "oltp" …, or "read" for a custom limit
    percentile: str
    limit_ms: float
    ideal_ms: float | None
    outcome: LevelOutcome
    ideal_met: bool | None  # None without an ideal, and if unknown, as by a mean within it
    figure: str  # "p95", "mean_only", or "none"
    figure_ms: float | None
    reads: int  # reads of the data files in `figure_ms`
    source: ReadSource
    finding: Finding


def make_objective(name: str | None, read_ms: float | None, percentile: str) -> ServiceLevelObjective:
    """Return a service level for the manifest: a ready-made one by its name, or a custom limit; None sets no limit on
    reads."""
    if name is None:
        return ServiceLevelObjective(name="read", read_ms=read_ms, percentile=percentile)
    limit = READY_MADE[name]
    return ServiceLevelObjective(name=name, read_ms=limit.read_ms, ideal_ms=limit.ideal_ms, percentile=percentile)


def judge_reads(
    objective: ServiceLevelObjective | None, histograms: Sequence[IoLatencySummary], data: IoSummary | None
) -> ServiceLevel | None:
    """Judge the reads of a step; return None if the scenario sets no service level of reads."""
    if objective is None or objective.read_ms is None:
        return None
    percentile, limit, ideal = objective.percentile, objective.read_ms, objective.ideal_ms
    of_reads = (histogram for histogram in histograms if histogram.operation == "read" and histogram.database is None)
    figure, figure_ms, reads, source, no_percentile = _judged_figure(percentile, next(of_reads, None), data)
    # A mean above the limit breaks it, but a mean within it does not show that a percentile is.
    outcome = judge_figure(figure, figure_ms, limit)
    ideal_outcome = LevelOutcome.NOT_KNOWN if ideal is None else judge_figure(figure, figure_ms, ideal)
    ideal_met = {LevelOutcome.MET: True, LevelOutcome.NOT_MET: False}.get(ideal_outcome)
    return ServiceLevel(
        name=objective.name,
        percentile=percentile,
        limit_ms=limit,
        ideal_ms=ideal,
        outcome=outcome,
        ideal_met=ideal_met,
        figure=figure,
        figure_ms=figure_ms,
        reads=reads,
        source=source,
        finding=info(ServiceLevelKind.READS_NOT_KNOWN, why=no_percentile)
        if figure_ms is None
        else (info if outcome == LevelOutcome.MET else caution)(
            ServiceLevelKind.READS_TAKE,
            outcome=outcome,
            percentile=percentile,
            figure_ms=figure_ms,
            reads=reads,
            limit_ms=limit,
            ideal_ms=ideal,
            ideal_met=ideal_met,
            why=no_percentile,
        ),
    )


def judge_figure(figure: str, figure_ms: float | None, limit_ms: float) -> LevelOutcome:
    """Return the outcome of a figure, which is a percentile or MEAN_ONLY."""
    if figure_ms is None:
        return LevelOutcome.NOT_KNOWN
    if figure_ms > limit_ms:
        return LevelOutcome.NOT_MET
    return LevelOutcome.MEAN_ONLY if figure == MEAN_ONLY else LevelOutcome.MET


def _judged_figure(
    percentile: str, histogram: IoLatencySummary | None, data: IoSummary | None
) -> tuple[str, float | None, int, ReadSource, Finding | None]:
    """Return the figure that is judged, its ms, the number of reads, their source, and the reason if it is not a
    percentile."""
    no_percentile = info(ServiceLevelKind.NO_HISTOGRAM)
    if histogram is not None:
        if (ms := histogram.latency_ms.get(percentile)) is not None:
            return percentile, ms, histogram.ios, ReadSource.HISTOGRAM, None
        no_percentile = histogram.doubt or info(
            ServiceLevelKind.TOO_FEW_READS, reads=histogram.ios, percentile=percentile
        )
    if data is None or (data.reads and data.read_ms is None):
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.READS_NOT_MEASURED)
    if not data.reads:
        return "none", None, 0, ReadSource.NONE, info(ServiceLevelKind.NOTHING_READ)
    # The counters of files know only totals, so only the mean can be judged.
    return MEAN_ONLY, data.read_ms, data.reads, ReadSource.FILE_COUNTERS, no_percentile
