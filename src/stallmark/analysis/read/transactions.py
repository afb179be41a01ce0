"""Each transaction type in the measured interval of a step.

The workload of a run: its transactions, what starts them, and which of them is the result.

Failed calls by transaction, their number, and their bursts. The lateness of the deferred queue: the delay of background
sessions. Maintenance that was executed next to the transactions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np

from stallmark import format
from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.throughput import Latencies, Load
from stallmark.analysis.read.times import Interval, ReadKind
from stallmark.errors import ErrorClass
from stallmark.format import Shown, words
from stallmark.record.manifest.workload import Transaction, Workload
from stallmark.record.reader import Record
from stallmark.stats.thresholds import BURST, BURST_CALLS, OVER_LIMIT


def deck_of(workload: Workload) -> list[Transaction]:
    """Return the types that the users' deck holds."""
    return [kind for kind in workload.transactions if kind.source == "users" and kind.cards]


def background_names(workload: Workload) -> frozenset[str]:
    """Return the names of the transactions that no virtual user starts."""
    return frozenset(kind.name for kind in workload.transactions if kind.source != "users")


def in_order(workload: Workload, names: Iterable[str]) -> list[str]:
    """Return names in the order of the manifest, unknown ones last."""
    known = [kind.name for kind in workload.transactions]
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


CONTENTION = frozenset(str(kind) for kind in ErrorClass if kind.retryable)
"""Error classes by which a server ends one of several transactions that conflict."""

_LOST = frozenset({str(ErrorClass.CONNECTION_LOST), str(ErrorClass.UNKNOWN_OUTCOME)})


@dataclass(frozen=True)
class ErrorSummary:
    transaction: Annotated[str, words("transaction", lambda name: format.display_name(name) or format.NONE)]
    error_class: Annotated[str, words("class")]
    code: Annotated[str, words("code")]
    attempts: Annotated[int, Shown("failed calls", format.count)]
    most_in_a_second: Annotated[int, Shown("most in 1 s", format.count)]
    given_up: Annotated[int, Shown("given up", format.count)]
    message: Annotated[str, words("first message")]


class Key(NamedTuple):
    transaction: str
    error_class: str
    code: str


