"""The initial trade days of one load unit: orders are placed, completed, and matched against holdings.

Goes through the orders in stretches of bounded size. A stretch ends with the trades that are certain to be the next
ones: what is completed before the first order of the following stretch is placed. The others are carried on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stallmark.schema.brokerage import (
    ACCOUNTS,
    DAY_S,
    HIGH_CENTS,
    LOW_CENTS,
    MOST_HELD,
    PERIOD_S,
    UNIT,
    Population,
    account_key,
    accounts_of,
    busy_rank,
    customer_at,
    held_by,
    moment,
    price_cents,
    second_reached,
    security_of,
    trade_key,
)
from stallmark.schema.draw import Bools, Floats, Ints, Numbers, below, hashed, unit

# The orders that customers of a load unit have placed: who, what, when, and when each is completed.
#
# An order is a pure function of (seed, load unit, its number), so any stretch of them can be made by itself. A market
# order goes to the market as it is placed; a limit order waits until its security has come to the limit. The market
# answers 1 s later and a negative exponential time with a mean of 1 s, 5 s at most.


# Trade types by number, in the order of `fixed.TRADE_TYPES`, and how many of 100 orders.
MARKET_BUY, MARKET_SELL, LIMIT_BUY, LIMIT_SELL, STOP_LOSS = range(5)
SHARES = (30, 30, 20, 10, 10)
QUANTITIES = np.array([100, 200, 400, 800])
LIFO_PERCENT, MARGIN_PERCENT = 35, 8
ANSWER_LEAST_S, ANSWER_MOST_S = 1, 6  # seconds until the market answers
LONGEST_S = PERIOD_S + ANSWER_MOST_S  # longest time from an order to its completion
MOST_LIMIT_CENTS = 100  # how far from the price a limit is set, at most


@dataclass(frozen=True)
class Orders:
    """Arrays of one length. Times are trading seconds, with whole milliseconds."""

    number: Ints  # index in the load unit, in the order of submission
    account: Ints  # counted from 0 in the load unit
    held: Ints  # index among the account's securities
    security: Ints
    type: Ints
    quantity: Ints
    bid_cents: Ints
    lifo: Bools
    cash: Bools  # else on margin
    placed: Floats
    submitted: Floats  # to the market
    completed: Floats

    def __len__(self) -> int:
        return len(self.number)

    def select(self, which: Ints | Bools) -> "Orders":
        return Orders(**{name: column[which] for name, column in vars(self).items()})

    @classmethod
    def joined(cls, parts: "list[Orders]") -> "Orders":
        names = vars(parts[0])
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


class OrderBook:
    """The orders of one load unit, by number."""

    def __init__(self, seed: int, population: Population, load_unit: int):
        self._seed = seed * 1_000_003 + load_unit
        self._population = population
        customers = load_unit * UNIT + np.arange(UNIT)
        counts = accounts_of(customers)
        self._at_rank = customer_at(load_unit, np.arange(UNIT)) - load_unit * UNIT
        self._accounts_of = counts
        self._first_account = np.cumsum(counts) - counts
        owner = np.repeat(customers, counts)
        self.owners = owner
        self.account_keys = account_key(owner, np.arange(len(owner)) - np.repeat(self._first_account, counts))
        self._held_by = held_by(self.account_keys)
        self.securities = security_of(  # indexed by account (from 0 in the load unit) and number
            self.account_keys[:, None], np.arange(MOST_HELD)[None, :], population.securities
        )
        self._seconds_each = population.days * DAY_S / population.unit_trades

    def order_times(self, number: Ints) -> Floats:
        """Return the times at which orders are placed: one in each equal slice of the initial trade days."""
        second = (number + unit(self._bits(0, number))) * self._seconds_each
        return np.floor(second * 1000) / 1000

    def orders(self, first: int, end: int) -> Orders:
        number = np.arange(first, end)
        who, action, when = (self._bits(stream, number) for stream in (1, 2, 3))
        customer = self._at_rank[busy_rank(who)]
        place = below(self._accounts_of[customer], who << np.uint64(32))
        account = self._first_account[customer] + place
        held = below(self._held_by[account], action)
        security = self.securities[account, held]
        kind = _KIND_BY_PERCENT[_percent(action, 32)]
        placed = self.order_times(number)
        bid, submitted = _limits(security, kind, placed, below(MOST_LIMIT_CENTS, when << np.uint64(32)) + 1)
        return Orders(
            number=number,
            account=account,
            held=held,
            security=security,
            type=kind,
            quantity=QUANTITIES[(action & np.uint64(3)).astype(np.int64)],
            bid_cents=bid,
            lifo=_percent(action, 18) < LIFO_PERCENT,
            cash=_percent(action, 4) >= MARGIN_PERCENT,
            placed=placed,
            submitted=submitted,
            completed=_whole_ms(submitted + np.minimum(ANSWER_MOST_S, ANSWER_LEAST_S - np.log1p(-unit(when)))),
        )

    def _bits(self, stream: int, number: Ints) -> Numbers:
        return hashed(self._seed * 8 + stream, number.astype(np.uint64))


def _limits(security: Ints, kind: Ints, placed: Floats, away: Ints) -> tuple[Ints, Floats]:
    """Return limit prices, and the times at which the orders go to the market."""
    now = price_cents(security, placed)
    above = kind == LIMIT_SELL
    limit = np.clip(np.where(above, now + away, now - away), LOW_CENTS, HIGH_CENTS)
    at_market = kind < LIMIT_BUY
    submitted = _whole_ms(second_reached(security, placed, limit, above))
    return np.where(at_market, now, limit), np.where(at_market, placed, np.maximum(submitted, placed))


def _percent(bits: Numbers, shift: int) -> Ints:
    """Return integers from 0 to 99, from 14 of the bits."""
    return (((bits >> np.uint64(shift)) & np.uint64(0x3FFF)) * np.uint64(100) >> np.uint64(14)).astype(np.int64)


def _whole_ms(second: Floats) -> Floats:
    return np.rint(second * 1000) / 1000


_KIND_BY_PERCENT = np.repeat(np.arange(len(SHARES)), SHARES)


# LIFO/FIFO matching: the effect of each completed trade on the holdings of its account.
#
# A position is what one account has of one security: a queue of holdings, each the rest of an earlier trade, in the
# order in which those were completed. All holdings of a position have one sign: positive when bought, negative when
# sold short. A trade against that sign uses up holdings from one end of the queue, the newest first (LIFO) or the
# oldest first (FIFO), the last of them in part; what is left of the trade, or a trade with the sign, joins the
# queue at its new end. Every holding that is used up in part or whole, and every one that begins, is a row of the
# holding history.
#
# Within a position this is strictly one after the other; positions have nothing to do with each other. So all positions
# go on in lockstep: in each round every position that still has trades takes one step, which changes one holding, and
# the round is a few vectorised operations over all of them. The queues are doubly linked lists in arrays.

NONE = -1
_OF_HOLDINGS = ("key", "position", "quantity", "cents", "begun", "_older", "_newer")


@dataclass(frozen=True)
class Trades:
    """Trades in the order of their completion, as arrays. `quantity` is negative for what was sold."""

    key: Ints
    position: Ints
    quantity: Ints
    cents: Ints
    lifo: Bools
    completed: npt.NDArray[np.datetime64]


@dataclass(frozen=True)
class History:
    """Changes of holdings, in no particular order: the trade that began each holding, the trade that changed it."""

    holding: Ints
    trade: Ints
    before: Ints
    after: Ints


class Holdings:
    """The holdings of all positions; none at first. As arrays: the trade that began each (`key`), its position,
    the quantity that is left, the price it began with, and when.

    Those that are used up, with a quantity of 0, stay in the arrays until `close_ranks`, and unused room behind them:
    to move all holdings for each stretch of trades would take the longer, the more are open."""

    def __init__(self, positions: int):
        self.positions = positions
        self._end = 0  # length in use of the arrays
        self.key = np.empty(0, np.int64)
        self.position = np.empty(0, np.int64)
        self.quantity = np.empty(0, np.int64)
        self.cents = np.empty(0, np.int64)
        self.begun = np.empty(0, "datetime64[ms]")
        self._older = np.empty(0, np.int64)  # neighbours in the queue
        self._newer = np.empty(0, np.int64)
        self._oldest = np.full(positions, NONE)  # indexed by position
        self._newest = np.full(positions, NONE)

    def match(self, trades: Trades) -> tuple[History, Ints]:
        """Take in trades; returns what changed, and what each trade earned by the holdings it closed: the sum of
        (sold for - bought for) x shares, in cents."""
        end = self._make_room(len(trades.key))
        order = np.argsort(trades.position, kind="stable")
        position, place = np.unique(trades.position[order], return_index=True)
        upto = np.append(place[1:], len(order))
        left = trades.quantity[order[place]]
        earned = np.zeros(len(order), np.int64)
        changes: list[tuple[Ints, Ints, Ints, Ints]] = []
        while len(position):
            trade = order[place]
            holding = np.where(trades.lifo[trade], self._newest[position], self._oldest[position])
            before = np.where(holding == NONE, 0, self.quantity[holding])
            closes = before * left < 0
            share = np.where(closes, np.sign(before) * np.minimum(np.abs(before), np.abs(left)), 0)
            begins = np.flatnonzero(~closes)
            holding[begins] = np.arange(end, end + len(begins))
            self._begin(holding[begins], trades, trade[begins])
            end += len(begins)
            before[begins] = 0
            after = np.where(closes, before - share, left)
            self.quantity[holding] = after
            earned[trade] += share * (trades.cents[trade] - self.cents[holding])
            changes.append((self.key[holding], trades.key[trade], before, after))
            ended = np.flatnonzero(after == 0)
            self._unlink(position[ended], holding[ended])
            left = np.where(closes, left + share, 0)
            place = place + (left == 0)
            going_on = place < upto
            if not going_on.all():
                position, place, upto, left = (values[going_on] for values in (position, place, upto, left))
            fresh = left == 0
            left[fresh] = trades.quantity[order[place[fresh]]]
        self._end = end
        holdings, keys, befores, afters = (np.concatenate(parts) for parts in zip(*changes, strict=True))
        return History(holdings, keys, befores, afters), earned

    def _begin(self, holding: Ints, trades: Trades, trade: Ints) -> None:
        """Put new holdings at the new end of their queues."""
        position = trades.position[trade]
        self.key[holding] = trades.key[trade]
        self.position[holding] = position
        self.cents[holding] = trades.cents[trade]
        self.begun[holding] = trades.completed[trade]
        last = self._newest[position]
        self._older[holding] = last
        self._newer[holding] = NONE
        self._newer[last[last != NONE]] = holding[last != NONE]
        self._oldest[position[last == NONE]] = holding[last == NONE]
        self._newest[position] = holding

    def _unlink(self, position: Ints, holding: Ints) -> None:
        """Take used-up holdings out of their queues; each is at one end."""
        older, newer = self._older[holding], self._newer[holding]
        self._newer[older[older != NONE]] = newer[older != NONE]
        self._older[newer[newer != NONE]] = older[newer != NONE]
        self._oldest[position[older == NONE]] = newer[older == NONE]
        self._newest[position[newer == NONE]] = older[newer == NONE]

    def _make_room(self, more: int) -> int:
        """Make room for `more` holdings; return the index of the first."""
        if self._end + more > len(self.key):
            self.close_ranks()
            room = 2 * more + self._end // 4  # so that this is seldom needed, and takes little of the memory
            for name in _OF_HOLDINGS:
                column = getattr(self, name)
                setattr(self, name, np.concatenate([column, np.zeros(room, column.dtype)]))
        return self._end

    def close_ranks(self) -> None:
        """Forget what is used up, and the room that was not needed."""
        open_ones = np.flatnonzero(self.quantity[: self._end])
        moved = np.full(len(self.key) + 1, NONE)  # dummy last element, where the index NONE points
        moved[open_ones] = np.arange(len(open_ones))
        for name in _OF_HOLDINGS:
            setattr(self, name, getattr(self, name)[open_ones])
        self._older, self._newer = moved[self._older], moved[self._newer]
        self._oldest, self._newest = moved[self._oldest], moved[self._newest]
        self._end = len(open_ones)


STRETCH = 100_000  # orders


@dataclass(frozen=True)
class Completed:
    """Trades in the order of their completion, with what they did to holdings. Money in cents."""

    orders: Orders
    key: Ints
    completed: npt.NDArray[np.datetime64]
    sells: npt.NDArray[np.bool_]
    cents: Ints  # price of one share
    earned: Ints
    history: History


class Simulation:
    """The simulation of a load unit's trades. After `completed` has yielded all trades, `holdings` has the open
    ones."""

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
                certain = orders.completed < self.book.order_times(np.array([end]))[0]
            ready = np.flatnonzero(certain)
            in_order = ready[np.lexsort((orders.number[ready], orders.completed[ready]))]
            waiting = [orders.select(~certain)]
            if len(in_order):
                yield self._complete(orders.select(in_order))
        self.holdings.close_ranks()

    def holdings_left(self) -> tuple[Ints, Ints, Ints]:
        """Return the open holdings: accounts (from 0 in the load unit), the number of their security, and its
        quantity."""
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
