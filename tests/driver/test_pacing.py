"""When transactions start: the deck, think time, and arrivals that do not wait for the server."""

import itertools
import math
import random
import statistics
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.driving import load_spec
from support.synthetic_series import autoregressive
from support.waiting import eventually

from stallmark.driver.load import COOL_DOWN_S, Timeline, WarmUpLimits, consecutive_steps
from stallmark.driver.pacing import AHEAD_NS, SECOND_NS, Arrivals, Dealer, OpenLoop, ThinkTime
from stallmark.driver.rows import TransactionRow
from stallmark.driver.run_state import SecondSeries, SteadyStateWait
from stallmark.record import Histogram

pytestmark = pytest.mark.thorough


class User:
    """A free user, who ends when told to."""

    def __init__(self) -> None:
        self.awake = threading.Event()
        self.is_ending = False

    def end(self) -> None:
        self.is_ending = True
        self.awake.set()


USER = User()
DECKS = st.dictionaries(st.text(max_size=3), st.integers(1, 20), min_size=1, max_size=6)


def dealt(dealer: Dealer, cards: int) -> list:
    return [dealer.next_card() for _ in range(cards)]


@given(deck=DECKS, seed=st.integers(), decks=st.integers(1, 5))
def test_every_full_deck_holds_each_card_exactly_as_often_as_told(deck, seed, decks):
    dealer = Dealer(deck, random.Random(seed))
    for _ in range(decks):
        assert Counter(dealt(dealer, sum(deck.values()))) == deck


def test_a_card_that_the_deck_has_none_of_is_never_dealt():
    assert set(dealt(Dealer({"a": 2, "b": 0, "c": 1}, random.Random(1)), 30)) == {"a", "c"}


def test_the_deck_is_shuffled_anew_each_time():
    dealer = Dealer({"a": 10, "b": 10}, random.Random(1))
    assert len({tuple(dealt(dealer, 20)) for _ in range(5)}) == 5


def test_the_same_seed_deals_the_same_cards():
    hands = [dealt(Dealer({"a": 3, "b": 4}, random.Random(7)), 50) for _ in range(2)]
    assert hands[0] == hands[1]


def test_all_users_together_are_dealt_whole_decks():
    """However they take turns, what each got adds up to the mix."""
    deck = {"a": 7, "b": 2, "c": 1}
    dealer = Dealer(deck, random.Random(1))
    hands = together(lambda: dealt(dealer, 5 * 1000), users=4)
    assert Counter(itertools.chain(*hands)) == {card: 2000 * count for card, count in deck.items()}


def test_constant_think_time_follows_the_end():
    pacing = ThinkTime(Arrivals(think_ms=1.5), random.Random(1))
    assert [pacing.next_start(ended, USER) for ended in (0, 10**9)] == [1_500_000, 1_001_500_000]


def test_without_think_time_the_next_start_is_the_last_end():
    assert ThinkTime(Arrivals(), random.Random(1)).next_start(123, USER) == 123


def test_exponential_think_time_has_its_mean_and_its_spread():
    pacing = ThinkTime(Arrivals(think_ms=2, think="exponential"), random.Random(1))
    thought = [pacing.next_start(0, USER) for _ in range(20_000)]
    # The mean of 20,000 draws has a standard error of 0.7 %; for an exponential both moments are the mean.
    assert statistics.fmean(thought) == pytest.approx(2e6, rel=0.03)
    assert statistics.stdev(thought) == pytest.approx(2e6, rel=0.05)


def open_loop(arrivals: Arrivals, share: float = 1.0, seed: int = 1, now_ns: int = 0) -> OpenLoop:
    queue = OpenLoop(arrivals, random.Random(seed))
    queue.set_share(share, now_ns)
    return queue


