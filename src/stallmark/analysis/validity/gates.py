"""Validity gates: conditions under which a step's figures stand for the load that the workload means.

Each is a pure function and returns None where it does not apply. All but the limits of the 90th percentile void a step:
a slow variant may well exceed a limit, and can still be compared.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.read.transactions import Lateness, RecordedWorkload, TransactionSummary, TransactionType
from stallmark.analysis.validity.invalid import GateKind
from stallmark.record.manifest.course import Condition, Unheard
from stallmark.record.manifest.workload import Counted
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

# The deviation of the mix from the deck by chance alone.
#
# Each executor deals from a shuffled deck of its own, without replacement. A measured interval is a window over the
# cards dealt, which begins and ends somewhere within a deck. Whole decks inside it have exactly their shares. Of a part
# of m cards of a deck of N, the number of one type is hypergeometric. Its variance is m · p (1 − p) · (N − m) / (N −
# 1). The window's place in the deck is not known: the variance is the mean over all places, each as likely.


def variance(dealt: float, deck: int, share: float, executors: int) -> float:
    """Return the variance of the number of cards of one type (`share` of the `deck`'s cards) among those `dealt`. All
    executors are taken to deal alike."""
    each = round(dealt / executors)
    if deck < 2 or not each:
        return 0.0
    begin = np.arange(deck)  # cards of the first deck that were dealt before the window
    head = np.minimum(each, deck - begin)
    tail = (each - head) % deck
    parts = head * (deck - head) + tail * (deck - tail)
    return executors * share * (1 - share) * float(parts.mean()) / (deck - 1)


def deviation(
    dealt: float, deck: int, share: float, executors: int, under_way: float, others_under_way: float
) -> float:
    """Return the standard deviation of the number of one type that ended within an interval, against its share of all
    that did.

    Those that ended are those dealt, plus those under way when it began, less those under way when it ended. The latter
    two are taken as Poisson numbers: an upper bound, as no more are under way than there are users. Other types count
    because they change the total that the share is taken of.
    """
    ends = 2 * ((1 - share) ** 2 * under_way + share**2 * others_under_way)
    return math.sqrt(variance(dealt, deck, share, executors) + ends)


@dataclass(frozen=True)
class Gate:
    """A condition under which a step's figures stand for its load. It holds where `value` is at most `limit`. `facts`
    hold what else is known of it."""

    kind: GateKind
    value: float | None
    limit: float | None
    unit: str
    passed: bool | None  # None: not known
    voids: bool = True  # a step that fails it must not be compared
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return str(self.kind)

    @property
    def failure(self) -> Finding | None:
        """Return the finding of a gate that failed; None otherwise."""
        if self.passed is not False:
            return None
        severity = Severity.INVALID if self.voids else Severity.CAUTION
        return Finding(self.kind, severity, {"value": self.value, "limit": self.limit, **self.facts})


def mix(
    workload: RecordedWorkload, done: Mapping[str, int], under_way: Mapping[str, float], executors: int
) -> Gate | None:
    """Judge the mix: the type that is furthest from its share of the deck, relative to the deviation allowed.

    `done` counts the transactions that ended in the interval, without failed ones. `under_way` is the mean number of
    each under way. Both are by name.
    """
    kinds = workload.of_users()
    total, cards = sum(done.get(kind.name, 0) for kind in kinds), sum(int(kind.cards) for kind in kinds)
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
    return Gate(
        GateKind.MIX,
        value=abs(off),
        limit=allowed,
        unit="relative deviation",
        passed=abs(off) <= allowed,
        facts={"transaction": name, "off": off, "by_chance": allowed > MIX},
    )


@dataclass(frozen=True)
class Following:
    """The number of `followers` that came, in an interval and before it, and of transactions that give rise to them."""

    kind: TransactionType
    sources: int  # that ended in the interval
    rolled_back: int  # of them
    followers: int
    sources_before: int  # since the run's start
    followers_before: int

    @property
    def due(self) -> float:
        return self.kind.each * self.sources

    @property
    def under_way(self) -> tuple[float, float]:
        """Return the followers that were still to come when the interval began, and when it ended."""
        begin = self.kind.each * self.sources_before - self.followers_before
        return max(0.0, begin), max(0.0, begin + self.due - self.followers)

    def deviation(self, executors: int) -> float:
        """Return the standard deviation of the number of followers that come in an interval.

        Those under way at its ends are two Poisson numbers; several sources of one follower count each for its part.
        Sources that roll back give rise to none, and their number is Poisson too. Where several sources make one
        follower, each executor keeps a part of one at each end (uniform, variance 1/12).
        """
        part = min(1.0, self.kind.each)
        return math.sqrt(part * sum(self.under_way) + part**2 * self.rolled_back + executors / 6)


def followers(found: Sequence[Following], executors: int, seconds: float) -> Gate | None:
    """Judge the transactions of the market against those that users ordered, in an interval of `seconds`. The type that
    is furthest off decides."""
    found = [one for one in found if one.due]
    if not found:
        return None

    def off(one: Following) -> tuple[float, float]:
        allowed = max(FOLLOWED, CHANCE * one.deviation(executors) / one.due)
        if max(one.under_way) <= UNDER_WAY_S * one.due / seconds:
            allowed = max(allowed, FOLLOWED_AT_A_CHANGING_RATE)
        return abs(one.followers / one.due - 1), allowed

    worst = max(found, key=lambda one: off(one)[0] / off(one)[1])
    value, allowed = off(worst)
    begin, end = worst.under_way
    return Gate(
        GateKind.FOLLOWERS,
        value=value,
        limit=allowed,
        unit="relative deviation",
        passed=value <= allowed,
        facts={
            "transaction": worst.kind.name,
            "follows": worst.kind.follows,
            "each": worst.followers / worst.sources,
            "expected_each": worst.kind.each,
            "under_way_at_begin": begin,
            "under_way_at_end": end,
        },
    )


def aborts(transactions: Sequence[TransactionSummary]) -> Gate | None:
    """Judge the calls that the server ended because of other transactions, tried again or given up, per transaction
    that ended."""
    ended = sum(one.ended for one in transactions)
    if not ended:
        return None
    rate = sum(one.aborted for one in transactions) / ended
    most = max(transactions, key=lambda one: one.aborted)
    return Gate(
        GateKind.ABORTS,
        value=rate,
        limit=ABORTED,
        unit="per transaction",
        passed=rate <= ABORTED,
        facts={"transaction": most.name, "transaction_rate": most.aborted / most.ended if most.ended else 0.0},
    )


def locks(wait_share: Mapping[str, float] | None) -> Gate | None:
    if wait_share is None:
        return None
    value = wait_share["lock"]
    return Gate(GateKind.LOCKS, value, LOCKED, "share of the users’ time", value <= LOCKED)


def limits(workload: RecordedWorkload, transactions: Sequence[TransactionSummary]) -> Gate | None:
    """Judge the share of each type that took longer than its limit. At least ten must have, so that no small
    sample fails."""
    judged = [
        (one, one.over_limit)
        for one in transactions
        if workload.find(one.name).limit_s is not None and one.over_limit is not None
    ]
    if not judged:
        return None
    slow = [one for one, over in judged if over > OVER_LIMIT and over * one.done >= SAMPLES_BEYOND - 0.5]
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
            "limit_s": workload.find(worst.name).limit_s,
            "slow": [[one.name, one.over_limit, workload.find(one.name).limit_s] for one in slow],
        },
    )


def lag(late: Lateness | None) -> Gate | None:
    """Judge the lateness of the deferred queue. The queue grows when at its end it is longer than what comes within the
    lateness allowed."""
    if late is None:
        return None
    growth = late.waiting_last - late.waiting_first
    grows = growth > max(1.0, LATE_START_S * late.per_second)
    return Gate(
        GateKind.LAG,
        value=late.mean_s,
        limit=LATE_START_S,
        unit="s",
        passed=late.mean_s <= LATE_START_S and not grows,
        facts={
            "worst_s": late.worst_s,
            "grows": grows,
            "waiting_first": late.waiting_first,
            "waiting_last": late.waiting_last,
        },
    )


def conditions(checked: Sequence[Condition]) -> Gate | None:
    """Judge the consistency of the data after the run; conditions that were left out or refused do not count."""
    judged = [one for one in checked if one.holds is not None]
    refused = sum(bool(one.refused) for one in checked)
    if not judged and not refused:
        return None
    broken = [one.name for one in judged if not one.holds]
    return Gate(
        GateKind.CONSISTENCY,
        value=float(len(broken)),
        limit=0.0,
        unit="broken conditions",
        passed=not broken if judged else None,
        facts={"checked": len(judged), "broken": broken, "refused": refused},
    )


def completed(
    counted: Mapping[str, Counted], committed: Mapping[str, int], unknown: Mapping[str, int], unheard: Unheard
) -> Gate | None:
    """Judge the number of transactions that the database counted against those that the driver saw committed, over the
    whole run.

    Some may have an unknown outcome: the connection was lost during the commit, or they did not end ("unfinished" of
    `unheard`). Where executors were lost, or killed before their last report, there may be more: only too few are wrong
    then. Not judged where there were none. Of several types the one is told that is furthest off.
    """

    def of(name: str, numbers: Counted) -> Gate:
        seen, doubtful = committed.get(name, 0), unknown.get(name, 0) + unheard.unfinished
        silent = unheard.executors
        found = None if numbers.after is None else numbers.after - numbers.before
        judged = found is not None and (found < seen or not silent) and bool(found or seen)
        return Gate(
            GateKind.COMPLETED,
            value=float(found - seen) if found is not None and judged else None,
            limit=float(doubtful),
            unit="transactions beyond those seen committed",
            passed=seen <= found <= seen + doubtful if found is not None and judged else None,
            facts={"transaction": name, "counted": found, "seen": seen, "silent_executors": silent},
        )

    gates = [of(name, numbers) for name, numbers in counted.items()]
    return max(gates, key=lambda gate: (gate.passed is False, gate.passed is True, abs(gate.value or 0)), default=None)
