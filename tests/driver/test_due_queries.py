"""The queries of an open loop: none is lost or doubled, and they come due as a Poisson process has it."""

import itertools
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.driver.due_queries import DueQueries
from stallmark.driver.pacing import Arrivals

GO_ON = threading.Event()  # never set


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def due_queries(kind: str, clock, seed: int = 1) -> DueQueries:
    return DueQueries(Arrivals(kind, rate=1.0), random.Random(seed), clock)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0, 30)),
        st.tuples(st.just("rate"), st.sampled_from([0.0, 0.05, 1.0, 7.0])),
        st.tuples(st.just("take"), st.integers(1, 9)),
    ),
    max_size=30,
)


@given(actions=ACTIONS, kind=st.sampled_from(["poisson", "fixed"]), seed=st.integers())
def test_no_query_is_lost_or_doubled(actions, kind, seed):
    clock = Clock()
    queries, taken, forgotten = due_queries(kind, clock, seed), [], []
    for what, value in actions:
        if what == "wait":
            clock.now += value
        elif what == "rate":
            queries.take_rate(value)
            assert queries.queue(1).waiting == 0
        else:
            for _ in range(min(value, queries.queue(1).waiting)):
                taken.append((clock.now, queries.take(GO_ON)))
        forgotten += queries.take_forgotten()
        queue = queries.queue(1)
        assert queue.due == len(taken) + queue.waiting + len(forgotten)
    assert [number for _, (number, _) in taken] == list(range(len(taken)))
    moments = [due_s for _, (_, due_s) in taken]
    assert moments == sorted(moments) and all(due_s <= now for now, (_, due_s) in taken)


@pytest.mark.parametrize(("kind", "spread"), [("poisson", 1.0), ("fixed", 0.0)])
def test_counts_have_the_mean_and_the_spread_of_their_kind(kind, spread):
    clock = Clock()
    queries, seen = due_queries(kind, clock), [0]
    queries.take_rate(5)
    for _ in range(20_000):
        clock.now += 1
        seen.append(queries.queue(1).due)
    counts = [after - before for before, after in itertools.pairwise(seen)]
    # The mean of 20,000 counts has a standard error of 0.3 %, their variance one of 1 %.
    assert statistics.fmean(counts) == pytest.approx(5, rel=0.015)
    assert statistics.variance(counts) / 5 == pytest.approx(spread, abs=0.05)


def test_streams_that_take_turns_take_each_query_once():
    queries, stopping = due_queries("poisson", time.monotonic), threading.Event()

    def stream(_: int) -> list[int]:
        return [number for number, _ in iter(lambda: queries.take(stopping), None)]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(stream, range(4))
        queries.take_rate(2000)
        while queries.queue(4).due < 400:
            time.sleep(0.01)
        stopping.set()
        numbers = sorted(itertools.chain(*found))
    assert len(numbers) >= 400 - queries.queue(4).waiting and numbers == list(range(len(numbers)))


def test_a_new_rate_reaches_streams_that_wait_at_the_old_one():
    queries, taken = due_queries("fixed", time.monotonic), []
    queries.take_rate(1e-6)
    stream = threading.Thread(target=lambda: taken.append(queries.take(GO_ON)), daemon=True)
    stream.start()
    queries.take_rate(1000)
    stream.join(30)
    assert taken[0][0] == 0