@given(rate=st.floats(0.1, 10_000), share=st.sampled_from([1, 1 / 2, 1 / 3]), seed=st.integers())
def test_fixed_arrivals_are_equally_spaced(rate, share, seed):
    begin = 1_000_000
    queue = open_loop(Arrivals("fixed", rate=rate), share, seed, begin)
    starts = [queue.next_arrival() for _ in range(51)]
    gap = SECOND_NS / (rate * share)
    assert begin <= starts[0] <= begin + gap
    for number, start in enumerate(starts):
        assert start == pytest.approx(starts[0] + number * gap, abs=2, rel=1e-12)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process():
    queue = open_loop(Arrivals("poisson", rate=500), 0.5)
    starts = [queue.next_arrival() for _ in range(20_000)]
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert min(gaps) >= 0
    assert statistics.fmean(gaps) == pytest.approx(SECOND_NS / 250, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(SECOND_NS / 250, rel=0.05)


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
def test_users_of_one_queue_share_its_arrivals_and_each_arrival_is_taken_once(kind):
    alone, shared = (open_loop(Arrivals(kind, rate=1000)) for _ in range(2))
    expected = [alone.next_arrival() for _ in range(4 * 5000)]
    taken = together(lambda: [shared.next_arrival() for _ in range(5000)], users=4)
    assert sorted(itertools.chain(*taken)) == expected
    assert all(mine == sorted(mine) for mine in taken)


def together(take: Callable[[], list], users: int) -> list[list]:
    """Return what each of them took, while they got into each other's way wherever they could."""
    at_once = threading.Barrier(users)

    def taken(_: int) -> list:
        at_once.wait()
        return take()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(users) as pool:
            return list(pool.map(taken, range(users)))
    finally:
        sys.setswitchinterval(interval)


@given(rate=st.floats(1, 1000), kind=st.sampled_from(["fixed", "poisson"]), asked=st.integers(1, 50))
def test_arrivals_that_were_due_are_either_served_or_counted(rate, kind, asked):
    seconds = 5
    start, end = 10**12, 10**12 + seconds * 10**9
    served, reference = (open_loop(Arrivals(kind, rate=rate), now_ns=start) for _ in range(2))
    taken = [served.next_arrival() for _ in range(asked)]
    due, arrival = 0, reference.next_arrival()
    while arrival <= end:
        due, arrival = due + 1, reference.next_arrival()
    late = sum(scheduled <= end for scheduled in taken)
    assert late + served.stop_and_count_unserved(end) == due


@given(
    rate=st.floats(1, 1000), kind=st.sampled_from(["fixed", "poisson"]), asked=st.integers(0, 50),
    patience_ms=st.integers(0, 5000),
)  # fmt: skip
def test_arrivals_that_nobody_took_in_time_are_given_up_in_order(rate, kind, asked, patience_ms):
    start, end = 10**12, 10**12 + 5 * 10**9
    before = end - patience_ms * 10**6
    served, reference = (open_loop(Arrivals(kind, rate=rate), now_ns=start) for _ in range(2))
    taken = [served.next_arrival() for _ in range(asked)]
    if taken:
        served.give_back(taken.pop(asked // 2))
    given_up = served.pop_due_before(before)
    left = served.stop_and_count_unserved(end)
    due = list(itertools.takewhile(lambda arrival: arrival <= end, iter(reference.next_arrival, None)))
    assert given_up == [arrival for arrival in due if arrival < before and arrival not in taken]
    assert left == sum(arrival >= before for arrival in due if arrival not in taken)


def test_an_arrival_given_back_goes_to_the_next_user():
    queue = open_loop(Arrivals("fixed", rate=10), now_ns=10**12)
    first, second = queue.next_arrival(), queue.next_arrival()
    queue.give_back(second)
    queue.give_back(first)
    assert [queue.next_arrival(), queue.next_arrival()] == [first, second]
    queue.give_back(first)
    assert queue.stop_and_count_unserved(first) == 1


CHANGES = st.lists(st.tuples(st.integers(1, 2 * 10**9), st.sampled_from([0, 0.25, 0.5, 1])), max_size=12)


@given(changes=CHANGES, seed=st.integers())
def test_wherever_the_users_move_the_whole_rate_arrives(changes, seed):
    """Two executors that share fixed arrivals, asked by nobody: what was due is the rate times the time."""
    rate, now = 100, 10**12
    queues = [open_loop(Arrivals("fixed", rate=rate), 0.5, seed + i, now) for i in range(2)]
    begin = now
    for passed, share in changes:
        now += passed
        queues[0].set_share(share, now)
        queues[1].set_share(1 - share, now)
    due = sum(queue.stop_and_count_unserved(now) for queue in queues)
    assert due == pytest.approx(rate * (now - begin) / SECOND_NS, abs=2)


def test_a_share_that_changes_leaves_no_hole_behind_the_arrivals_already_taken():
    queue = open_loop(Arrivals("fixed", rate=10))
    taken = [queue.next_arrival() for _ in range(30)]
    queue.set_share(0.5, 0)
    assert queue.next_arrival() - taken[-1] == pytest.approx(SECOND_NS / 5, abs=2)


def test_where_no_users_are_nothing_arrives_and_what_was_to_come_is_forgotten():
    now = time.monotonic_ns()
    queue = open_loop(Arrivals("fixed", rate=10), now_ns=now - SECOND_NS)
    taken = [queue.next_arrival() for _ in range(30)]
    queue.set_share(0, now)
    assert queue.next_arrival() is None
    for scheduled in taken:
        queue.give_back(scheduled)
    assert queue.stop_and_count_unserved(now) == 10


def test_a_new_rate_holds_from_now_on_and_what_waited_is_forgotten():
    loop = OpenLoop(Arrivals("fixed", rate=100), random.Random(1))
    loop.set_rate(10, 0)  # before there is any user
    loop.set_share(0.5, 0)
    loop.set_rate(200, 3 * SECOND_NS)  # 15 were due and nobody has come
    starts = [loop.next_arrival() for _ in range(201)]
    assert min(starts) >= 3 * SECOND_NS
    assert starts[-1] - starts[0] == pytest.approx(2 * SECOND_NS, rel=1e-6)
    loop.set_share(1.0, starts[-1])
    more = [loop.next_arrival() for _ in range(201)]
    assert more[-1] - more[0] == pytest.approx(SECOND_NS, rel=1e-6)


class Users:
    """Users in threads of their own, who do nothing but note when they were to start."""

    def __init__(self, loop: OpenLoop, count: int):
        self.users = [User() for _ in range(count)]
        self.started: deque[int] = deque()
        self.threads = [threading.Thread(target=self._work, args=(loop, one), daemon=True) for one in self.users]
        for thread in self.threads:
            thread.start()

    def _work(self, loop: OpenLoop, user: User) -> None:
        while (scheduled := loop.next_start(0, user)) is not None:
            user.awake.wait((scheduled - time.monotonic_ns()) / SECOND_NS)
            if user.is_ending and scheduled > time.monotonic_ns():
                loop.give_back(scheduled)
                return
            self.started.append(scheduled)

    def end(self) -> None:
        for user in self.users:
            user.end()
        for thread in self.threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
def test_a_new_rate_holds_at_once_however_many_users_are_free(kind):
    loop = open_loop(Arrivals(kind, rate=2), now_ns=time.monotonic_ns())
    users = Users(loop, 40)  # who would have the arrivals of 20 s in their hands
    eventually(lambda: len(users.started) >= 1)
    changed = time.monotonic_ns()
    loop.set_rate(400, changed)
    begin = changed + AHEAD_NS
    eventually(lambda: sum(one > begin + SECOND_NS // 2 for one in list(users.started)) > 40)
    users.end()
    within = [one for one in users.started if begin < one <= begin + SECOND_NS // 2]
    assert len(within) == pytest.approx(200, abs=2 if kind == "fixed" else 85)  # six standard deviations
    assert len(set(users.started)) == len(users.started)


def test_users_of_a_slow_rate_take_turns_and_whoever_ends_leaves_the_line():
    loop = open_loop(Arrivals("fixed", rate=50), now_ns=time.monotonic_ns())
    users = Users(loop, 10)
    eventually(lambda: len(users.started) >= 20)
    for user in users.users[:9]:
        user.end()
    seen = len(users.started)
    eventually(lambda: len(users.started) >= seen + 10)
    users.end()
    gaps = [after - before for before, after in itertools.pairwise(sorted(users.started))]
    assert gaps == pytest.approx([SECOND_NS / 50] * len(gaps), abs=2)


def test_whoever_stands_first_may_end_and_what_is_given_back_finds_a_user():
    loop = open_loop(Arrivals("fixed", rate=1e-3), now_ns=time.monotonic_ns())
    users = Users(loop, 300)
    ended: set[threading.Event] = set()
    for number in range(1, 21):
        first = eventually(lambda: loop._leader if loop._leader not in ended else None)
        next(user for user in users.users if user.awake is first).end()
        ended.add(first)
        loop.give_back(time.monotonic_ns())
        eventually(lambda number=number: len(users.started) == number)
    users.end()
    assert loop._leader is None and not loop._followers


def test_users_in_line_end_where_nothing_arrives_any_more():
    loop = open_loop(Arrivals("fixed", rate=1e-3), now_ns=time.monotonic_ns())
    users = Users(loop, 5)
    loop.set_share(0, time.monotonic_ns())
    for thread in users.threads:
        thread.join(30)
        assert not thread.is_alive()


# The timeline of a run


SECONDS = st.floats(0, 1000)


def test_users_that_come_again_are_another_step():
    steps = consecutive_steps(
        [("10 users", 10), ("20 users", 20), ("10 users", 10)], ramp_s=0, warm_up_s=0, measure_s=1
    )
    assert [step.name for step in steps] == ["10 users", "20 users", "10 users (2)"]


@given(
    users=st.lists(st.integers(1, 10_000), min_size=1, max_size=6),
    ramp=SECONDS,
    warm_up=SECONDS,
    measure=st.floats(1, 1000),
)
def test_steps_follow_each_other_without_a_gap(users, ramp, warm_up, measure):
    steps = consecutive_steps(
        [(f"{count} users", count) for count in users], ramp_s=ramp, warm_up_s=warm_up, measure_s=measure
    )
    assert [step.users for step in steps] == users
    assert len({step.name for step in steps}) == len(users)
    assert steps[0].begin_s == 0
    for before, after in itertools.pairwise(steps):
        assert after.begin_s == before.end_s
    for step in steps:
        assert step.measure_s == pytest.approx(step.begin_s + ramp + warm_up)
        assert step.end_s == pytest.approx(step.measure_s + measure)
    timeline = Timeline(steps)
    assert timeline.end_s == steps[-1].end_s + COOL_DOWN_S
    for step in steps:
        assert timeline.step_at(step.begin_s) is step
        assert timeline.step_at((step.begin_s + step.end_s) / 2) is step
    assert timeline.step_at(timeline.end_s) is timeline.step_at(timeline.end_s + 99) is steps[-1]


# Waiting for a steady state: when it is decided to measure, and what the timeline then is


def timeline(*users: int, limits: WarmUpLimits | None = None) -> Timeline:
    limits = limits or WarmUpLimits(30, 300)
    steps = consecutive_steps(
        [(f"{count} users", count) for count in users], ramp_s=5, warm_up_s=limits.at_most_s, measure_s=60
    )
    return Timeline(steps, limits)


def follow(
    given: Timeline, tps: np.ndarray, latency_ms: np.ndarray | None = None, arrivals: Arrivals | None = None
) -> SteadyStateWait:
    """As a run would: every second is reported, and looked at a fifth of a second after its end."""
    seen = SecondSeries()
    load = load_spec(*(step.users for step in given.steps), arrivals=arrivals or Arrivals())
    settling = SteadyStateWait(given, [load], seen)
    latency_ms = np.full(len(tps), 10.0) if latency_ms is None else latency_ms
    for second, (count, ms) in enumerate(zip(tps, latency_ms, strict=True)):
        committed = round(count)
        seen.add(row(second, committed, 0, round(committed * ms * 1000)))
        settling.check(second + 1.2)
    return settling


def row(second: int, committed: int, rolled_back: int, latency_us: int) -> TransactionRow:
    empty = Histogram(b"", b"")
    return TransactionRow(second, "bank", "transfer", committed, rolled_back, 0, 0, latency_us, 0, empty, empty)


def steady(seconds: int = 800, seed: int = 1) -> np.ndarray:
    return 5 * autoregressive(seconds, 0.3, noise=0.02, counting=0.01, seed=seed)


def test_a_steady_load_is_measured_soon_but_not_before_the_least():
    settling = follow(timeline(10), steady())
    (step,) = settling.timeline.steps
    assert 35 <= step.measure_s < 200 and step.measure_s == int(step.measure_s)
    assert step.end_s == step.measure_s + 60
    assert [one.model_dump() for one in settling.waited] == [
        {"until": "steady", "at_least_s": 30, "at_most_s": 300, "seconds": step.measure_s - 5, "steady": True}
    ]
    assert not settling.waiting


def test_a_load_that_keeps_drifting_is_measured_at_the_last_moment_and_it_is_said():
    settling = follow(timeline(10), steady() * np.linspace(1, 4, 800))
    (step,) = settling.timeline.steps
    assert step == timeline(10).steps[0]
    assert settling.waited[0].steady is False and settling.waited[0].seconds == 300


def test_every_step_waits_by_itself_and_the_later_ones_come_earlier():
    tps = steady()
    tps[200:] *= 2
    settling = follow(timeline(10, 20), tps)
    first, second = settling.timeline.steps
    assert second.begin_s == first.end_s
    assert second.measure_s >= second.begin_s + 5 + 30
    assert [one.steady for one in settling.waited] == [True, True]
    assert second.end_s < timeline(10, 20).end_s


def test_arrivals_at_a_rate_are_judged_by_their_latency():
    """The throughput is the rate all the time; the latency falls for ten minutes while a cache fills."""
    open_loop, second = Arrivals("fixed", rate=500), np.arange(800)
    warming = follow(timeline(10), np.full(800, 500.0), 10 + 40 * np.exp(-second / 200), open_loop)
    ready = follow(timeline(10), np.full(800, 500.0), steady() / 50, open_loop)
    assert ready.timeline.steps[0].measure_s < 200
    assert warming.timeline.steps[0].measure_s > 250


def test_without_limits_nothing_is_decided():
    steps = consecutive_steps([("10 users", 10)], ramp_s=5, warm_up_s=30, measure_s=60)
    settling = SteadyStateWait(Timeline(steps), [load_spec(10)], SecondSeries())
    assert not settling.waiting and not settling.check(1000.0)


def test_a_second_in_which_nothing_ended_has_no_latency():
    seen = SecondSeries()
    seen.add(row(1, 3, 1, 8000))
    assert seen.throughput(0, 3).tolist() == [0, 3, 0]
    assert np.isnan(seen.latency(0, 3)).tolist() == [True, False, True] and seen.latency(1, 2)[0] == 2000


@given(st.lists(st.integers(1, 50), min_size=1, max_size=4), st.data())
def test_a_moved_plan_has_every_step_as_long_as_before(users, data):
    before = timeline(*users)
    index = data.draw(st.integers(0, len(users) - 1))
    moved = before.measuring_from(index, data.draw(st.floats(0, before.steps[index].measure_s)))
    for old, new in zip(before.steps, moved.steps, strict=True):
        assert new.end_s - new.measure_s == pytest.approx(old.end_s - old.measure_s)
    for earlier, later in pairwise(moved.steps):
        assert math.isclose(later.begin_s, earlier.end_s)
