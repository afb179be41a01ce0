"""Validity gates: conditions under which a step's figures represent the load that the workload defines.

Each gate is a pure function and returns None if it does not apply. All but the limits of the 90th percentile void a
step: a slow variant may well exceed a limit, and can still be compared.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, Kind, Severity
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.transactions import Errors, Lateness, QueueSeries, TransactionSummary, deck_of
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition, Unheard
from stallmark.record.manifest.workload import Counted, Follows, Transaction, Workload
from stallmark.stats.thresholds import (
    ABORTED,
    CHANCE,
    FOLLOWED,
    FOLLOWED_AT_A_CHANGING_RATE,
    LATE_START_S,
    LOCKED,
    MIX,
    OVER_LIMIT,
    SAMPLES_BEYOND,
    UNDER_WAY_S,
)


class GateKind(Kind):
    """The validity gates, by the names shown to readers."""

    MIX = "mix"
    FOLLOWERS = "followers"
    ABORTS = "aborts"
    LOCKS = "locks"
    LIMITS = "p90_limits"
    LAG = "background_lag"
    CONSISTENCY = "consistency"
    COMPLETED = "completed"


# The deviation of the mix from the deck by chance alone.
#
# Each executor deals from its own shuffled deck, without replacement. A measured interval is a window over the cards
# dealt, which begins and ends somewhere within a deck. Complete decks inside it have exactly their shares. Among m
# cards of a deck of N, the number of one type is hypergeometric. Its variance is m · p (1 − p) · (N − m) / (N − 1). The
# window's position in the deck is not known: the variance is the mean over all positions, which are equally likely.


def variance(dealt: float, deck: int, share: float, executors: int) -> float:
    """Return the variance of the number of cards of one type (`share` of the `deck`'s cards) among those `dealt`. All
    executors are assumed to deal the same number."""
    per_executor = round(dealt / executors)
    # A deck of one card, or nothing dealt, leaves nothing to chance.
    if deck < 2 or not per_executor:
        return 0.0
    begin = np.arange(deck)  # cards of the first deck that were dealt before the window
    head = np.minimum(per_executor, deck - begin)
    tail = (per_executor - head) % deck
    parts = head * (deck - head) + tail * (deck - tail)
    return executors * share * (1 - share) * float(parts.mean()) / (deck - 1)


def deviation(
    dealt: float, deck: int, share: float, executors: int, under_way: float, others_under_way: float
) -> float:
    """Return the standard deviation of the number of transactions of one type that ended in an interval, relative to
    its share of all.

    The number that ended is the number dealt, plus those under way when the interval began, less those under way when
    it ended. The latter two are taken as Poisson numbers: an upper bound, as no more are under way than there are
    users. Other types count because they change the total.
    """
    ends = 2 * ((1 - share) ** 2 * under_way + share**2 * others_under_way)
    return math.sqrt(variance(dealt, deck, share, executors) + ends)


@dataclass(frozen=True)
class Gate:
    """A condition under which a step's figures represent its load. It holds if `value` is at most `limit`."""

    kind: GateKind
    value: float | None
    limit: float | None
    unit: str
    passed: bool | None  # None if unknown
    voids: bool = True  # a step that fails it must not be compared
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)  # further facts for the finding

    @property
    def name(self) -> str:
        return str(self.kind)

    @property
    def failure(self) -> Finding | None:
        """Return the finding of a gate that failed, or None if it passed or was not judged."""
        if self.passed is not False:
            return None
        severity = Severity.INVALID if self.voids else Severity.CAUTION
        return Finding(self.kind, severity, {"value": self.value, "limit": self.limit, **self.facts})


def _make_gate(kind: GateKind, value: float, limit: float, unit: str, **facts: Any) -> Gate:
    """Return a gate that is judged by its value alone."""
    return Gate(kind, value, limit, unit, value <= limit, facts=facts)


def mix(workload: Workload, done: Mapping[str, int], under_way: Mapping[str, float], executors: int) -> Gate | None:
    """Judge the mix by the type that is furthest from its share of the deck, relative to the deviation allowed.

    `done` counts the transactions that ended in the interval, without failed ones. `under_way` is the mean number of
    each under way. Both are by name.
    """
    kinds = deck_of(workload)
    total, cards = sum(done.get(kind.name, 0) for kind in kinds), sum(int(kind.cards) for kind in kinds)
    # A single type cannot deviate, and nothing ended has no shares.
    if len(kinds) < 2 or not total:
        return None
    all_under_way = sum(under_way.get(kind.name, 0.0) for kind in kinds)
    worst = None
    for kind in kinds:
        share = kind.cards / cards
        own = under_way.get(kind.name, 0.0)
        chance = CHANCE * deviation(total, cards, share, executors, own, all_under_way - own)
        off, allowed = done.get(kind.name, 0) / (total * share) - 1, max(MIX, chance / (total * share))
        if worst is None or abs(off) / allowed > abs(worst[1]) / worst[2]:
            worst = kind.name, off, allowed
    assert worst
    name, off, allowed = worst
    facts = {"transaction": name, "off": off, "by_chance": allowed > MIX}
    return _make_gate(GateKind.MIX, abs(off), allowed, "relative deviation", **facts)


