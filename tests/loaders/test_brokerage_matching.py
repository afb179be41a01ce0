"""The lockstep matching against the same rules written down for one trade at a time."""

from collections import defaultdict, deque
from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stallmark.loaders.brokerage.simulation import Holdings, Trades

POSITIONS = 4
one_trade = st.tuples(
    st.integers(0, POSITIONS - 1),
    st.sampled_from([-800, -400, -200, -100, 100, 200, 400, 800]),
    st.integers(2_000, 3_000),
    st.booleans(),
)


def trades(rows: list[tuple[int, int, int, bool]]) -> Trades:
    position, quantity, cents, lifo = (np.array(column) for column in zip(*rows, strict=True))
    numbers = np.arange(len(rows))
    return Trades(1_000 + numbers, position, quantity, cents, lifo, numbers.astype("datetime64[ms]"))


def part(whole: Trades, first: int, end: int) -> Trades:
    return Trades(**{field.name: getattr(whole, field.name)[first:end] for field in fields(whole)})


def one_after_the_other(whole: Trades) -> tuple[list, list[int], list]:
    """History, what each trade earned, and the holdings that are open at the end."""
    queues: dict[int, deque] = defaultdict(deque)
    history, earned = [], []
    for trade, position, left, cents, lifo, _ in zip(*vars(whole).values(), strict=True):
        queue, gain = queues[position], 0
        while left and queue and queue[0][1] * left < 0:
            holding, before, cost = queue.pop() if lifo else queue.popleft()
            share = min(abs(before), abs(left)) * (1 if before > 0 else -1)
            gain += share * (cents - cost)
            history.append((holding, trade, before, before - share))
            left += share
            if before != share:
                (queue.append if lifo else queue.appendleft)((holding, before - share, cost))
        if left:
            queue.append((trade, left, cents))
            history.append((trade, trade, 0, left))
        earned.append(gain)
    still_open = [(key, position, left, cents) for position, q in queues.items() for key, left, cents in q]
    return sorted(history), earned, sorted(still_open)


@given(st.lists(one_trade, min_size=1, max_size=80), st.integers(1, 80))
def test_lockstep_matches_as_one_trade_after_the_other_does(rows, stretch):
    whole = trades(rows)
    holdings = Holdings(POSITIONS)
    history, earned = [], []
    for first in range(0, len(rows), stretch):
        changes, gains = holdings.match(part(whole, first, first + stretch))
        history += list(zip(*(column.tolist() for column in vars(changes).values()), strict=True))
        earned += gains.tolist()
    holdings.close_ranks()
    still_open = zip(holdings.key, holdings.position, holdings.quantity, holdings.cents, strict=True)
    assert (sorted(history), earned, sorted(still_open)) == one_after_the_other(whole)


def test_the_newest_and_the_oldest_holding():
    bought = [(0, 100, 2_000, False), (0, 200, 2_100, False), (0, 400, 2_200, False)]
    newest_first = [(1_002, 400, 0), (1_001, 200, 100)]
    oldest_first = [(1_000, 100, 0), (1_001, 200, 0), (1_002, 400, 200)]
    for lifo, expected in ((True, newest_first), (False, oldest_first)):
        holdings = Holdings(1)
        holdings.match(trades(bought))
        history, earned = holdings.match(trades([(0, -500, 2_500, lifo)]))
        assert list(zip(history.holding, history.before, history.after, strict=True)) == expected
        assert earned.tolist() == [sum((2_500 - 2_000 - 100 * (key - 1_000)) * (b - a) for key, b, a in expected)]
