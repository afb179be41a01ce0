"""LIFO/FIFO matching: the effect of each completed trade on the holdings of its account.

A position is what one account has of one security: a queue of holdings, each the rest of an earlier trade, in the
order in which those were completed. All holdings of a position have one sign: positive when bought, negative when sold
short. A trade against that sign uses up holdings from one end of the queue, the newest first (LIFO) or the oldest
first (FIFO), the last of them in part; what is left of the trade, or a trade with the sign, joins the queue at its new
end. Every holding that is used up in part or whole, and every one that begins, is a row of the holding history.

Within a position this is strictly one after the other; positions have nothing to do with each other. So all positions
go on in lockstep: in each round every position that still has trades takes one step, which changes one holding, and
the round is a few vectorised operations over all of them. The queues are doubly linked lists in arrays.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stallmark.schema.draw import Bools, Ints

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
        self._end = 0  # of what is used of the arrays
        self.key = np.empty(0, np.int64)
        self.position = np.empty(0, np.int64)
        self.quantity = np.empty(0, np.int64)
        self.cents = np.empty(0, np.int64)
        self.begun = np.empty(0, "datetime64[ms]")
        self._older = np.empty(0, np.int64)  # its neighbours in the queue
        self._newer = np.empty(0, np.int64)
        self._oldest = np.full(positions, NONE)  # by position
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
                position, place, upto, left = (each[going_on] for each in (position, place, upto, left))
            fresh = left == 0
            left[fresh] = trades.quantity[order[place[fresh]]]
        self._end = end
        holdings, keys, befores, afters = (np.concatenate(each) for each in zip(*changes, strict=True))
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
        """Make room for so many new holdings; return where they begin."""
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
        moved = np.full(len(self.key) + 1, NONE)  # its last element: where NONE points, when used as an index
        moved[open_ones] = np.arange(len(open_ones))
        for name in _OF_HOLDINGS:
            setattr(self, name, getattr(self, name)[open_ones])
        self._older, self._newer = moved[self._older], moved[self._newer]
        self._oldest, self._newest = moved[self._oldest], moved[self._newest]
        self._end = len(open_ones)