@dataclass
class Errors:
    """Failed calls of one run per second; `given_up` counts those after which the transaction was not tried again."""

    seconds: int
    attempts: dict[Key, np.ndarray] = field(default_factory=dict)
    given_up: dict[Key, np.ndarray] = field(default_factory=dict)
    messages: dict[Key, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    """Values by transaction, over the complete run: the number with an unknown outcome, committed by the server or
    not."""

    def summaries(self, interval: Interval) -> list[ErrorSummary]:
        """Return the errors by transaction, class and code; most frequent first."""
        summaries = []
        for key, per_second in self.attempts.items():
            attempts, given_up = interval.select(per_second), interval.select(self.given_up[key])
            if attempts.any():
                summaries.append(
                    ErrorSummary(
                        *key, int(attempts.sum()), int(attempts.max()), int(given_up.sum()), self.messages[key]
                    )
                )
        return sorted(summaries, key=lambda error: (-error.attempts, error.transaction, error.error_class, error.code))

    def aborted(self, transaction: str) -> np.ndarray:
        """Return the calls per second that the server ended because of other transactions."""
        return self._sum(
            self.attempts, (k for k in self.attempts if k.transaction == transaction and k.error_class in CONTENTION)
        )

    def missed_starts(self, transaction: str) -> np.ndarray:
        """Return the times per second at which a transaction was due and not begun."""
        return self._sum(
            self.attempts,
            (k for k in self.attempts if k.transaction == transaction and k.error_class == ErrorClass.MISSED),
        )

    def lost_connections(self) -> np.ndarray:
        """Return the connections per second that were lost under a call."""
        return self._sum(self.attempts, (key for key in self.attempts if key.error_class in _LOST))

    def bursts(self, load: Load, interval: Interval) -> Iterator[Finding]:
        """Yield each transaction and error class with many failures at once."""
        for transaction, error_class in dict.fromkeys(key[:2] for key in self.attempts):
            keys = [key for key in self.attempts if key[:2] == (transaction, error_class)]
            failed = interval.select(self._sum(self.attempts, keys))
            counts = load.counts.get(transaction)
            done = interval.select(counts["committed"] + counts["rolled_back"]) if counts else 0
            in_burst = (failed >= BURST_CALLS) & (failed > BURST * (failed + done))
            if in_burst.any():
                lost = int(interval.select(self._sum(self.given_up, keys)).sum())
                yield caution(
                    ReadKind.ERROR_BURST,
                    transaction=transaction,
                    error_class=error_class,
                    seconds=int(in_burst.sum()),
                    measured_s=interval.seconds,
                    most_in_a_second=int(failed[in_burst].max()),
                    given_up=lost,
                )

    def _sum(self, counts: dict[Key, np.ndarray], keys: Iterable[Key]) -> np.ndarray:
        return np.sum([np.zeros(self.seconds), *(counts[key] for key in keys)], axis=0)


def read_errors(record: Record, seconds: int) -> Errors:
    """Read the errors in one pass over the table. Those after the last whole second count for `unknown` only."""
    errors = Errors(seconds)
    columns = ["second", "transaction", "error_class", "code", "attempts", "given_up", "message"]
    for row in record.rows("errors", columns):
        if row["error_class"] == ErrorClass.UNKNOWN_OUTCOME:
            errors.unknown[row["transaction"]] += row["attempts"]
        if row["second"] >= seconds:
            continue
        key = Key(row["transaction"], row["error_class"], row["code"])
        if key not in errors.attempts:
            errors.attempts[key], errors.given_up[key] = np.zeros(seconds), np.zeros(seconds)
            errors.messages[key] = row["message"]
        errors.attempts[key][row["second"]] += row["attempts"]
        errors.given_up[key][row["second"]] += row["given_up"]
    return errors


TOTALS = ("committed", "rolled_back", "failed", "retries", "latency_us")


@dataclass(frozen=True)
class TransactionSummary:
    """One transaction type in the measured interval of one step. Percentiles are None if the sample is too small for
    them."""

    name: str
    committed: int
    rolled_back: Annotated[int, Shown("rolled back", format.count)]
    failed: Annotated[int, Shown("failed", format.count)]
    retries: Annotated[int, Shown("retries", format.count)]
    tps: float  # committed per second
    latency_mean_ms: float | None
    latency_ms: dict[str, float | None]  # keys "p50" "p90" "p95" "p99" "p99.9" "max": scheduled to ended
    service_ms: dict[str, float | None]  # the same: started to ended
    source: str = "users"  # who starts it: "users", "followers" (others give rise to it), "timer" or "rate"
    share: float | None = None  # share of the users' transactions that ended
    deck_share: float | None = None  # expected `share`
    limit_s: float | None = None  # 90 % should take no longer
    over_limit: float | None = None  # share that took longer or was given up
    judged_ms: dict[str, float | None] = field(default_factory=dict)
    """Percentiles with the transactions that were given up, which took longer than any: infinite if the percentile
    falls on one of these."""
    aborted: int = 0  # calls that the server ended because of other transactions, tried again or not

    @property
    def slow(self) -> bool:
        """Return True if too many transactions took longer than the limit."""
        return self.over_limit is not None and self.over_limit > OVER_LIMIT

    @property
    def done_count(self) -> int:
        return self.committed + self.rolled_back

    @property
    def ended_count(self) -> int:
        """Return the number of transactions that ended, those given up included."""
        return self.done_count + self.failed


def transaction_summaries(
    workload: Workload, load: Load, errors: Errors, interval: Interval
) -> list[TransactionSummary]:
    """Return the transaction types in the order of the deck. Where the workload declares its types, those that never
    ended within the interval are left out."""
    cards = {kind.name: kind.cards for kind in deck_of(workload)}
    done = {
        name: int(interval.select(counts["committed"] + counts["rolled_back"]).sum())
        for name, counts in load.counts.items()
    }
    total = sum(done.get(name, 0) for name in cards)
    summaries = []
    for name in in_order(workload, load.counts):
        sums = {column: int(interval.select(load.counts[name][column]).sum()) for column in TOTALS}
        if workload.transactions and not interval.select(load.ended_per_second(name)).any():
            continue
        kind = next((kind for kind in workload.transactions if kind.name == name), Transaction(name=name))
        latency = load.latency.get((interval.index, name), Latencies.empty())
        summaries.append(
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
                share=done[name] / total if name in cards and total else None,
                deck_share=cards[name] / sum(cards.values()) if name in cards else None,
                limit_s=kind.limit_s,
                over_limit=None if kind.limit_s is None else latency.share_over(kind.limit_s * 1000, sums["failed"]),
                aborted=int(interval.select(errors.aborted(name)).sum()),
            )
        )
    return summaries


