"""When transactions start: the deck, think time, and arrivals that do not wait for the server."""

import itertools
import random
import statistics
import sys
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.driver.deck import deal
from stallmark.driver.pacing import SECOND_NS, Arrivals, OpenLoop, ThinkTime

DECKS = st.dictionaries(st.text(max_size=3), st.integers(1, 20), min_size=1, max_size=6)


@given(deck=DECKS, seed=st.integers(), decks=st.integers(1, 5))
def test_every_full_deck_holds_each_card_exactly_as_often_as_told(deck, seed, decks):
    cards = deal(deck, random.Random(seed))
    for _ in range(decks):
        assert Counter(itertools.islice(cards, sum(deck.values()))) == deck


def test_the_deck_is_shuffled_anew_each_time():
    cards = deal({"a": 10, "b": 10}, random.Random(1))
    orders = {tuple(itertools.islice(cards, 20)) for _ in range(5)}
    assert len(orders) == 5


def test_the_same_seed_deals_the_same_cards():
    hands = [list(itertools.islice(deal({"a": 3, "b": 4}, random.Random(7)), 50)) for _ in range(2)]
    assert hands[0] == hands[1]


def test_constant_think_time_follows_the_end():
    pacing = ThinkTime(Arrivals(think_ms=1.5), random.Random(1))
    assert [pacing.next_start(ended) for ended in (0, 10**9)] == [1_500_000, 1_001_500_000]


def test_without_think_time_the_next_start_is_the_last_end():
    assert ThinkTime(Arrivals(), random.Random(1)).next_start(123) == 123


def test_exponential_think_time_has_its_mean_and_its_spread():
    pacing = ThinkTime(Arrivals(think_ms=2, think="exponential"), random.Random(1))
    thought = [pacing.next_start(0) for _ in range(20_000)]
    # The mean of 20,000 draws has a standard error of 0.7 %; for an exponential both moments are the mean.
    assert statistics.fmean(thought) == pytest.approx(2e6, rel=0.03)
    assert statistics.stdev(thought) == pytest.approx(2e6, rel=0.05)


@given(rate=st.floats(0.1, 10_000), share=st.sampled_from([1, 1 / 2, 1 / 3]), seed=st.integers())
def test_fixed_arrivals_are_equally_spaced_however_late_the_users_ask(rate, share, seed):
    rng = random.Random(seed)
    queue = OpenLoop(Arrivals("fixed", rate=rate), share, rng)
    begin = 1_000_000
    asked = [begin, *sorted(rng.randrange(begin, 10**12) for _ in range(50))]
    starts = [queue.next_start(at) for at in asked]
    gap = SECOND_NS / (rate * share)
    assert begin <= starts[0] <= begin + gap
    for number, start in enumerate(starts):
        assert start == pytest.approx(starts[0] + number * gap, abs=2, rel=1e-12)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process():
    queue = OpenLoop(Arrivals("poisson", rate=500), 0.5, random.Random(1))
    starts = [queue.next_start(0) for _ in range(20_000)]
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert min(gaps) >= 0
    assert statistics.fmean(gaps) == pytest.approx(SECOND_NS / 250, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(SECOND_NS / 250, rel=0.05)


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
def test_users_of_one_queue_share_its_arrivals_and_each_arrival_is_taken_once(kind):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads get into each other's way wherever they can
    try:
        share_a_queue(kind)
    finally:
        sys.setswitchinterval(interval)


def share_a_queue(kind) -> None:
    alone = OpenLoop(Arrivals(kind, rate=1000), 1, random.Random(3))
    shared = OpenLoop(Arrivals(kind, rate=1000), 1, random.Random(3))
    expected = [alone.next_start(0) for _ in range(4 * 5000)]
    taken: list[list[int]] = [[] for _ in range(4)]
    together = threading.Barrier(4)

    def take(mine: list[int]) -> None:
        together.wait()
        mine.extend(shared.next_start(0) for _ in range(5000))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*taken)) == expected
    assert all(mine == sorted(mine) for mine in taken)


@given(rate=st.floats(1, 1000), kind=st.sampled_from(["fixed", "poisson"]), asked=st.integers(1, 50))
def test_arrivals_that_were_due_are_either_served_or_counted(rate, kind, asked):
    seconds = 5
    served, reference = (OpenLoop(Arrivals(kind, rate=rate), 1.0, random.Random(7)) for _ in range(2))
    start, end = 10**12, 10**12 + seconds * 10**9
    taken = [served.next_start(start) for _ in range(asked)]
    due, arrival = 0, reference.next_start(start)
    while arrival <= end:
        due, arrival = due + 1, reference.next_start(start)
    late = sum(scheduled <= end for scheduled in taken)
    assert late + served.unserved(end) == due


def test_an_arrival_given_back_goes_to_the_next_user():
    queue = OpenLoop(Arrivals("fixed", rate=10), 1.0, random.Random(1))
    first, second = queue.next_start(10**12), queue.next_start(10**12)
    queue.give_back(second)
    queue.give_back(first)
    assert [queue.next_start(10**12), queue.next_start(10**12)] == [first, second]
    queue.give_back(first)
    assert queue.unserved(first) == 1
