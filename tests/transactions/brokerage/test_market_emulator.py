"""The market emulator: when it answers, what the tape says, and a whole market that goes on by a clock of its own."""

import heapq
import math
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.transactions.brokerage.context import FEED, OTHER_SHARES, MarketEmulator, Order, TapeReport
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult

pytestmark = pytest.mark.thorough

START = datetime(2026, 11, 23, 10)
SECURITIES = 50


def price(security: int, moment: datetime) -> int:
    """Another one at every moment and of every security."""
    return 2_000 + (security * 37 + round((moment - START).total_seconds() * 100)) % 1_000


@dataclass
class World:
    """A market, its clock, and what it has had executed."""

    seed: int = 1
    now_: datetime = START
    posted: list[tuple] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.market = MarketEmulator(SECURITIES, price, self, self.post, rng, TradeResult, MarketFeed)

    def now(self) -> datetime:
        return self.now_

    def post(self, kind: type, inputs: tuple, after_s: float) -> None:
        self.posted.append((kind, inputs, after_s))

    def wait(self, seconds: float) -> None:
        self.now_ += timedelta(seconds=seconds)

    def feeds(self) -> list[tuple[TapeReport, ...]]:
        return [inputs for kind, inputs, _ in self.posted if kind is MarketFeed]


def delays(sent: int, seed: int = 1) -> list[float]:
    world = World(seed)
    for trade in range(sent):
        world.market.send(Order(trade, trade % SECURITIES, 100))
    assert {kind for kind, _, _ in world.posted} == {TradeResult}
    return [after_s for _, _, after_s in world.posted]


def test_answers_come_as_the_facts_say() -> None:
    """A second, and a negative exponential time with a mean of one second, cut at five."""
    beyond = [after_s - 1 for after_s in delays(40_000)]
    assert min(beyond) >= 0
    assert max(beyond) == 5
    assert statistics.fmean(beyond) == pytest.approx(1 - math.exp(-5), abs=0.02)
    for quantile in (0.1, 0.5, 0.9, 0.99):
        after = -math.log(1 - quantile)
        assert statistics.fmean(x <= after for x in beyond) == pytest.approx(quantile, abs=0.01)
    assert statistics.fmean(x == 5 for x in beyond) == pytest.approx(math.exp(-5), abs=0.002)


@given(st.integers())
def test_answers_are_a_function_of_the_generator(seed: int) -> None:
    assert delays(50, seed) == delays(50, seed)
    assert all(1 <= after_s <= 6 for after_s in delays(50, seed))


def test_twenty_reports_are_a_feed() -> None:
    world = World()
    for trade in range(25):
        world.market.report(Order(trade, trade, 100 + trade), 2_500 + trade)
        assert len(world.posted) == (trade + 1) * 2 // FEED
    assert {(kind, after_s) for kind, _, after_s in world.posted} == {(MarketFeed, 0.0)}
    one, other = world.feeds()
    assert len(one) == len(other) == FEED
    assert (one + other)[::2] == tuple(TapeReport(n, 2_500 + n, 100 + n) for n in range(20))
    for report in (one + other)[1::2]:
        assert report == (report.security, price(report.security, START), OTHER_SHARES)
        assert 0 <= report.security < SECURITIES


def test_other_reports_are_of_any_security() -> None:
    world = World()
    for trade in range(20_000):
        world.market.report(Order(trade, 0, 100), 2_500)
    others = Counter(report.security for feed in world.feeds() for report in feed[1::2])
    assert len(others) == SECURITIES
    assert all(times / 20_000 == pytest.approx(1 / SECURITIES, abs=0.005) for times in others.values())


