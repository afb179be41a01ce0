"""The initial trade days of one load unit: orders are placed, completed, and matched against holdings.

Goes through the orders in stretches of bounded size. A stretch ends with the trades that are certain to be the next
ones: what is completed before the first order of the following stretch is placed. The others are carried on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stallmark.loaders.brokerage.matching import History, Holdings, Trades
from stallmark.loaders.brokerage.orders import LIMIT_SELL, MARKET_SELL, STOP_LOSS, OrderBook, Orders
from stallmark.schema.brokerage.population import ACCOUNTS, MOST_HELD, Population, moment, price_cents, trade_key
from stallmark.schema.draw import Ints

STRETCH = 100_000  # orders


@dataclass(frozen=True)
class Completed:
    """Trades in the order of their completion, with what they did to holdings. Money in cents."""

    orders: Orders
    key: Ints
    completed: npt.NDArray[np.datetime64]
    sells: npt.NDArray[np.bool_]
    cents: Ints  # of one share
    earned: Ints
    history: History


class Simulation:
    """`completed` goes through all trades of the load unit; afterwards `holdings` are those that are open."""

    def __init__(self, seed: int, population: Population, load_unit: int):
        self.book = OrderBook(seed, population, load_unit)
        self.holdings = Holdings(ACCOUNTS * MOST_HELD)
        self._population = population
        self._load_unit = load_unit

    def completed(self) -> Iterator[Completed]:
        total = self._population.unit_trades
        waiting: list[Orders] = []
        for first in range(0, total, STRETCH):
            end = min(first + STRETCH, total)
            orders = Orders.joined([*waiting, self.book.orders(first, end)])
            certain = np.ones(len(orders), bool)
            if end < total:
                certain = orders.completed < self.book.placed(np.array([end]))[0]
            ready = np.flatnonzero(certain)
            in_order = ready[np.lexsort((orders.number[ready], orders.completed[ready]))]
            waiting = [orders.take(~certain)]
            if len(in_order):
                yield self._complete(orders.take(in_order))
        self.holdings.close_ranks()

    def held(self) -> tuple[Ints, Ints, Ints]:
        """Return accounts (from 0 in the load unit), which of their securities, and how much of it they have,
        if any."""
        net = np.zeros(self.holdings.positions, np.int64)
        np.add.at(net, self.holdings.position, self.holdings.quantity)
        positions = np.flatnonzero(net)
        return *np.divmod(positions, MOST_HELD), net[positions]

    def _complete(self, orders: Orders) -> Completed:
        sells = np.isin(orders.type, (MARKET_SELL, LIMIT_SELL, STOP_LOSS))
        key = trade_key(self._population, self._load_unit, orders.number)
        cents = price_cents(orders.security, orders.completed)
        when = moment(orders.completed)
        trades = Trades(
            key=key,
            position=orders.account * MOST_HELD + orders.held,
            quantity=np.where(sells, -orders.quantity, orders.quantity),
            cents=cents,
            lifo=orders.lifo,
            completed=when,
        )
        history, earned = self.holdings.match(trades)
        return Completed(orders, key, when, sells, cents, earned, history)
