"""The search of a load, second by second, against a simulated server."""

import heapq
import math
import random
from bisect import bisect
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from stallmark.driver.load import Step, Timeline
from stallmark.driver.pacing import QueryQueue
from stallmark.driver.rows import ErrorRow, Rows, TransactionRow
from stallmark.driver.searched_load import (
    BACKLOG_AFTER_S,
    IOSample,
    Judgement,
    SearchedLoad,
    SearchPlan,
    TransactionLimit,
    _backlog_grows,
)
from stallmark.errors import ErrorClass
from stallmark.record import histogram as hdr
from stallmark.record.manifest.workload import LevelSeen
from stallmark.stats.ceiling_search import Ceiling, Outcome, SearchSpec, Verdict
from stallmark.transactions import find_workload

BANK = find_workload("bank").users.deck
P95 = TransactionLimit(None, "p95", 0.05, 50)
PLAN = SearchPlan("bank", SearchSpec(2, 64, 0.05, True), None, (P95,), ramp_s=0, warm_up_s=2, measure_s=10)
RATE = replace(PLAN, asked=SearchSpec(50, 1600, 0.1, False))


@dataclass
class World:
    """A server whose transactions take 10 ms up to a ceiling and 100 ms beyond it, or are not done at all; whose reads
    take `read_ms` for every user."""

    ceiling: float
    plan: SearchPlan = PLAN
    read_ms: float | None = None
    serves: float = math.inf
    tps: int = 400
    gives_up: float = 0  # share of what it does
    misses: bool = False  # gives up what it does not do
    reads: float = 0
    stalls: float = 0
    levels: list[LevelSeen] = field(default_factory=list)
    answer: Ceiling | None = None

    def run(self, until: int = 5_000) -> Timeline:
        load = SearchedLoad(self.plan, {"bank": BANK})
        low, measure_s = self.plan.asked.low, self.plan.ramp_s + self.plan.warm_up_s
        first = Step("first", int(low), 0, self.plan.ramp_s, measure_s, measure_s + self.plan.measure_s)
        timeline = Timeline((first,), reserve_s=until)
        for second in range(until):
            level = load.next.level
            load.count(self._second(second, level))
            if self.read_ms is not None:
                self.reads += 100
                self.stalls += 100 * self.read_ms * level
                load.count_io(IOSample(second + 1.0, self.reads, self.stalls))
            if judged := load.check(timeline, second + 1.0):
                timeline = judged.timeline
                self._take(judged)
            if self.answer:
                break
        return timeline

    def _take(self, judged: Judgement) -> None:
        if judged.seen:
            self.levels.append(judged.seen)
        if isinstance(judged.then, Ceiling):
            self.answer = judged.then

    def _second(self, second: int, level: float) -> Rows:
        done = int(min(level, self.serves)) if self.plan.searches_rate else self.tps
        took_ms = 10 if level <= self.ceiling else 100
        latency = hdr.encode(np.full(done, took_ms * 1000))
        name = next(iter(BANK)).name
        row: dict[str, Any] = dict.fromkeys(("rolled_back", "failed", "retries", "latency_us", "service_us"), 0)
        missed = int(level) - done if self.misses else 0
        row["failed"] = round(done * self.gives_up) + missed
        error = ErrorRow(second, "bank", name, ErrorClass.MISSED, "Stallmark", missed, missed, "no session was free")
        transactions = [TransactionRow(second, "bank", name, done, latency=latency, service=latency, **row)]
        return Rows(transactions, errors=[error] if missed else [])


def test_the_ceiling_is_found_and_every_level_is_a_step() -> None:
    world = World(23)
    timeline = world.run()
    assert world.answer == Ceiling(Outcome.FOUND, 23, 24)
    assert len(timeline.steps) == len(world.levels)
    assert [step.users for step in timeline.steps[:6]] == [2, 4, 8, 16, 32, 23]
    names = [step.name for step in timeline.steps]
    assert len(set(names)) == len(names)
    assert timeline.reserve_s == 0


def test_steps_neither_overlap_nor_are_shorter_than_planned() -> None:
    steps = World(23).run().steps
    for before, after in pairwise(steps):
        assert after.begin_s >= before.end_s
        assert after.measure_s - after.begin_s == PLAN.ramp_s + PLAN.warm_up_s
    assert all(step.end_s - step.measure_s >= PLAN.measure_s for step in steps)


@pytest.mark.parametrize("warm_up_s", [0, 0.5])
def test_an_interval_without_a_whole_second_is_measured_longer(warm_up_s: float) -> None:
    world = World(23, replace(PLAN, warm_up_s=warm_up_s, measure_s=1))
    timeline = world.run()
    assert world.answer and world.answer.outcome is Outcome.FOUND
    assert all(step.end_s - step.measure_s > 1 for step in timeline.steps)


def test_what_was_given_up_took_longer_than_any_limit() -> None:
    world = World(math.inf, gives_up=0.06)
    world.run()
    assert world.answer and world.answer.outcome is Outcome.NONE
    [limit] = world.levels[0].limits
    assert limit.value == pytest.approx(0.06, abs=0.01) and limit.verdict == Verdict.BROKE


