"""Each transaction type in the measured interval of a step."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallmark.analysis.read.errors import Errors
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.latency import Latencies
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.workload import RecordedWorkload
from stallmark.stats.thresholds import OVER_LIMIT

TOTALS = ("committed", "rolled_back", "failed", "retries", "latency_us")


@dataclass(frozen=True)
class TransactionSummary:
    """One transaction type in the measured interval of one step. Percentiles are None where the sample is too small
    for them."""

    name: str
    committed: int
    rolled_back: int
    failed: int
    retries: int
    tps: float  # committed per second
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max": scheduled to ended
    service_ms: dict[str, float | None]  # the same: started to ended
    source: str = "users"  # who starts it: "users", "followers" (others give rise to it) or "timer"
    share: float | None = None  # of the users' transactions that ended
    deck_share: float | None = None  # what that should be
    limit_s: float | None = None  # 90 % should take no longer
    over_limit: float | None = None  # share that took longer or was given up
    judged_ms: dict[str, float | None] = field(default_factory=dict)
    """`latency_ms` with those given up, which took longer than any: infinite if it is that of one of these."""
    aborted: int = 0  # calls that the server ended because of other transactions, tried again or not

    @property
    def slow(self) -> bool:
        """Tell whether more took longer than the limit than may."""
        return self.over_limit is not None and self.over_limit > OVER_LIMIT

    @property
    def done(self) -> int:
        return self.committed + self.rolled_back

    @property
    def ended(self) -> int:
        """Return the number of transactions that ended, those given up included."""
        return self.done + self.failed


def transaction_summaries(
    workload: RecordedWorkload, load: Load, errors: Errors, interval: Interval
) -> list[TransactionSummary]:
    """Return the transaction types in the order of the deck. Where the workload declares its types, those that never
    ended within the interval are left out."""
    of_users = [kind.name for kind in workload.of_users()]
    done = {
        name: int(interval.of(counts["committed"] + counts["rolled_back"]).sum())
        for name, counts in load.counts.items()
    }
    total = sum(done.get(name, 0) for name in of_users)
    found = []
    for name in workload.in_order(load.counts):
        sums = {column: int(interval.of(load.counts[name][column]).sum()) for column in TOTALS}
        if workload.kinds and not interval.of(load.ended(name)).any():
            continue
        kind = workload.find(name)
        latency = load.latency.get((interval.index, name), Latencies.empty())
        found.append(
            TransactionSummary(
                name=name,
                committed=sums["committed"],
                rolled_back=sums["rolled_back"],
                failed=sums["failed"],
                retries=sums["retries"],
                tps=sums["committed"] / interval.seconds,
                latency_mean_ms=mean_ms(sums),
                latency_ms=latency.summary(),
                judged_ms=latency.summary(sums["failed"]),
                service_ms=load.service.get((interval.index, name), Latencies.empty()).summary(),
                source=kind.source,
                share=done[name] / total if name in of_users and total else None,
                deck_share=workload.deck_share(kind) if name in of_users else None,
                limit_s=kind.limit_s,
                over_limit=None if kind.limit_s is None else latency.share_over(kind.limit_s * 1000, sums["failed"]),
                aborted=int(interval.of(errors.aborted(name)).sum()),
            )
        )
    return found


def mean_ms(total: Mapping[str, int]) -> float | None:
    done = total["committed"] + total["rolled_back"]
    return total["latency_us"] / done / 1000 if done else None
