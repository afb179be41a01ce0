"""Validity gates: what must hold for a step's figures to stand for the load that the workload means.

Each is a pure function and gives None where it does not apply. All but the limits of the 90th percentile void a step:
to take longer than a limit is what a slow variant is found to do, and it can still be compared.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stallmark.analysis.read.deferred_queue import Lateness
from stallmark.analysis.read.workload import Kind, Workload
from stallmark.analysis.summary import Gate, TransactionSummary
from stallmark.analysis.validity.dealing import deviation
from stallmark.format import listed, number, percent, plural, spoken
from stallmark.record.manifest import Condition, Counted, Unheard
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


def mix(workload: Workload, done: Mapping[str, int], under_way: Mapping[str, float], executors: int) -> Gate | None:
    """`done` counts the transactions that ended in the interval, failed ones apart; `under_way` is how many of each
    there were on average; both by name. Judges the type that is furthest from its share of the deck, for what is
    allowed.
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
        name="mix",
        asks="each of the users’ transactions has its share of the deck, up to 1 % or what chance explains",
        figure=f"{_share(abs(off))} off ({spoken(name)})",
        allowed=f"≤ {_share(allowed)}" + (" (chance)" if allowed > MIX else ""),
        value=abs(off),
        limit=allowed,
        unit="relative deviation",
        passed=abs(off) <= allowed,
        sentence=f"The mix was not that of the deck: {_share(abs(off))} {'more' if off > 0 else 'fewer'} "
        f"{plural(name)} than its share ({_share(allowed)} allowed).",
    )


@dataclass(frozen=True)
class Following:
    """How many `followers` came, in an interval and before it, and how many transactions that give rise to them."""

    kind: Kind
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
        """Followers that were still to come when the interval began, and when it ended."""
        begin = self.kind.each * self.sources_before - self.followers_before
        return max(0.0, begin), max(0.0, begin + self.due - self.followers)

    def deviation(self, executors: int) -> float:
        """Standard deviation of how many come in an interval, of those due.

        Those under way at its ends are two Poisson numbers; several sources of one follower count each for its part.
        Sources that roll back give rise to none, and there are as many as chance has it (Poisson). Where several make
        one, each executor keeps a part of one at each end (uniform, variance 1/12).
        """
        part = min(1.0, self.kind.each)
        return math.sqrt(part * sum(self.under_way) + part**2 * self.rolled_back + executors / 6)


def followers(found: Sequence[Following], executors: int, seconds: float) -> Gate | None:
    """What the market brings against what users have ordered, in an interval of so many seconds. Judges the type that
    is furthest from it."""
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
    names = f"{plural(worst.kind.name)} per {spoken(worst.kind.follows or '')}"
    before, after = worst.under_way
    got = number(worst.followers / worst.sources)
    return Gate(
        name="followers",
        asks="the market brings what the users’ orders give rise to, up to 1 % or what is under way at both ends",
        figure=f"{got} {names}",
        allowed=f"{number(worst.kind.each)} ± {_share(allowed)}",
        value=value,
        limit=allowed,
        unit="relative deviation",
        passed=value <= allowed,
        sentence=f"{names}: {got} where {number(worst.kind.each)} are expected; "
        f"{before:,.0f} were under way when the measured interval began and {after:,.0f} when it ended"
        + (": the warm-up was too short, or the market fell behind." if after > before else "."),
    )


def aborts(transactions: Sequence[TransactionSummary]) -> Gate | None:
    """Calls that the server ended because of others, tried again or given up, for each transaction that ended."""
    ended = sum(one.ended for one in transactions)
    if not ended:
        return None
    rate = sum(one.aborted for one in transactions) / ended
    most = max(transactions, key=lambda one: one.aborted)
    whose = f", {spoken(most.name)} {_share(most.aborted / most.ended)}" if most.aborted and most.ended else ""
    return Gate(
        name="aborts",
        asks="few transactions are ended by deadlock, serialisation failure or lock timeout, tried again or not",
        figure=f"{_share(rate)}{whose}",
        allowed=f"≤ {_share(ABORTED)}",
        value=rate,
        limit=ABORTED,
        unit="per transaction",
        passed=rate <= ABORTED,
        sentence=f"Transactions were in each other’s way: {_share(rate)} were aborted by deadlocks, serialisation "
        f"failures or lock timeouts (1 % allowed{whose}), so contention was measured more than storage.",
    )


def locks(wait_share: Mapping[str, float] | None) -> Gate | None:
    if wait_share is None:
        return None
    value = wait_share["lock"]
    return Gate(
        name="locks",
        asks="users spend little of their time waiting for each other’s locks",
        figure=_share(value),
        allowed=f"≤ {_share(LOCKED)}",
        value=value,
        limit=LOCKED,
        unit="share of the users’ time",
        passed=value <= LOCKED,
        sentence=f"Users spent {_share(value)} of their time waiting for each other’s locks ({percent(LOCKED)} "
        "allowed): more customers, or fewer users, would ask more of the storage.",
    )