@pytest.mark.parametrize(("stands_still", "verdict"), [(0, Verdict.HELD), (2, Verdict.HELD), (8, Verdict.BROKE)])
def test_arrivals_that_have_not_ended_took_longer_than_any_limit(stands_still: int, verdict: Verdict) -> None:
    """The server stands still in the last seconds: what was due then is in no row."""
    load, world = SearchedLoad(replace(RATE, measure_s=100), {"bank": BANK}), World(math.inf, RATE)
    timeline = Timeline((Step("50/s", 14, 0, 0, 2, 102),), reserve_s=10_000)
    for second in range(1000):
        if second % 102 < 102 - stands_still:
            load.count(world._second(second, 50))
        if judged := load.check(timeline, second + 1.0):
            timeline = judged.timeline
            if judged.seen:
                [limit] = judged.seen.limits
                assert judged.seen.verdict == verdict
                assert limit.value == pytest.approx(stands_still / 100 if stands_still > 4 else 0, abs=0.02)
                return
    raise AssertionError("the level was never judged")


def test_reads_are_held_against_their_limit() -> None:
    world = World(1000, replace(PLAN, read_ms=10.0, transactions=()), read_ms=0.5)
    world.run()
    assert world.answer and (world.answer.holds, world.answer.breaks) == (20, 21)
    [reads] = world.levels[0].limits
    assert (reads.of, reads.value, reads.limit, reads.seen) == ("reads", 1.0, 10.0, 1000)


def test_reads_of_which_nothing_is_known_hold_nothing() -> None:
    world = World(1000, replace(PLAN, read_ms=10.0, transactions=()))
    world.run()
    assert world.answer == Ceiling(Outcome.NONE, None, 2)
    assert {level.verdict for level in world.levels} == {"undecided"}


def test_too_few_transactions_are_waited_for() -> None:
    world = World(1000, tps=8)
    timeline = world.run()
    assert world.levels[0].verdict == Verdict.HELD
    assert {step.end_s - step.measure_s for step in timeline.steps} == {3 * PLAN.measure_s}
    assert world.levels[0].limits[0].seen >= 200


def test_other_loads_and_what_no_user_started_count_for_nothing() -> None:
    load = SearchedLoad(PLAN, {"bank": BANK})
    world = World(0)
    rows = world._second(3, 5)
    for row in rows.transactions:
        row.load = "another"
    timeline = Timeline((Step("first", 2, 0, 0, 2, 12),), reserve_s=1000)
    for second in range(40):
        load.count(rows)
        judged = load.check(timeline, float(second))
        timeline = judged.timeline if judged else timeline
        if judged and judged.seen:
            assert judged.seen.limits[0].seen == 0
            return
    raise AssertionError("the level was never judged")


@pytest.mark.parametrize("misses", [False, True])
def test_a_backlog_that_grows_ends_the_level_early(misses: bool) -> None:
    """Also if arrivals that waited for too long are given up."""
    world = World(math.inf, RATE, serves=500, misses=misses)
    timeline = world.run()
    first_broken = next(at for at, level in enumerate(world.levels) if level.verdict == "broke")
    step = timeline.steps[first_broken]
    assert world.levels[first_broken].backlog and world.levels[first_broken].level == 800
    assert step.end_s - step.begin_s < RATE.warm_up_s + RATE.measure_s
    assert step.begin_s <= step.measure_s < step.end_s
    assert world.answer and world.answer.holds and world.answer.holds < 500 * 1.25 < world.answer.breaks * 1.25


def test_users_have_no_backlog() -> None:
    world = World(math.inf, tps=200)
    world.run()
    assert not any(level.backlog for level in world.levels)
    assert world.answer == Ceiling(Outcome.AT_LEAST, 64, None)


@pytest.mark.parametrize("behind", [False, True])
def test_a_search_of_all_loads_multiplies_the_rate_of_each_and_none_may_fall_behind(behind: bool) -> None:
    plan = replace(
        PLAN, load=None, asked=SearchSpec(0.5, 8, 0.1, False, multiple=True), rates={"bank": 100, "mail": 50}
    )
    assert plan.rates_at(2) == {"bank": 200, "mail": 100}
    assert plan.users_at("bank", 2, 7) == 7
    load = SearchedLoad(plan, {"bank": BANK, "mail": BANK, "beside": BANK})
    timeline = Timeline((Step("0.5 ×", 14, 0, 0, 2, 12),), reserve_s=1000)
    world = World(math.inf)
    for second in range(40):
        rows = world._second(second, 0.5)
        for name in ("bank", "beside") if behind else ("bank", "mail", "beside"):
            load.count(Rows([replace_load(row, name) for row in rows.transactions]))
        if judged := load.check(timeline, second + 1.0):
            assert judged.seen and judged.seen.backlog is behind, "the bank does more than all are due"
            assert judged.seen.verdict == (Verdict.BROKE if behind else Verdict.HELD)
            if not behind:
                assert judged.timeline.steps[-1].name == "1 ×"
                assert judged.timeline.steps[-1].users == 14
                assert judged.seen.limits[0].seen == 2 * 400 * 10
            return
    raise AssertionError("the level was never judged")