@dataclass(frozen=True)
class Following:
    """The number of `followers` that arrived, in an interval and before it, and of the transactions that cause them."""

    name: str
    follows: Follows
    sources: int  # causing transactions that ended in the interval
    rolled_back: int  # sources that rolled back
    followers: int
    sources_before: int  # sources from the run's start to the interval
    followers_before: int

    @property
    def due(self) -> float:
        return self.follows.each * self.sources

    @property
    def in_flight(self) -> tuple[float, float]:
        """Return the number of followers still to come at the interval's begin, and at its end."""
        begin = self.follows.each * self.sources_before - self.followers_before
        return max(0.0, begin), max(0.0, begin + self.due - self.followers)

    def deviation(self, executors: int) -> float:
        """Return the standard deviation of the number of followers that arrive in an interval.

        Those under way at the interval's ends are two Poisson numbers; several sources of one follower count each for
        its part. Sources that roll back cause no follower, and their number is Poisson too. If several sources make one
        follower, each executor keeps a part of one at each end (uniform, variance 1/12).
        """
        part = min(1.0, self.follows.each)
        return math.sqrt(part * sum(self.in_flight) + part**2 * self.rolled_back + executors / 6)


def followers(followings: Sequence[Following], executors: int, seconds: float) -> Gate | None:
    """Judge the transactions of the market by the number that users ordered, in an interval of `seconds`. The type that
    is furthest off decides."""
    followings = [following for following in followings if following.due]
    if not followings:
        return None

    def deviation_and_limit(following: Following) -> tuple[float, float]:
        allowed = max(FOLLOWED, CHANCE * following.deviation(executors) / following.due)
        # A short queue excuses a small gap: the rate of orders may have changed meanwhile.
        if max(following.in_flight) <= UNDER_WAY_S * following.due / seconds:
            allowed = max(allowed, FOLLOWED_AT_A_CHANGING_RATE)
        return abs(following.followers / following.due - 1), allowed

    worst = max(followings, key=lambda following: deviation_and_limit(following)[0] / deviation_and_limit(following)[1])
    value, allowed = deviation_and_limit(worst)
    begin, end = worst.in_flight
    return _make_gate(
        GateKind.FOLLOWERS,
        value,
        allowed,
        "relative deviation",
        transaction=worst.name,
        follows=worst.follows.transaction,
        each=worst.followers / worst.sources,
        expected_each=worst.follows.each,
        under_way_at_begin=begin,
        under_way_at_end=end,
    )


def aborts(transactions: Sequence[TransactionSummary]) -> Gate | None:
    """Judge the share of calls that the server ended because of other transactions, whether retried or given up, per
    transaction that ended."""
    ended = sum(transaction.ended_count for transaction in transactions)
    if not ended:
        return None
    rate = sum(transaction.aborted for transaction in transactions) / ended
    most = max(transactions, key=lambda transaction: transaction.aborted)
    facts = {"transaction": most.name, "transaction_rate": most.aborted / most.ended_count if most.ended_count else 0.0}
    return _make_gate(GateKind.ABORTS, rate, ABORTED, "per transaction", **facts)


def locks(wait_share: Mapping[str, float] | None) -> Gate | None:
    """Judge the share of the users' time spent waiting for locks."""
    if wait_share is None:
        return None
    return _make_gate(GateKind.LOCKS, wait_share["lock"], LOCKED, "share of the users’ time")


def limits(transactions: Sequence[TransactionSummary]) -> Gate | None:
    """Judge the share of each type that took longer than its limit. At least SAMPLES_BEYOND must have, so that no small
    sample fails."""
    judged = [
        (transaction, transaction.over_limit) for transaction in transactions if transaction.over_limit is not None
    ]
    if not judged:
        return None
    slow = [
        transaction
        for transaction, over in judged
        if over > OVER_LIMIT and over * transaction.ended_count >= SAMPLES_BEYOND - 0.5
    ]
    # A type that fails is shown before one that is slower, but whose sample is too small to fail.
    worst, over = max(judged, key=lambda pair: (pair[0] in slow, pair[1]))
    return Gate(
        GateKind.LIMITS,
        value=over,
        limit=OVER_LIMIT,
        unit="share over the limit",
        passed=not slow,
        voids=False,
        facts={
            "transaction": worst.name,
            "limit_s": worst.limit_s,
            "slow": [[transaction.name, transaction.over_limit, transaction.limit_s] for transaction in slow],
        },
    )