def limits(workload: Workload, transactions: Sequence[TransactionSummary]) -> Gate | None:
    """The share of each type that took longer than its limit. Ten at least must have, to fail one of a small sample."""
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
        name="p90 limits",
        asks="nine in ten of each type take no longer than its limit",
        figure=f"{_share(over)} of {spoken(worst.name)} over {workload.find(worst.name).limit_s:g} s",
        allowed=f"≤ {_share(OVER_LIMIT)}",
        value=over,
        limit=OVER_LIMIT,
        unit="share over the limit",
        passed=not slow,
        sentence="More than a tenth took longer than the limit: "
        + listed(
            [
                f"{spoken(one.name)} ({_share(one.over_limit or 0)} over {workload.find(one.name).limit_s:g} s)"
                for one in slow
            ]
        )
        + ".",
        voids=False,
    )


def lag(late: Lateness | None) -> Gate | None:
    """The queue of what is due grows when at the end it is longer than what comes within the lateness allowed."""
    if late is None:
        return None
    growth = late.waiting_last - late.waiting_first
    grows = growth > max(1.0, LATE_START_S * late.per_second)
    said = [f"started {number(late.mean_s)} s late on average"] if late.mean_s > LATE_START_S else []
    said += [f"queued up from {number(late.waiting_first)} to {number(late.waiting_last)}"] if grows else []
    return Gate(
        name="market lag",
        asks="what the market and the timers bring starts when it is due, and no queue grows",
        figure=f"{number(late.mean_s)} s late, {number(late.worst_s)} s at most"
        + (f", queue from {number(late.waiting_first)} to {number(late.waiting_last)}" if grows else ""),
        allowed=f"≤ {LATE_START_S:g} s",
        value=late.mean_s,
        limit=LATE_START_S,
        unit="s",
        passed=late.mean_s <= LATE_START_S and not grows,
        sentence=f"The market fell behind: its transactions {listed(said)}.",
    )


def conditions(checked: Sequence[Condition]) -> Gate | None:
    """The consistency of the data after the run; those that were left out do not count."""
    judged = [one for one in checked if one.holds is not None]
    if not judged:
        return None
    broken = [f"“{one.name}”" for one in judged if not one.holds]
    return Gate(
        name="consistency",
        asks="every condition holds after the run",
        figure=f"{len(judged) - len(broken)} of {len(judged)} hold",
        allowed="all",
        value=float(len(broken)),
        limit=0.0,
        unit="broken conditions",
        passed=not broken,
        sentence=f"The data were wrong after the run: the condition{'s' * (len(broken) > 1)} {listed(broken)} "
        f"{'do' if len(broken) > 1 else 'does'} not hold.",
    )


def completed(
    counted: Mapping[str, Counted], committed: Mapping[str, int], unknown: Mapping[str, int], unheard: Unheard
) -> Gate | None:
    """What the database counts of a transaction against what the driver saw committed over the whole run, where some
    may have an unknown outcome: the connection was lost while they were being committed, or they did not end
    ("unfinished" of `unheard`). Not judged where "silent" executors were killed before their last report."""
    for name, numbers in counted.items():
        before, after = numbers.before, numbers.after
        saw, doubtful = committed.get(name, 0), unknown.get(name, 0) + unheard.unfinished
        gate = Gate(
            name="completed",
            asks="the database counts what the driver saw committed, up to unknown outcomes",
            figure="not counted",
            allowed="equal",
            value=None,
            limit=float(doubtful),
            unit="transactions beyond those seen committed",
            passed=None,
            sentence="",
        )
        if after is None:
            return gate
        found = after - before
        if silent := unheard.silent:
            return replace(
                gate, figure=f"{found:,} counted, {saw:,} seen, {silent:,} executor killed before its last report"
            )
        or_so = f" and {doubtful:,} of unknown outcome" if doubtful else ""
        return Gate(
            name=gate.name,
            asks=gate.asks,
            figure=f"{found:,} counted, {saw:,} seen{or_so}",
            allowed=f"up to {doubtful:,} more" if doubtful else gate.allowed,
            value=float(found - saw),
            limit=gate.limit,
            unit=gate.unit,
            passed=saw <= found <= saw + doubtful,
            sentence=f"The database counts {found:,} {plural(name)}, the driver saw {saw:,} committed{or_so}: "
            + ("commits were lost." if found < saw else "some were done twice, or by somebody else."),
        )
    return None


def _share(value: float) -> str:
    """Two digits, as thresholds of a few per cent need."""
    return f"{value * 100:.2g} %" if value < 0.1 else percent(value)