def replace_load(row: TransactionRow, name: str) -> TransactionRow:
    return TransactionRow(**{field: getattr(row, field) for field in row.__struct_fields__} | {"load": name})


BOTH = replace(
    PLAN,
    load=None,
    asked=SearchSpec(0.5, 8, 0.1, False, multiple=True),
    transactions=(replace(P95, limit_ms=1e6),),
    rates={"bank": 100, "reports": 2},
    measure_s=20,
)


def searched_with_queries(
    serves: float, plan: SearchPlan = BOTH, loads=("bank",), holes: int = 0
) -> tuple[SearchedLoad, list[Judgement]]:
    """Search a bank that does all that is due, beside four streams that serve so many queries per second. Every so
    many seconds, as `holes` says, nothing is told of them."""
    load, judged = SearchedLoad(plan, dict.fromkeys(loads, BANK)), []
    timeline = Timeline((Step("0.5 ×", 14, 0, 0, 2, 2 + plan.measure_s),), reserve_s=10_000)
    due = waiting = 0.0
    world = World(math.inf, RATE)
    for second in range(10_000):
        level = load.next.level
        load.count(world._second(second, 100 * level))
        due, waiting = due + 2 * level, max(0.0, waiting + 2 * level - serves)
        if not holes or second % holes:
            load.count_queries(second + 0.99, {"reports": QueryQueue(4, int(due), int(waiting))})
        if one := load.check(timeline, second + 1.0):
            timeline = one.timeline
            if one.seen:
                judged.append(one)
                waiting = 0.0  # forgotten where the rate changes
            if isinstance(one.then, Ceiling):
                return load, judged
    raise AssertionError("the search never ended")


@pytest.mark.parametrize("holes", [0, 2, 5])
def test_ever_more_queries_end_a_level_early_and_their_load_is_named(holes: int) -> None:
    _, judged = searched_with_queries(serves=4.0, holes=holes)
    ceiling = judged[-1].then
    assert isinstance(ceiling, Ceiling) and ceiling.holds and ceiling.breaks
    assert 2 <= ceiling.holds < ceiling.breaks <= 2 * 1.6, "at twice the rate four queries per second are due"
    for one in judged:
        assert one.seen and one.seen.backlog is (one.seen.verdict == "broke")
        assert one.seen.behind == (("reports",) if one.seen.backlog else ())
        if one.seen.backlog:
            ended = one.timeline.steps[-1 if isinstance(one.then, Ceiling) else -2]
            assert ended.end_s - ended.measure_s <= 2 * BACKLOG_AFTER_S, "the time that it warmed up is not judged"


def test_queries_that_are_served_break_nothing() -> None:
    _, judged = searched_with_queries(serves=100)
    assert judged[-1].then == Ceiling(Outcome.AT_LEAST, 8, None)


def test_queries_that_are_not_searched_break_nothing() -> None:
    _, judged = searched_with_queries(serves=0, plan=replace(BOTH, rates={"bank": 100}))
    assert judged[-1].then == Ceiling(Outcome.AT_LEAST, 8, None)


def test_where_queries_alone_have_a_rate_limits_are_of_all_transactions_beside_them() -> None:
    plan = replace(BOTH, rates={"reports": 2})
    _, judged = searched_with_queries(serves=100, plan=plan)
    assert judged[0].seen and judged[0].seen.limits[0].seen == 50 * plan.measure_s
    slow = replace(plan, transactions=(replace(P95, limit_ms=1),))
    assert searched_with_queries(serves=100, plan=slow)[1][-1].then == Ceiling(Outcome.NONE, None, 0.5)


def queues_of(rng: random.Random, busy: float, streams: int, service_s: float, length_s: int) -> dict[int, QueryQueue]:
    """Return the queue of streams that are busy for such a share of their time, second by second."""
    free, moment, due, begun = [0.0] * streams, 0.0, [], []
    while (moment := moment + rng.expovariate(busy * streams / service_s)) < length_s:
        start = max(moment, heapq.heappop(free))
        heapq.heappush(free, start + rng.lognormvariate(-0.5, 1) * service_s)
        due.append(moment)
        begun.append(start)
    begun.sort()
    counts = [(bisect(due, second), bisect(begun, second)) for second in range(length_s + 1)]
    return {second: QueryQueue(streams, came, came - left) for second, (came, left) in enumerate(counts)}


@pytest.mark.thorough
@pytest.mark.parametrize("streams", [1, 4])
def test_streams_with_time_to_spare_are_rarely_called_behind_and_those_without_nearly_always(streams) -> None:
    def behind(busy: float) -> float:
        rng, found = random.Random(1), 0
        for _ in range(100):
            seen = queues_of(rng, busy, streams, service_s=5, length_s=120)
            found += any(_backlog_grows(seen, 1, until) for until in range(11, 121))
        return found / 100

    assert behind(0.7) <= 0.05
    assert behind(2.0) >= 0.85
