"""The market emulator: the market outside the brokerage, which executes the orders sent to it. Each load process has
one.

An order that has gone to the market is executed a little later, at the price of that moment: a Trade-Result. The tape
then reports two trades, this one and another: that of a limit order whose price has come, where one is due, else of any
security. When twenty have been reported they come as one Market-Feed, which may send limit orders to the market.
"""

import heapq
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple

from stallmark.transactions.workload import Clock, Transaction

ANSWER_LEAST_S, ANSWER_MEAN_S, ANSWER_MOST_S = 1.0, 1.0, 5.0
"""Seconds until an order is executed: at least, then the mean of a negative exponential time beyond that, and its most.
"""

FEED = 20
"""The number of reports in one Market-Feed."""

OTHER_SHARES = 100  # traded by whom we do not know


class TapeReport(NamedTuple):
    """A report on the tape: the number of shares of a security that were traded at a price."""

    security: int
    cents: int
    quantity: int


class Order(NamedTuple):
    """The order of a trade that has gone to the market."""

    trade: int
    security: int
    quantity: int


class MarketEmulator:
    """The market for a number of securities.

    `price(security, moment)` returns cents. The transaction `result` is posted with an Order and its price in cents as
    inputs, `feed` with Reports.
    """

    def __init__(
        self,
        securities: int,
        price: Callable[[int, datetime], int],
        clock: Clock,
        post: Callable[[type[Transaction], tuple, float], None],
        rng: random.Random,
        result: type[Transaction],
        feed: type[Transaction],
    ):
        self._securities = securities
        self._price = price
        self._clock = clock
        self._post = post
        self._rng = rng
        self._result = result
        self._feed = feed
        # When which security comes to a limit, the earliest first; the number between is their order at one moment.
        self._awaited: list[tuple[datetime, int, int]] = []
        self._order = count()
        self._tape: list[TapeReport] = []
        self._lock = threading.Lock()

    def send(self, order: Order) -> None:
        """Send an order to the market, after the commit that made it one for the market."""
        with self._lock:
            after_s = ANSWER_LEAST_S + min(ANSWER_MOST_S, self._rng.expovariate(1 / ANSWER_MEAN_S))
        due = self._clock.now() + timedelta(seconds=after_s)
        self._post(self._result, (order, self._price(order.security, due)), after_s)

    def await_price(self, security: int, due: datetime) -> None:
        """Wait with a limit order for the price that its security has at that moment."""
        with self._lock:
            heapq.heappush(self._awaited, (due, next(self._order), security))

    def report(self, order: Order, cents: int) -> None:
        """Report an order that was executed, after the commit of that."""
        now = self._clock.now()
        with self._lock:
            self._tape.append(TapeReport(order.security, cents, order.quantity))
            self._tape.append(self._another(now))
            due, self._tape = (self._tape, []) if len(self._tape) >= FEED else ([], self._tape)
        if due:
            self._post(self._feed, tuple(due), 0.0)

    def _another(self, now: datetime) -> TapeReport:
        if self._awaited and self._awaited[0][0] <= now:
            due, _, security = heapq.heappop(self._awaited)
        else:
            due, security = now, self._rng.randrange(self._securities)
        return TapeReport(security, self._price(security, due), OTHER_SHARES)
