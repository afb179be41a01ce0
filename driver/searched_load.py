"""The search for the ceiling of a load, or of all at once, during the run: each level is judged when it has been
measured, and the next one follows until the answer is known.

Transactions are counted by executors in whole seconds, I/Os by a collector of the server, of all its data files and
processes. Both come late: a level is judged BETWEEN_LEVELS_S after it ended, at its own load. An inconclusive level, or
one of too few transactions, is extended. In an open loop a level ends early if arrivals are not served and their
backlog grows: its latency would depend on the time waited alone. The backlog of queries is counted, not estimated.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from stallmark.driver.load import BETWEEN_LEVELS_S, Step, Timeline
from stallmark.driver.pacing import QueryQueue
from stallmark.driver.rows import Rows
from stallmark.errors import ErrorClass
from stallmark.record.manifest.workload import LevelSeen, LimitSeen
from stallmark.stats.ceiling_search import Ceiling, LevelResult, Next, SearchSpec, Verdict, search
from stallmark.stats.thresholds import CEILING_LONGEST
from stallmark.transactions.workload import Transaction

REPORTED_AFTER_S = 2.0  # all executors have reported a second after this time

BACKLOG_AFTER_S = 10
"""Seconds of a level by which a backlog is judged."""
BACKLOG = 0.1
"""The share of the arrivals that may be missing from what was done: chance leaves less out of 300."""
_CHANCE = 3
"""Standard deviations that chance leaves out."""


class IOSample(NamedTuple):
    """Reads of data files since any time before the run, and the time they took."""

    t: float
    reads: float
    read_ms: float | None


@dataclass(frozen=True)
class TransactionLimit:
    """A limit on a percentile: of one `transaction`, or of all. `allowed` is the share that may take longer."""

    transaction: str | None
    percentile: str
    allowed: float
    limit_ms: float


@dataclass(frozen=True)
class SearchPlan:
    """The plan of a search, and the times of a step.

    Levels are numbers of users or rates of one load. If `load` is None, they are multiples of the `rates` of all loads
    that have one.
    """

    load: str | None
    asked: SearchSpec
    read_ms: float | None
    transactions: tuple[TransactionLimit, ...]
    ramp_s: float
    warm_up_s: float
    measure_s: float
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def searches_rate(self) -> bool:
        return not self.asked.whole

    def rates_at(self, level: float) -> dict[str, float]:
        """Return the rates that loads have at a level, per second; none where it is of users."""
        if self.load is not None:
            return {self.load: level} if self.searches_rate else {}
        return {name: level * rate for name, rate in self.rates.items()}

    def users_at(self, load: str, level: float, otherwise: int) -> int:
        """Return the users of a load at a level, or `otherwise` if the level does not set them."""
        return round(level) if load == self.load and not self.searches_rate else otherwise


@dataclass(frozen=True)
class Judgement:
    """The result of a check of the level under way: the timeline from now on, and what changes.

    `seen` is the level that has ended, or None if it continues. `then` follows it: the next level, or the answer.
    """

    timeline: Timeline
    seen: LevelSeen | None = None
    then: Next | Ceiling | None = None


@dataclass(frozen=True)
class _Backlog:
    """A backlog that grows since a second: of transactions, or of the queries of the loads `behind`."""

    since_s: float
    behind: tuple[str, ...] = ()


@dataclass
class _Limit:
    """A limit on transactions, with the slow and the completed ones by second."""

    limit: TransactionLimit
    slow: Counter[int] = field(default_factory=Counter)
    done: Counter[int] = field(default_factory=Counter)


class SearchedLoad:
    """The search under way. Call `count_io` from any thread, all other methods from one thread. `of_users` holds the
    transactions that users of each load start.
    """

    def __init__(self, plan: SearchPlan, of_users: Mapping[str, Iterable[type[Transaction]]]):
        self.plan = plan
        self._io: list[IOSample] = []
        # Where queries alone have a rate to multiply, limits on transactions are of all that run beside them.
        rated = [name for name in plan.rates if name in of_users] or list(of_users)
        names = rated if plan.load is None else [plan.load]
        self._of_users = {(name, kind.name) for name in names for kind in of_users[name]}
        self._with_users = frozenset(of_users)
        self._queues: dict[str, dict[int, QueryQueue]] = {}  # the last of each second
        self._limits = [_Limit(limit) for limit in plan.transactions]
        self._served = {name: Counter[int]() for name in names}  # arrivals that were done or given up, by second
        first = search(plan.asked, [])
        assert isinstance(first, Next)
        self.next: Next = first
        self._seen: list[LevelResult] = []
        self._over = False

    @property
    def last(self) -> LevelResult | None:
        """Return the level that was judged last."""
        return self._seen[-1] if self._seen else None

    def count_io(self, sample: IOSample) -> None:
        """Add a sample. If it counts less than the last one, the counters were reset, and earlier samples are
        dropped."""
        if self._io and sample.reads < self._io[-1].reads:
            self._io = []
        self._io.append(sample)

    def count(self, reported: Rows) -> None:
        """Count what executors report of the loads that are searched."""
        from stallmark.record import histogram as hdr

        for row in reported.transactions:
            if (row.load, row.transaction) not in self._of_users:
                continue
            self._served[row.load][row.second] += row.committed + row.rolled_back + row.failed
            for counted in self._limits:
                if counted.limit.transaction in (None, row.transaction):
                    places, counts = hdr.used(row.latency)
                    slow = int(counts[hdr.VALUES_US[places] > counted.limit.limit_ms * 1000].sum())
                    counted.done[row.second] += int(counts.sum()) + row.failed
                    # Transactions given up never ended, so they count as slow.
                    counted.slow[row.second] += slow + row.failed
        for error in reported.errors:
            # An arrival that was never sent is no sign that the load keeps up.
            if error.error_class is ErrorClass.MISSED and (error.load, error.transaction) in self._of_users:
                self._served[error.load][error.second] -= error.given_up

    def count_queries(self, now_s: float, queues: Mapping[str, QueryQueue]) -> None:
        """Note how many queries wait now, of each load that has them at a rate."""
        for name in queues.keys() & self.plan.rates.keys():
            self._queues.setdefault(name, {})[int(now_s)] = queues[name]

    def check(self, timeline: Timeline, now_s: float) -> Judgement | None:
        """Judge the level under way, the last step of the timeline, if it is time."""
        step = timeline.steps[-1]
        # During the ramp neither transactions nor a backlog belong to the level.
        if self._over or now_s < step.begin_s + step.ramp_s:
            return None
        if self.plan.searches_rate and (backlog := self._backlog(step, now_s)):
            until = math.floor(now_s - REPORTED_AFTER_S)
            return self._judge(timeline.ending(until, min(step.measure_s, backlog.since_s)), now_s, backlog)
        if now_s < step.end_s + BETWEEN_LEVELS_S:
            return None
        limits = self._limits_of(step)
        longer_s = step.end_s + self.plan.measure_s
        # Too close to call: measure longer, up to CEILING_LONGEST times as long as planned.
        if _verdict(limits) == Verdict.UNDECIDED and longer_s <= step.measure_s + CEILING_LONGEST * self.plan.measure_s:
            return Judgement(timeline.ending(longer_s))
        return self._judge(timeline, now_s)

    def _judge(self, timeline: Timeline, now_s: float, backlog: _Backlog | None = None) -> Judgement:
        step = timeline.steps[-1]
        limits = self._limits_of(step)
        verdict = Verdict.BROKE if backlog else _verdict(limits, nearest=True)
        seen = LevelSeen(
            level=self.next.level,
            tried=self.next.reason.value,
            verdict=verdict.value,
            backlog=backlog is not None,
            behind=backlog.behind if backlog else (),
            limits=limits,
        )
        self._seen.append(LevelResult(self.next.level, verdict))
        then = search(self.plan.asked, self._seen)
        if isinstance(then, Ceiling):
            self._over = True
            return Judgement(timeline.without_reserve(), seen, then)
        self.next = then
        return Judgement(timeline.followed_by(self._step(timeline, then.level, now_s)), seen, then)

    def _step(self, timeline: Timeline, level: float, now_s: float) -> Step:
        plan, before = self.plan, timeline.steps[-1]
        name, again = plan.asked.name_of(level), sum(earlier.level == level for earlier in self._seen)
        head = timeline.steps[0].name.removesuffix(plan.asked.name_of(plan.asked.low))
        others = before.users - (0 if plan.searches_rate else round(self._seen[-1].level))
        measure_s = now_s + plan.ramp_s + plan.warm_up_s
        return Step(
            name=f"{head}{name}" + (f" ({again + 1})" if again else ""),
            users=others + (0 if plan.searches_rate else round(level)),
            begin_s=now_s,
            ramp_s=plan.ramp_s,
            measure_s=measure_s,
            end_s=measure_s + plan.measure_s,
        )

    def _backlog(self, step: Step, now_s: float) -> _Backlog | None:
        """Return the backlog of a level, or None if none grows or the level is too short to judge."""
        since, until = math.ceil(step.begin_s + step.ramp_s + 1), math.floor(now_s - REPORTED_AFTER_S)
        until = min(until, math.floor(step.end_s))
        # A backlog of a few seconds may be chance.
        if until - since < BACKLOG_AFTER_S:
            return None
        lately = max(since, until - 2 * BACKLOG_AFTER_S)
        if self._transactions_wait(lately, until):
            return _Backlog(lately)
        behind = tuple(name for name, seen in self._queues.items() if _backlog_grows(seen, since, until))
        return _Backlog(lately, behind) if behind else None

    def _transactions_wait(self, since: int, until: int) -> bool:
        """Return True if the backlog of a load grows: more arrivals are missing in both halves of the time than chance
        explains."""
        middle = (since + until) // 2
        halves = [range(since, middle), range(middle, until)]
        return any(
            all(_falls_behind(rate, self._served[name], half) for half in halves)
            for name, rate in self.plan.rates_at(self.next.level).items()
            if name in self._with_users
        )

    def _limits_of(self, step: Step) -> tuple[LimitSeen, ...]:
        from stallmark.stats.ceiling_search import enough, judge

        seconds = range(math.ceil(step.measure_s), math.floor(step.end_s))
        seen_limits = []
        if self.plan.read_ms is not None:
            reads, stalls = self._reads(seconds)
            seen = judge(stalls, reads, self.plan.read_ms)
            seen_limits.append(LimitSeen(of="reads", limit_ms=self.plan.read_ms, **seen.figures()))
        unended = self._unended_share(seconds)
        for transactions in self._limits:
            slow, done = (
                [float(counted[second]) for second in seconds] for counted in (transactions.slow, transactions.done)
            )
            never = unended * sum(done)
            # Arrivals that never ended are slow. They count in the last second, for want of a time of their own.
            if seconds:  # a measured interval of 1 s may hold no whole second: the level is then measured longer
                slow[-1], done[-1] = slow[-1] + never, done[-1] + never
            limit, allowed = transactions.limit, transactions.limit.allowed
            seen = judge(slow, done, allowed, enough(allowed))
            seen_limits.append(
                LimitSeen(
                    of="transactions",
                    transaction=limit.transaction,
                    percentile=limit.percentile,
                    limit_ms=limit.limit_ms,
                    **seen.figures(),
                )
            )
        return tuple(seen_limits)

    def _unended_share(self, seconds: range) -> float:
        """Return the number of due arrivals that did not end, as a share of those that ended, in `seconds`. A number
        that chance explains counts as 0."""
        missing = served = 0.0
        for name, rate in self.plan.rates_at(self.next.level).items():
            if name in self._with_users:
                done, due = sum(self._served[name][second] for second in seconds), rate * len(seconds)
                missing += due - done if due - done > _CHANCE * math.sqrt(due) else 0
                served += done
        return missing / served if served else 0.0

    def _reads(self, seconds: range) -> tuple[list[float], list[float]]:
        """Return the reads of data files and the time they took, between the samples within these seconds."""
        inside = [
            sample
            for sample in list(self._io)
            if seconds.start <= sample.t <= seconds.stop and sample.read_ms is not None
        ]
        pairs = list(pairwise(inside))
        return [b.reads - a.reads for a, b in pairs], [(b.read_ms or 0.0) - (a.read_ms or 0.0) for a, b in pairs]


def _backlog_grows(seen: Mapping[int, QueryQueue], since: int, until: int) -> bool:
    """Return True if the backlog of queries grows: in both halves of the time by more than the streams execute at once,
    and more than chance explains.

    In a simulation, streams that are busy for 70 % of their time are called overloaded in at most one level of twenty.
    Streams that get twice the load they can carry nearly always are, once each has ended about ten queries.
    """
    seconds = sorted(second for second in seen if since <= second <= until)
    middle = (since + until) // 2
    if not any(second < middle for second in seconds) or seconds[-1] <= middle:
        return False
    points = [
        seen[second] for second in (seconds[0], next(second for second in seconds if second >= middle), seconds[-1])
    ]
    return all(
        after.waiting - before.waiting
        > max(after.streams + math.sqrt(after.due - before.due), BACKLOG * (after.due - before.due))
        for before, after in pairwise(points)
    )


def _verdict(limits: Sequence[LimitSeen], nearest: bool = False) -> Verdict:
    """Return the verdict on a level: one limit that breaks breaks it, and all must hold. With `nearest` one in the
    balance counts by what was seen, as far as anything was."""
    verdicts = {_nearest(limit) if nearest else Verdict(limit.verdict) for limit in limits}
    if Verdict.BROKE in verdicts:
        return Verdict.BROKE
    return Verdict.UNDECIDED if Verdict.UNDECIDED in verdicts else Verdict.HELD


def _nearest(limit: LimitSeen) -> Verdict:
    if limit.verdict != Verdict.UNDECIDED or limit.value is None:
        return Verdict(limit.verdict)
    return Verdict.BROKE if limit.value > limit.limit else Verdict.HELD


def _falls_behind(rate: float, served: Counter[int], seconds: range) -> bool:
    """Return True if more arrivals that were due at this rate are missing than chance explains."""
    due = rate * len(seconds)
    return due - sum(served[second] for second in seconds) > BACKLOG * due + _CHANCE * math.sqrt(due)