def test_awaited_prices_are_reported_when_they_are_due_and_not_before() -> None:
    world = World()
    due = [START + timedelta(seconds=seconds) for seconds in (3, 1, 1)]
    for security, at in zip((11, 12, 13), due, strict=True):
        world.market.await_price(security, at)

    def others(reports: int) -> list[TapeReport]:
        before = len(world.feeds())
        for trade in range(FEED // 2):
            world.market.report(Order(trade, 0, 100), 2_500)
        [feed] = world.feeds()[before:]
        return list(feed[1::2])[:reports]

    assert all(report.cents == price(report.security, START) for report in others(10))
    world.wait(2)
    first, second, *rest = others(10)
    assert first == TapeReport(12, price(12, due[1]), OTHER_SHARES)
    assert second == TapeReport(13, price(13, due[2]), OTHER_SHARES)
    assert all(report.cents == price(report.security, world.now()) for report in rest)
    world.wait(5)
    assert others(1) == [TapeReport(11, price(11, due[0]), OTHER_SHARES)]


@given(st.lists(st.tuples(st.integers(0, SECURITIES - 1), st.integers(0, 10_000)), max_size=40))
def test_every_awaited_price_is_reported_once_in_the_order_of_time(awaited: list[tuple[int, int]]) -> None:
    world = World()
    moments = [(security, START + timedelta(milliseconds=later)) for security, later in awaited]
    for security, at in moments:
        world.market.await_price(security, at)
    world.wait(10)
    for trade in range(max(1, math.ceil(len(moments) / 10)) * 10):
        world.market.report(Order(trade, 0, 100), 2_500)
    others = [report for feed in world.feeds() for report in feed[1::2]]
    in_order = sorted(moments, key=lambda each: each[1])
    assert others[: len(moments)] == [
        TapeReport(security, price(security, at), OTHER_SHARES) for security, at in in_order
    ]


class Exchange(World):
    """The whole way of orders, by events: 60 % at the market, the others at a limit; feeds trigger these, as the
    transaction does."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.rng = random.Random(seed)
        self.waiting: dict[int, tuple[int, bool, int]] = {}  # by trade: security, whether it sells, the limit
        self.placed: dict[int, datetime] = {}
        self.due: dict[int, datetime] = {}  # limit orders
        self.triggered: dict[int, datetime] = {}
        self.executed: dict[int, datetime] = {}
        self.fed = 0
        self._events: list[tuple] = []
        self._order = count()

    def post(self, kind: type, inputs: tuple, after_s: float) -> None:
        self.at(after_s, kind, inputs)

    def at(self, after_s: float, what: type | None, inputs: tuple) -> None:
        moment = self.now_ + timedelta(seconds=after_s)
        heapq.heappush(self._events, (moment, next(self._order), what, inputs))

    def run(self) -> None:
        while self._events:
            self.now_, _, what, inputs = heapq.heappop(self._events)
            if what is TradeResult:
                order, cents = inputs
                assert order.trade not in self.executed
                assert cents == price(order.security, self.now_)
                self.executed[order.trade] = self.now_
                self.market.report(order, cents)
            elif what is MarketFeed:
                assert len(inputs) == FEED
                self.fed += 1
                for report in inputs:
                    self.trigger(report)
            else:
                self.place(*inputs)

    def place(self, trade: int) -> None:
        security, self.placed[trade] = self.rng.randrange(SECURITIES), self.now_
        if self.rng.random() < 0.6:
            self.market.send(Order(trade, security, 100))
            return
        self.due[trade] = self.now_ + timedelta(seconds=self.rng.uniform(0, 10))
        self.waiting[trade] = security, self.rng.random() < 0.5, price(security, self.due[trade])
        self.market.await_price(security, self.due[trade])

    def trigger(self, report: TapeReport) -> None:
        for trade, (security, sells, limit) in list(self.waiting.items()):
            reached = limit <= report.cents if sells else limit >= report.cents
            if security == report.security and reached:
                del self.waiting[trade]
                self.triggered[trade] = self.now_
                self.market.send(Order(trade, security, 100))


def test_a_whole_market() -> None:
    """50 orders per second for ten minutes, and then nobody orders any more."""
    exchange, orders = Exchange(seed=1), 30_000
    for trade in range(orders):
        exchange.at(trade / 50, None, (trade,))
    exchange.run()

    # Every limit order is triggered, but for the last, whose prices no report carries any more.
    assert len(exchange.placed) == orders
    assert len(exchange.executed) == orders - len(exchange.waiting)
    assert len(exchange.waiting) < 10 * 50 * 0.4
    assert exchange.fed == len(exchange.executed) * 2 // FEED

    # Orders at the market are executed 1 to 6 s later, and limit orders as much after they were triggered.
    sent = {trade: exchange.triggered.get(trade, exchange.placed[trade]) for trade in exchange.executed}
    took = [(exchange.executed[trade] - sent[trade]).total_seconds() for trade in sent]
    assert min(took) >= 1
    assert max(took) <= 6
    assert statistics.fmean(took) == pytest.approx(2 - math.exp(-5), abs=0.03)

    # A limit order is triggered before its price is due where another report reached it by chance, else with the next
    # feed, or the one after: ten results, a fifth of a second, each. At first there are few results.
    begun, ended = START + timedelta(seconds=60), START + timedelta(seconds=600)
    late = [
        (exchange.triggered[trade] - due).total_seconds()
        for trade, due in exchange.due.items()
        if begun <= due < ended - timedelta(seconds=10)
    ]
    assert max(late) < 0.8
    assert set(exchange.due) - set(exchange.triggered) == set(exchange.waiting)

    # Then there are as many results as orders.
    rate = sum(begun <= moment < ended for moment in exchange.executed.values()) / 540
    assert rate == pytest.approx(50, rel=0.02)