def missed_periods(kind: Transaction, ended: int, missed: int, seconds: float) -> list[Any] | None:
    """Return a timer's name with its executions and due times in an interval, or None if it kept its schedule.

    `ended` includes the executions that the driver noted as `missed`.

    A timer skips the periods in which its last transaction is still under way. The driver notes them when that one
    ends, which may be after the interval. Then only two are a sign: of those that keep to their time, one less than the
    whole periods of the interval may end in it, because they take differently long.
    """
    if kind.source != "timer" or not kind.every_s:
        return None
    due, executed = math.floor(seconds / kind.every_s), ended - missed
    if not missed and executed >= due - 1:
        return None
    # Notes may belong to periods before the interval: they add to those due only if these were all executed.
    return [kind.name, executed, due if executed < due else executed + missed]


def lag(late: Lateness | None, missed: Sequence[list[Any]] = ()) -> Gate | None:
    """Judge the lateness of the deferred queue, and the periods that timers have missed.

    The queue grows if at its end it is longer than the work that arrives within the allowed lateness.
    """
    if late is None and not missed:
        return None
    late = late or Lateness(0.0, 0.0, 0.0, 0.0, 0.0)
    growth = late.waiting_last - late.waiting_first
    # One waiting transaction more is noise, whatever the rate.
    grows = growth > max(1.0, LATE_START_S * late.per_second)
    return Gate(
        GateKind.LAG,
        value=late.mean_s,
        limit=LATE_START_S,
        unit="s",
        passed=late.mean_s <= LATE_START_S and not grows and not missed,
        facts={
            "worst_s": late.worst_s,
            "grows": grows,
            "waiting_first": late.waiting_first,
            "waiting_last": late.waiting_last,
            **({"missed": [*missed]} if missed else {}),
        },
    )


def conditions(checked: Sequence[Condition]) -> Gate | None:
    """Judge the consistency of the data after the run; conditions that were omitted or refused do not count."""
    judged = [condition for condition in checked if condition.holds is not None]
    refused = sum(bool(condition.refused) for condition in checked)
    if not judged and not refused:
        return None
    broken = [condition.name for condition in judged if not condition.holds]
    return Gate(
        GateKind.CONSISTENCY,
        value=float(len(broken)),
        limit=0.0,
        unit="broken conditions",
        passed=not broken if judged else None,
        facts={"checked": len(judged), "broken": broken, "refused": refused},
    )


def commits(
    counted: Mapping[str, Counted], committed: Mapping[str, int], unknown: Mapping[str, int], unheard: Unheard
) -> Gate | None:
    """Compare the number of transactions that the database counted with those that the driver saw committed, over the
    complete run.

    Some may have an unknown outcome: the connection was lost during the commit, or they did not end
    (`unheard.unfinished`). If executors were lost, or killed before their last report, there may be more: then only too
    few are wrong. Not judged if nothing was counted or committed. Of several types the finding names the one that is
    furthest off.
    """

    def judge_type(name: str, numbers: Counted) -> Gate:
        seen, doubtful = committed.get(name, 0), unknown.get(name, 0) + unheard.unfinished
        silent = unheard.executors
        in_database = None if numbers.after is None else numbers.after - numbers.before
        judged = in_database is not None and (in_database < seen or not silent) and bool(in_database or seen)
        return Gate(
            GateKind.COMPLETED,
            value=float(in_database - seen) if in_database is not None and judged else None,
            limit=float(doubtful),
            unit="transactions beyond those seen committed",
            passed=seen <= in_database <= seen + doubtful if in_database is not None and judged else None,
            facts={"transaction": name, "counted": in_database, "seen": seen, "silent_executors": silent},
        )

    # Failed before passed before not judged, and the largest gap first.
    gates = [judge_type(name, numbers) for name, numbers in counted.items()]
    return max(gates, key=lambda gate: (gate.passed is False, gate.passed is True, abs(gate.value or 0)), default=None)


# The gates of each step of a run, from its record.
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
            aborts(transactions) if contended else None,
            locks(wait_share) if contended else None,
            limits(transactions),
            lag(self.deferred.lateness(interval), self._timers_behind(interval)),
            conditions(self.manifest.conditions),
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
        return mix(self.workload, done, under_way, executors)

    def _followers(self, interval: Interval, executors: int) -> Gate | None:
        followings = [
            self._following(kind.name, kind.follows, interval) for kind in self.workload.transactions if kind.follows
        ]
        return followers(followings, executors, interval.seconds)

    def _following(self, name: str, follows: Follows, interval: Interval) -> Following:
        """Count followers and sources. Followers that were given up count as arrived; sources that were given up do not
        count."""
        source = self.load.counts.get(follows.transaction)
        done = source["committed"] + source["rolled_back"] if source else np.zeros(self.load.seconds)
        came = self.load.ended_per_second(name)
        return Following(
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
            if timer := missed_periods(kind, ended, missed, interval.seconds):
                timers.append(timer)
        return timers

    def _completed(self) -> Gate | None:
        committed = {name: int(counts["committed"].sum()) for name, counts in self.load.counts.items()}
        return commits(self.workload.counted, committed, self.errors.unknown, self.manifest.unheard)