def mean_ms(total: Mapping[str, int]) -> float | None:
    done = total["committed"] + total["rolled_back"]
    return total["latency_us"] / done / 1000 if done else None


_SUMS = ("taken", "late_us", "waiting")


@dataclass(frozen=True)
class Lateness:
    """The lateness over one interval. `waiting` are mean lengths of the queue over its first and its last third."""

    mean_s: float  # started − due
    worst_s: float
    per_second: float  # transactions taken up
    waiting_first: float
    waiting_last: float


@dataclass(frozen=True)
class QueueSeries:
    """The deferred queue per second, summed over the executors; `late_max_us` is the largest of any."""

    columns: dict[str, np.ndarray]

    def lateness(self, interval: Interval) -> Lateness | None:
        """Return the lateness over an interval, or None if nothing was started or waiting."""
        columns = {name: interval.select(values) for name, values in self.columns.items()}
        taken, third = columns["taken"].sum(), max(1, interval.seconds // 3)
        waiting = columns["waiting"]
        if not taken and not waiting.any():
            return None
        return Lateness(
            mean_s=float(columns["late_us"].sum() / max(taken, 1) / 1e6),
            worst_s=float(columns["late_max_us"].max() / 1e6),
            per_second=float(taken / interval.seconds),
            waiting_first=float(waiting[:third].mean()),
            waiting_last=float(waiting[-third:].mean()),
        )


def read_deferred_queue(record: Record, seconds: int) -> QueueSeries:
    columns = {name: np.zeros(seconds) for name in (*_SUMS, "late_max_us")}
    for batch in record.batches("deferred_queue", ["second", *columns]):
        second = batch.column("second").to_numpy()
        inside = second < seconds
        for name in _SUMS:
            np.add.at(columns[name], second[inside], batch.column(name).to_numpy()[inside])
        np.maximum.at(columns["late_max_us"], second[inside], batch.column("late_max_us").to_numpy()[inside])
    return QueueSeries(columns)


@dataclass(frozen=True)
class MaintenanceSummary:
    """A backup, check or rebuild that was executed repeatedly. `mean_s` is the mean of the executions that ended in the
    interval."""

    kind: str
    done: int
    mean_s: float | None
    share: float  # share of the interval in which one was under way
    failed: bool


def summarise_maintenance(record: Record, interval: Interval) -> MaintenanceSummary | None:
    """Return the concurrent maintenance in an interval, or None if none was requested."""
    columns = ["kind", "started_s", "seconds", "finished", "error"]
    rows = list(record.rows("maintenance", columns))
    if not rows:
        return None
    ends = [(row["started_s"], row["started_s"] + row["seconds"], row) for row in rows]
    done = [row["seconds"] for _, end, row in ends if row["finished"] and interval.begin <= end < interval.end]
    under_way = sum(max(0.0, min(end, interval.end) - max(start, interval.begin)) for start, end, _ in ends)
    return MaintenanceSummary(
        kind=rows[0]["kind"],
        done=len(done),
        mean_s=sum(done) / len(done) if done else None,
        share=min(1.0, under_way / interval.seconds),
        failed=any(row["error"] for row in rows),
    )
